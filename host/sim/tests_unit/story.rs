//! What a line of a story may say, and what is said when it says something else.

use super::*;
use crate::scenario::{ObjectKind, WorkloadKind};

fn only(text: &str) -> Verb {
    Story::parse(text).unwrap().lines.remove(0).verb
}

#[test]
fn every_verb_reads() {
    let story = "# a comment\napply a.yaml b.yaml # and another\n\nscale deploy/inflate 5\nset nodepool/default spec.limits.cpu=1 000\nwait 1m30s\n\
        until pods pending 2 within 90s\nsold-out spot * us-east-1a for 10m\ninterrupt spot\nprice on-demand m5.large us-east-1a 0.5\nboot never\n\
        crash\nexpect 5 pods # of it\ndelete StatefulSet/prod/db";
    let verbs: Vec<(usize, Verb)> = Story::parse(story).unwrap().lines.into_iter().map(|l| (l.number, l.verb)).collect();
    let inflate =
        ObjectName { kind: ObjectKind::Workload(WorkloadKind::Deployment), key: whittle_model::PodKey::new("default", "inflate") };
    let pool = ObjectName { kind: ObjectKind::NodePool, key: whittle_model::PodKey::new("", "default") };
    let set = ObjectName { kind: ObjectKind::Workload(WorkloadKind::StatefulSet), key: whittle_model::PodKey::new("prod", "db") };
    let expected = [
        (2, Verb::Apply(vec!["a.yaml".into(), "b.yaml".into()])),
        (4, Verb::Scale(inflate, 5)),
        (5, Verb::Set { object: pool, path: "spec.limits.cpu".into(), value: "1 000".into() }),
        (6, Verb::Wait(Duration::seconds(90))),
        (7, Verb::Until { condition: Condition::PodsPending(2), within: Duration::seconds(90) }),
        (
            8,
            Verb::SoldOut {
                capacity_type: CapacityType::Spot,
                instance_type: None,
                zone: Some("us-east-1a".into()),
                lasting: Some(Duration::minutes(10)),
            },
        ),
        (9, Verb::Interrupt(Target::Capacity(CapacityType::Spot))),
        (
            10,
            Verb::Price {
                capacity_type: CapacityType::OnDemand,
                instance_type: "m5.large".into(),
                zone: "us-east-1a".into(),
                price: Micros(500_000),
            },
        ),
        (11, Verb::Boot(None)),
        (12, Verb::Crash),
        (13, Verb::Expect("5 pods".into())),
        (14, Verb::Delete(set)),
    ];
    assert_eq!(verbs, expected);
    assert_eq!(only("until settled"), Verb::Until { condition: Condition::Settled, within: Duration::minutes(60) });
    assert_eq!(only("boot 2m"), Verb::Boot(Some(Duration::minutes(2))));
    assert_eq!(only("reserve cr-1 2"), Verb::Reserve { id: "cr-1".into(), instances: 2 });
    assert_eq!(only("advise oldest"), Verb::Advise(Target::Oldest));
    assert_eq!(only("interrupt ip-10-0-0-4"), Verb::Interrupt(Target::Node("ip-10-0-0-4".into())));
}

#[test]
fn an_error_names_the_line_and_what_would_be_right() {
    for (line, part) in [
        ("aply x.yaml", "a line begins with one of apply"),
        ("apply", "a file name is missing"),
        ("scale deployment/inflate", "how many pods is missing"),
        ("scale deployment/inflate many", "\"many\" is no count"),
        ("scale node/x 3", "a Node cannot be scaled"),
        ("delete inflate", "not KIND/NAME"),
        ("delete deploymnet/x", "is no kind a story knows"),
        ("delete node/a/b", "has no namespace"),
        ("wait soon", "is no duration"),
        ("wait 1s1m", "is no duration"),
        ("until pods happy", "use one of: pods running"),
        ("until nodes 3 after 5m", "\"after\" is not expected"),
        ("sold-out cheap * *", "use spot, on-demand or reserved"),
        ("price spot m5.large us-east-1a free", "no price in dollars"),
        ("reserve cr-1", "how many instances is missing"),
        ("advise", "a node, oldest or a capacity type is missing"),
        ("crash twice", "\"twice\" at the end"),
        ("set nodepool/a spec.weight 3", "PATH=VALUE is missing"),
        ("expect", "the expected text is missing"),
    ] {
        let error = Story::parse(&format!("\n# first\n{line}")).unwrap_err();
        assert_eq!(error.number, 3);
        assert!(error.to_string().starts_with("story line 3: cannot read"), "{error}");
        assert!(error.why.contains(part), "{line}: {error}");
    }
}
