//! Cases: a configuration, moves, and which stay or go first.

use proptest::prelude::*;
use whittle_policy_utilization_floor::UtilizationFloor;
use whittle_sdk::prelude::*;
use whittle_sdk::{Hook, Loaded, serde_json::Value};

use MoveNodeColumn as N;

/// A move: what it saves, and its nodes.
type Made<'a> = (i64, &'a [(&'a str, i64, i64)]);

/// Moves, each of nodes of a pool with their use of CPU and memory in thousandths, saving so much.
fn verdicts(config: Value, moves: &[Made<'_>]) -> Vec<Verdict> {
    let mut case = Case::new(config);
    for (number, (saves, nodes)) in (0..).zip(moves) {
        case = case.a_move([(MoveColumn::Score, (*saves).into()), (MoveColumn::Kind, "underutilized".into())]);
        for (pool, cpu, memory) in *nodes {
            let node = [(N::Move, number), (N::CpuUsedPermille, *cpu), (N::MemoryUsedPermille, *memory)];
            let node = node.into_iter().map(|(column, value)| (column, value.into())).chain([(N::NodePool, (*pool).into())]);
            case = case.move_node(node);
        }
    }
    case.score::<UtilizationFloor>().expect("the configuration is right")
}

fn answer(value: i64) -> Verdict {
    Verdict::Answer { value, cost: None }
}

fn veto(percent: u8) -> Verdict {
    Verdict::Veto(format!("a node of it is used to {percent} % or more"))
}

#[test]
fn a_node_at_the_floor_stays_and_which_use_counts_is_said() {
    let nodes: [Made<'_>; 3] = [(7, &[("p", 200, 499)]), (7, &[("p", 200, 500)]), (7, &[("p", 900, 100)])];
    let with = |config: Value| verdicts(config, &nodes);
    assert_eq!(with(json!({})), [answer(7), veto(50), veto(50)]);
    assert_eq!(with(json!({"of": "Smaller"})), [answer(7), answer(7), answer(7)]);
    assert_eq!(with(json!({"of": "Cpu"})), [answer(7), answer(7), veto(50)]);
    assert_eq!(with(json!({"of": "Memory", "floorPercent": 10})), [veto(10), veto(10), veto(10)]);
}

#[test]
fn one_full_node_keeps_the_whole_move_and_pools_have_floors_of_their_own() {
    let config = json!({"nodePools": [{"names": ["batch-*"], "floorPercent": 80}, {"names": ["*"], "floorPercent": 30}]});
    let nodes: [Made<'_>; 3] =
        [(7, &[("batch-a", 700, 0), ("web", 200, 0)]), (7, &[("batch-a", 700, 0), ("web", 300, 0)]), (7, &[("batch-b", 800, 0)])];
    assert_eq!(verdicts(config, &nodes), [answer(7), veto(30), veto(80)]);
}

/// Full nodes are disrupted first otherwise: what is saved for the disruption is more.
#[test]
fn the_emptiest_go_first_if_so_asked() {
    let nodes: [Made<'_>; 4] =
        [(200_000, &[("p", 970, 300)]), (90_000, &[("p", 200, 100)]), (95_000, &[("p", 200, 150)]), (i64::MAX, &[("p", 100, 400)])];
    let by = |order: &str| {
        let all = verdicts(json!({"floorPercent": 101, "order": order}), &nodes);
        let mut line: Vec<(i64, usize)> = all
            .into_iter()
            .enumerate()
            .map(|(at, verdict)| match verdict {
                Verdict::Answer { value, .. } => (value, at),
                Verdict::Veto(why) => unreachable!("{why}"),
            })
            .collect();
        line.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        line.into_iter().map(|(_, at)| at).collect::<Vec<_>>()
    };
    assert_eq!(by("Savings"), [3, 0, 2, 1]);
    assert_eq!(by("Emptiest"), [2, 1, 3, 0]);
}

#[test]
fn only_what_is_looked_at_is_asked_for() {
    let setup = |config: Value| Loaded::<UtilizationFloor>::configure(&config.to_string()).unwrap().setup().clone();
    let columns = |config: Value| setup(config).tables(Hook::ScoreMoves)[1].1.clone();
    assert_eq!(columns(json!({"of": "Cpu"})), ["move", "cpu-used-permille"]);
    assert_eq!(columns(json!({})), ["move", "cpu-used-permille", "memory-used-permille"]);
    assert_eq!(setup(json!({})).kinds(), ["underutilized"]);
    let refused = Loaded::<UtilizationFloor>::configure(r#"{"nodePools": [{"names": [""], "floorPercent": 3}]}"#);
    assert_eq!(refused.expect_err("the configuration is wrong"), "nodePools[0]: a name is empty");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_emptier_move_never_goes_later(used in 0i64..1000, less in 0i64..1000, saves in any::<i64>(), others in any::<i64>()) {
        let config = || json!({"floorPercent": 101, "order": "Emptiest"});
        let (full, empty): ([(&str, i64, i64); 1], _) = ([("p", used, 0)], [("p", (used - less - 1).max(0), 0)]);
        prop_assume!(empty[0].1 < used);
        let both = verdicts(config(), &[(saves, &full), (others, &empty)]);
        let score = |verdict: &Verdict| if let Verdict::Answer { value, .. } = verdict { *value } else { -1 };
        prop_assert!(score(&both[1]) > score(&both[0]) && score(&both[1]) <= 1_000_000_000_000, "{both:?}");
    }
}
