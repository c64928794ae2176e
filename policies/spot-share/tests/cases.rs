//! Cases: which kind is bought beside which mix, and that a share is reached, kept and never flips.

use proptest::prelude::*;
use whittle_policy_spot_share::SpotShare;
use whittle_sdk::prelude::*;
use whittle_sdk::{Cell, Loaded, serde_json::Value};

use CandidateColumn as C;

/// A node of the simulated cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    spot: bool,
    pods: i64,
}

fn offer(way: &str, price: i64, on_demand: i64, holds: i64) -> Vec<(C, Cell)> {
    vec![
        (C::NodePool, "a".into()),
        (C::CapacityType, way.into()),
        (C::RankMicros, price.into()),
        (C::OnDemandMicros, on_demand.into()),
        (C::HoldsPods, holds.into()),
    ]
}

fn with_mix(case: Case, nodes: &[Node]) -> Case {
    [(true, "spot"), (false, "on-demand")].into_iter().fold(case, |case, (spot, way)| {
        let of_kind = || nodes.iter().filter(|node| node.spot == spot);
        let pods: i64 = of_kind().map(|node| node.pods).sum();
        let count = i64::try_from(of_kind().count()).expect("few nodes");
        case.mix_row([
            (MixRowColumn::Key, "node-pool".into()),
            (MixRowColumn::Value, "a".into()),
            (MixRowColumn::CapacityType, way.into()),
            (MixRowColumn::Pods, pods.into()),
            (MixRowColumn::CpuMilli, (pods * 250).into()),
            (MixRowColumn::Nodes, count.into()),
        ])
    })
}

fn ranks(case: &Case) -> Vec<i64> {
    let rank = |verdict| match verdict {
        Verdict::Answer { value, .. } => value,
        Verdict::Veto(_) => -1,
    };
    case.price::<SpotShare>().expect("the configuration is right").into_iter().map(rank).collect()
}

/// Spot at 30 to 90 % off.
fn settle(config: &Value, others: &[Node], pods: i64, off: i64) -> Node {
    let case = Case::new(config.clone())
        .asker([(AskerColumn::CpuMilli, 250.into())])
        .candidate(offer("spot", pods * 100 * (100 - off), pods * 10_000, pods))
        .candidate(offer("on-demand", pods * 10_000, pods * 10_000, pods));
    let ranks = ranks(&with_mix(case, others));
    Node { spot: ranks[0] <= ranks[1], pods }
}

fn share(percent: i64, tolerance: i64) -> Value {
    json!({"onDemandPercentageAboveBaseCapacity": percent, "tolerancePercent": tolerance})
}

/// On-demand pods, all pods.
fn pods(nodes: &[Node]) -> (i64, i64) {
    let on_demand: i64 = nodes.iter().filter(|node| !node.spot).map(|node| node.pods).sum();
    (on_demand, nodes.iter().map(|node| node.pods).sum())
}

/// How many pods the share is off, and how many it may be.
fn off(nodes: &[Node], percent: i64, tolerance: i64) -> (i64, i64) {
    let (on_demand, all) = pods(nodes);
    ((on_demand - (all * percent + 99) / 100).abs(), all * tolerance / 100)
}

#[test]
fn the_base_is_on_demand_and_above_it_the_percentage() {
    let config = json!({"onDemandBaseCapacity": 4, "onDemandPercentageAboveBaseCapacity": 25, "tolerancePercent": 0, "unit": "nodes"});
    let mut nodes = Vec::new();
    for _ in 0..20 {
        let node = settle(&config, &nodes, 5, 70);
        nodes.push(node);
    }
    assert!(nodes[..4].iter().all(|node| !node.spot));
    assert_eq!(nodes.iter().filter(|node| !node.spot).count(), 8);
}

#[test]
fn within_the_tolerance_price_decides() {
    let mix = |on_demand, spot| [Node { spot: false, pods: on_demand }, Node { spot: true, pods: spot }];
    // 30 of 100: with a spot node of 5 it is 30 of 105, two pods short, and five may be.
    assert!(settle(&share(30, 5), &mix(30, 70), 5, 60).spot);
    assert!(!settle(&share(30, 5), &mix(30, 70), 5, -10).spot, "on demand when that is cheaper");
    assert!(settle(&share(30, 0), &mix(30, 70), 5, 90).spot, "two short is nearer than three over");
    assert!(!settle(&share(30, 0), &mix(28, 72), 5, 90).spot);
    assert!(!settle(&share(30, 5), &mix(20, 80), 5, 90).spot);
}

#[test]
fn what_is_sold_out_is_bought_of_the_other_kind() {
    let case = Case::new(share(100, 5)).candidate(offer("spot", 3_000, 10_000, 5)).candidate(offer("spot", 2_000, 9_000, 5));
    let ranks = ranks(&case);
    assert!(ranks.iter().all(|rank| *rank > 0) && ranks[1] < ranks[0], "{ranks:?}");
    assert_eq!(ranks[0] - ranks[1], 1_000, "prices decide between offerings of the same kind");
}

