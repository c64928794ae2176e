//! Claims as they are created: what is written is read back.

use proptest::prelude::*;
use whittle_model::{Effect, Operator, Requirement, Resources};

use super::*;
use crate::from::{Cx, node_claim as read};

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = proptest::collection::vec(prop_oneof![Just("a"), Just("3"), Just("7"), Just("40")], 1..3);
    (0..8usize, values, 0..50u32).prop_map(|(operator, values, number)| {
        let operator = Operator::ALL[operator];
        let values: Vec<String> = match operator {
            Operator::In | Operator::NotIn => values.into_iter().map(str::to_owned).collect(),
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => vec![number.to_string()],
        };
        Requirement::new("example.com/size", operator, &values).expect("values suit the operator")
    })
}

fn claim(requirements: Requirements, hours: Option<i64>) -> NodeClaim {
    NodeClaim {
        name: "default-a1".to_owned(),
        node_pool: "default".to_owned(),
        node_class: "main".to_owned(),
        labels: BTreeMap::from([
            ("team".to_owned(), "a".to_owned()),
            (keys::NODE_POOL.to_owned(), "default".to_owned()),
            (keys::NODE_CLASS.to_owned(), "main".to_owned()),
        ]),
        annotations: BTreeMap::from([("note".to_owned(), String::new())]),
        taints: vec![Taint::new("team", "a", Effect::NoSchedule)],
        startup_taints: vec![Taint::new("boot", "", Effect::NoExecute)],
        requirements,
        requests: Resources::of(&[("cpu", 1500), ("memory", 1000), ("example.com/gpu", 2)]),
        expire_after: hours.map(|h| Duration::minutes(h * 60)),
        termination_grace_period: hours.map(Duration::seconds),
        ..NodeClaim::default()
    }
}

proptest! {
    #[test]
    fn a_claim_is_read_back_as_it_was(
        all in proptest::collection::vec(requirement(), 1..4),
        hours in proptest::option::of(0..2000i64),
    ) {
        let wanted: Requirements = all.into_iter().collect();
        let contradiction = wanted.iter().any(|r| r.operator() == Operator::In && r.values().is_empty());
        let below_zero = wanted.iter().any(|r| r.bounds().1.is_some_and(|high| high < 0));
        prop_assume!(!contradiction && !below_zero); // neither is ever bought
        let wanted = claim(wanted, hours);
        let mut cx = Cx::new(true);
        prop_assert_eq!(read(&node_claim(&wanted, None, None), &mut cx), wanted);
        prop_assert_eq!(cx.problems.len(), 0);
    }
}
