//! Cases: a configuration, moves, and whether they pay.

use proptest::prelude::*;
use whittle_policy_payback::Payback;
use whittle_sdk::prelude::*;
use whittle_sdk::{Cell, Hook, Loaded, serde_json::Value};

use MoveColumn as M;
use MoveNodeColumn as N;
use MovePodColumn as P;

/// A move of one node that never expires.
#[derive(Clone, Copy)]
struct Made {
    saves: i64,
    costs: i64,
    expires: i64,
    replacements: i64,
    drain: i64,
    pods: i64,
    age: i64,
}

/// Two pods on a node of $0.20 an hour, half of which is saved.
const MADE: Made = Made { saves: 100_000, costs: 200_000, expires: 1_000_000_000_000, replacements: 0, drain: 0, pods: 2, age: 600 };

fn with(case: Case, number: i64, made: Made) -> Case {
    let a_move: [(M, Cell); 5] = [
        (M::Kind, "underutilized".into()),
        (M::SavingsCostMicros, made.saves.into()),
        (M::Pods, made.pods.into()),
        (M::Replacements, made.replacements.into()),
        (M::DrainSeconds, made.drain.into()),
    ];
    case.a_move(a_move)
        .move_node([(N::Move, number.into()), (N::CostMicros, made.costs.into()), (N::ExpiresSeconds, made.expires.into())])
        .move_pod([(P::Move, number.into()), (P::OldestSeconds, made.age.into()), (P::RestartCost, (made.pods * 1000).into())])
}

fn verdict(config: Value, made: Made) -> Verdict {
    let case = with(Case::new(config), 0, made).asker([(AskerColumn::Namespace, "web".into())]);
    case.score::<Payback>().expect("the configuration is right").remove(0)
}

fn left(config: Value, made: Made) -> Option<i64> {
    match verdict(config, made) {
        Verdict::Answer { value, .. } => Some(value),
        Verdict::Veto(_) => None,
    }
}

#[test]
fn a_move_waits_until_its_pods_have_run_long_enough() {
    let dear = "100000 micro-dollars an hour would not pay back the restarts of 2 pods in time";
    assert_eq!(verdict(json!({}), MADE), Verdict::Veto(dear.to_owned()));
    assert_eq!(left(json!({}), Made { age: 720, ..MADE }), None, "2.0 cents do not pay back 2.0 cents");
    assert_eq!(left(json!({}), Made { age: 780, ..MADE }), Some(1_666));
    assert_eq!(left(json!({"lifePerAgePercent": 200}), MADE), Some(33_333 - 20_000));
}

#[test]
fn no_saving_lasts_longer_than_the_horizon_or_the_nodes() {
    let old = Made { age: 10_000_000, ..MADE };
    assert_eq!(left(json!({}), old), Some(24 * 100_000 - 20_000));
    assert_eq!(left(json!({"horizonHours": 2}), old), Some(200_000 - 20_000));
    assert_eq!(left(json!({"lifePerAgePercent": 0}), Made { age: 0, ..old }), Some(24 * 100_000 - 20_000));
    assert_eq!(left(json!({}), Made { expires: 3_600, ..old }), Some(100_000 - 20_000));
    assert_eq!(left(json!({}), Made { expires: -5, ..old }), None, "it expires anyway");
}

#[test]
fn nodes_count_by_what_they_cost() {
    let (one, other) =
        (Made { expires: 3_600, costs: 300_000, age: 1_000_000, ..MADE }, [(N::Move, 0.into()), (N::CostMicros, 100_000.into())]);
    // Three quarters of the cost go in an hour anyway, the rest is gone: 45 minutes.
    let case = with(Case::new(json!({"restartCost": 0})), 0, one).move_node(other);
    let verdict = case.score::<Payback>().unwrap().remove(0);
    assert_eq!(verdict, Verdict::Answer { value: 75_000, cost: None });
}