#[test]
fn a_packer_is_guided_to_the_kind_that_is_next_and_to_nodes_that_can_be_mixed() {
    let case = |config: Value| {
        Case::new(config)
            .round([(RoundColumn::PendingPods, 60.into())])
            .candidate(offer("spot", 3_000, 10_000, 5))
            .candidate(offer("on-demand", 10_000, 10_000, 5))
            .candidate(offer("spot", 36_000, 120_000, 60))
    };
    let spot_first = ranks(&case(share(30, 5)));
    assert_eq!(spot_first[0], 3_000, "the kind that is next keeps its price");
    assert_eq!(spot_first[1], 160_000);
    assert!(spot_first[2] > 36_000 * 2, "one node for all cannot be mixed: {spot_first:?}");
    let on_demand_first = ranks(&case(share(100, 5)));
    assert_eq!(on_demand_first, [48_000, 10_000, 576_000]);
}

#[test]
fn by_label_each_value_has_its_own_share() {
    let config = json!({"onDemandPercentageAboveBaseCapacity": 50, "tolerancePercent": 0, "by": "label:app"});
    let asker = |app: &str| [(AskerColumn::Label("app".to_owned()), app.into())];
    let row = |app: &str, way: &str| {
        [
            (MixRowColumn::Key, "label:app".into()),
            (MixRowColumn::Value, app.into()),
            (MixRowColumn::CapacityType, way.into()),
            (MixRowColumn::Pods, 10.into()),
        ]
    };
    let of = |asker: i64, way, price| {
        let mut row = offer(way, price, 1_000, 10);
        row.push((C::Asker, asker.into()));
        row
    };
    let case = Case::new(config).asker(asker("web")).asker(asker("db")).mix_row(row("web", "spot")).mix_row(row("db", "on-demand"));
    let case = [0, 1].into_iter().fold(case, |case, n| case.candidate(of(n, "spot", 300)).candidate(of(n, "on-demand", 1_000)));
    let ranks = ranks(&case);
    assert!(ranks[0] > ranks[1] && ranks[1] == 1_000, "web has spot, so on-demand is next: {ranks:?}");
    assert!(ranks[3] > ranks[2] && ranks[2] == 300, "db has on-demand, so spot is next: {ranks:?}");
}

#[test]
fn a_wrong_configuration_is_refused() {
    let refused = |config: Value| Loaded::<SpotShare>::configure(&config.to_string()).expect_err("the configuration is wrong");
    assert_eq!(refused(json!({"by": "team"})), "by: \"team\" is neither \"nodepool\" nor \"label:KEY\"");
    assert!(refused(json!({"unit": "memory"})).contains("unknown variant `memory`"));
    assert!(refused(json!({"spotPercentage": 3})).contains("unknown field `spotPercentage`"));
}

/// Sizes of nodes and discounts of spot.
fn sizes(most: i64) -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((1..=most, 30..=90i64), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_share_is_reached_within_one_plan(percent in 0i64..=100, tolerance in 0i64..=10, sizes in sizes(12)) {
        let mut nodes: Vec<Node> = Vec::new();
        for (size, discount) in &sizes {
            let node = settle(&share(percent, tolerance), &nodes, *size, *discount);
            nodes.push(node);
        }
        // Nodes are whole: half the largest is as near as one can always come.
        let largest = sizes.iter().map(|(size, _)| *size).max().unwrap_or(0);
        let (off, may_be) = off(&nodes, percent, tolerance);
        prop_assert!(off <= may_be.max(largest / 2 + 1), "{} off, {} allowed", off, may_be);
    }

    #[test]
    fn after_a_scale_down_a_scale_up_restores_it(percent in 10i64..=90, gone in any::<bool>(), sizes in sizes(6)) {
        let config = share(percent, 5);
        // All nodes of one kind are gone.
        let mut nodes: Vec<Node> = sizes.iter().map(|(size, _)| Node { spot: gone, pods: *size }).collect();
        let before = off(&nodes, percent, 5);
        let enough = pods(&nodes).1 * 10;
        while pods(&nodes).1 < enough {
            let node = settle(&config, &nodes, 3, 70);
            nodes.push(node);
        }
        let (off, may_be) = off(&nodes, percent, 5);
        prop_assert!(off <= may_be.max(2), "{:?} before, {} off, {} allowed", before, off, may_be);
    }

    #[test]
    fn nothing_flips(percent in 0i64..=100, tolerance in 0i64..=10, sizes in sizes(8), kinds in prop::collection::vec(any::<bool>(), 60)) {
        // Every node in turn is chosen again beside all others: that ends, and what is chosen again stays.
        let config = share(percent, tolerance);
        let mut nodes: Vec<Node> = sizes.iter().zip(kinds).map(|((pods, _), spot)| Node { spot, pods: *pods }).collect();
        let mut rounds = 0;
        loop {
            let mut changed = false;
            for (at, (_, discount)) in sizes.iter().enumerate() {
                let node = nodes.remove(at);
                let again = settle(&config, &nodes, node.pods, *discount);
                prop_assert_eq!(settle(&config, &nodes, node.pods, *discount), again);
                nodes.insert(at, again);
                changed |= again != node;
            }
            rounds += 1;
            if !changed {
                break;
            }
            prop_assert!(rounds < 20, "it does not settle");
        }
    }
}
