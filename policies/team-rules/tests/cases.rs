//! Cases: a configuration, candidates, and what is refused with which words.

use whittle_policy_team_rules::TeamRules;
use whittle_sdk::prelude::*;
use whittle_sdk::{Cell, Loaded};

use CandidateColumn as C;

fn node(asker: i64, name: &str, zone: &str, way: &str, cpu: i64, price: i64) -> Vec<(C, Cell)> {
    let family = name.split('.').next().expect("a split has a first part");
    vec![
        (C::Asker, asker.into()),
        (C::InstanceType, name.into()),
        (C::Family, family.into()),
        (C::Category, family[..1].into()),
        (C::Arch, if family.ends_with('g') { "arm64".into() } else { "amd64".into() }),
        (C::Zone, zone.into()),
        (C::CapacityType, way.into()),
        (C::CpuMilli, (cpu * 1000).into()),
        (C::MemoryMib, (cpu * 4096).into()),
        (C::ListMicros, price.into()),
        (C::RankMicros, price.into()),
    ]
}

/// Pods of a namespace with a label `team`.
fn pods(case: Case, namespace: &str, team: &str) -> Case {
    case.asker([(AskerColumn::Namespace, namespace.into()), (AskerColumn::Label("team".to_owned()), team.into())])
}

/// `None` where a candidate keeps its price.
fn answers(case: &Case) -> Vec<Option<String>> {
    let veto = |verdict| match verdict {
        Verdict::Veto(reason) => Some(reason),
        Verdict::Answer { .. } => None,
    };
    case.price::<TeamRules>().expect("the configuration is right").into_iter().map(veto).collect()
}

fn refused(config: whittle_sdk::serde_json::Value) -> String {
    Loaded::<TeamRules>::configure(&config.to_string()).expect_err("the configuration is wrong")
}

#[test]
fn a_rule_without_a_match_binds_everybody_and_asks_nothing_about_pods() {
    let config = json!({"rules": [{"name": "graviton", "allow": {"archs": ["arm64"]}, "forbid": {"zones": ["us-east-1e"]}}]});
    let case = Case::new(config.clone())
        .candidate(node(0, "m7g.large", "us-east-1a", "spot", 2, 40_000))
        .candidate(node(0, "m7i.large", "us-east-1a", "spot", 2, 40_000))
        .candidate(node(0, "m7g.large", "us-east-1e", "spot", 2, 40_000));
    let vetoes = [
        None,
        Some("rule graviton: architecture amd64 is not allowed".to_owned()),
        Some("rule graviton: zone us-east-1e is not allowed".to_owned()),
    ];
    assert_eq!(answers(&case), vetoes);
    let loaded = Loaded::<TeamRules>::configure(&config.to_string()).unwrap();
    let tables = loaded.setup().tables(whittle_sdk::Hook::PriceCandidates);
    assert_eq!(tables, [("candidates", vec!["rank-micros".to_owned(), "zone".to_owned(), "arch".to_owned()])]);
}

#[test]
fn rules_bind_by_namespace_and_label_and_all_that_match_bind() {
    let config = json!({"rules": [
        {"name": "ci-is-cheap", "match": {"namespaces": ["ci", "ci-*"]}, "atMost": {"cpu": 8, "pricePerHour": "0.50"}},
        {"name": "payments", "match": {"labels": {"team": "pay*"}}, "forbid": {"capacityTypes": ["spot"]}},
    ]});
    let case = pods(pods(pods(Case::new(config), "ci-nightly", "web"), "web", "payments"), "ci", "payments");
    let case = (0..3).fold(case, |case, asker| {
        case.candidate(node(asker, "c7i.2xlarge", "us-east-1a", "spot", 8, 500_000))
            .candidate(node(asker, "c7i.4xlarge", "us-east-1a", "on-demand", 16, 700_000))
            .candidate(node(asker, "c7i.2xlarge", "us-east-1a", "on-demand", 8, 500_001))
    });
    let size = || Some("rule ci-is-cheap: 16000 mCPU, at most 8000 are allowed".to_owned());
    let price = || Some("rule ci-is-cheap: 500001 micro-dollars an hour, at most 500000 are allowed".to_owned());
    let spot = || Some("rule payments: capacity type spot is not allowed".to_owned());
    assert_eq!(answers(&case), [None, size(), price(), spot(), None, None, spot(), size(), price()]);
}

#[test]
fn lists_of_one_rule_hold_together_and_names_may_have_wildcards() {
    let config = json!({"rules": [{
        "name": "big", "allow": {"instanceTypes": ["m*.?xlarge", "r7g.*"], "categories": ["m", "r"]},
        "forbid": {"families": ["m5*"]}, "atLeast": {"memory": "16Gi", "cpu": 2},
    }]});
    let types = [("m7i.2xlarge", 8), ("m7i.12xlarge", 48), ("r7g.metal", 64), ("m5a.4xlarge", 16), ("c7i.2xlarge", 8), ("r7g.medium", 1)];
    let case = types.into_iter().fold(Case::new(config), |case, (name, cpu)| case.candidate(node(0, name, "z", "spot", cpu, 1)));
    let why = |why: &str| Some(format!("rule big: {why}"));
    assert_eq!(
        answers(&case),
        [
            None,
            why("instance type m7i.12xlarge is not allowed"),
            None,
            why("family m5a is not allowed"),
            why("instance type c7i.2xlarge is not allowed"),
            why("1000 mCPU, at least 2000 are allowed"),
        ]
    );
}

#[test]
fn prices_pass_through_unchanged() {
    let config = json!({"rules": [{"name": "a", "forbid": {"zones": ["b"]}}]});
    let case = Case::new(config).candidate(node(0, "m7i.large", "a", "spot", 2, 123));
    assert_eq!(case.price::<TeamRules>().unwrap(), [Verdict::Answer { value: 123, cost: None }]);
}

#[test]
fn what_is_wrong_with_a_rule_is_said_by_name() {
    assert_eq!(refused(json!({"rules": [{"name": "a"}]})), "rule \"a\" says nothing: give it allow, forbid, atMost or atLeast");
    let twice = json!({"rules": [{"name": "a", "atMost": {"cpu": 1}}, {"name": "a", "atMost": {"cpu": 2}}]});
    assert_eq!(refused(twice), "two rules are named \"a\"");
    let memory = json!({"rules": [{"name": "a", "atMost": {"memory": "64"}}]});
    assert_eq!(refused(memory), "rule \"a\", atMost.memory: \"64\" is no amount of memory; write it like \"64Gi\"");
    let price = json!({"rules": [{"name": "a", "atMost": {"pricePerHour": "$1"}}]});
    assert!(refused(price).contains("\"$1\" is no decimal number"));
    let empty = json!({"rules": [{"name": "a", "allow": {"zones": [""]}}]});
    assert_eq!(refused(empty), "rule \"a\", allow.zones: a name is empty");
    assert!(refused(json!({"rules": [{"name": "a", "deny": {}}]})).contains("unknown field `deny`"));
    let many: Vec<_> = (0..65).map(|n| json!({"name": n.to_string(), "atMost": {"cpu": 1}})).collect();
    assert!(refused(json!({ "rules": many })).starts_with("65 rules, at most 64 are possible"));
}