#[test]
fn while_replacements_start_both_are_paid() {
    let made = Made { age: 3_600, replacements: 1, ..MADE };
    // $0.10 an hour for two minutes, and for a drain of four more.
    assert_eq!(left(json!({}), made), Some(80_000 - 3_333));
    assert_eq!(left(json!({}), Made { drain: 240, ..made }), Some(80_000 - 10_000));
    assert_eq!(left(json!({"overlapSeconds": 0}), made), Some(80_000));
    assert_eq!(left(json!({}), Made { saves: -5, ..made }), None);
}

#[test]
fn restarts_cost_what_is_said_of_their_workload() {
    let config = json!({"restartCost": "0.001", "workloads": [
        {"namespaces": ["db*"], "labels": {"app": "postgres"}, "restartCost": 5},
        {"namespaces": ["db*"], "restartCost": "0.5"},
    ]});
    let made = Made { pods: 1, age: 3_600 * 6, ..MADE };
    let of = |namespace: &str, app: &str| {
        let asker = [(AskerColumn::Namespace, namespace.into()), (AskerColumn::Label("app".to_owned()), app.into())];
        with(Case::new(config.clone()), 0, made).asker(asker).score::<Payback>().unwrap().remove(0)
    };
    let answer = |value| Verdict::Answer { value, cost: None };
    assert_eq!(of("web", "postgres"), answer(600_000 - 1_000));
    assert_eq!(of("db-2", "redis"), answer(100_000));
    assert!(matches!(of("db-2", "postgres"), Verdict::Veto(_)));
}

#[test]
fn only_moves_that_are_meant_to_save_are_judged_and_labels_are_not_asked_for_in_vain() {
    let setup = |config: Value| Loaded::<Payback>::configure(&config.to_string()).unwrap().setup().clone();
    assert_eq!(setup(json!({})).kinds(), ["underutilized"]);
    let tables = |config: Value| setup(config).tables(Hook::ScoreMoves).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(tables(json!({})), ["moves", "move-nodes", "move-pods"]);
    let asked = tables(json!({"workloads": [{"labels": {"app": "x"}, "restartCost": 1}]}));
    assert_eq!(asked, ["moves", "move-nodes", "move-pods", "askers"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |config: Value| Loaded::<Payback>::configure(&config.to_string()).expect_err("the configuration is wrong");
    assert_eq!(refused(json!({"restartCost": -1})), "restartCost: a restart does not cost less than nothing");
    assert_eq!(refused(json!({"workloads": [{"restartCost": 1}]})), "workloads[0] names no pods: give it namespaces or labels");
    assert_eq!(refused(json!({"workloads": [{"namespaces": [""], "restartCost": 1}]})), "workloads[0]: a namespace is empty");
    assert!(refused(json!({"horizon": 3})).contains("unknown field `horizon`"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_saved_never_scores_less_and_more_restarts_never_more(
        saves in 0i64..1_000_000_000, more in 0i64..1_000_000, pods in 1i64..500, age in 0i64..10_000_000,
    ) {
        let made = Made { saves, costs: 2_000_000_000, pods, age, replacements: 1, ..MADE };
        let score = |made: Made| left(json!({}), made).unwrap_or(0);
        let dearer = [Made { saves: saves + more, ..made }, Made { age: age + more, ..made }].map(score);
        let cheaper = score(Made { pods: pods + more, ..made });
        prop_assert!(dearer.iter().all(|dearer| *dearer >= score(made)), "{dearer:?}");
        prop_assert!(cheaper <= score(made) && score(made) <= 1_000_000_000_000);
    }

    #[test]
    fn any_numbers_are_answered(saves in any::<i64>(), costs in any::<i64>(), expires in any::<i64>(), age in any::<i64>(), drain in any::<i64>()) {
        verdict(json!({}), Made { saves, costs, expires, age, drain, replacements: 1, ..MADE });
    }
}
