//! The engine's greedy against the plain reference: same nodes, same cost, same pods left over. And
//! the default portfolio against both: never dearer than greedy, never below the bound.

mod clusters;

use whittle_bench::markets::{self, Set};
use whittle_bench::ours::{Ours, Planned};
use whittle_bench::reference::Reference;
use whittle_bench::{Input, bound, fixtures};
use whittle_model::resources::{CPU, MEMORY, NODES, PODS};
use whittle_model::{DaemonSet, Packing, Pod, PodKey, Requirement, Resources, Settings, keys};

/// Few steps of improvement: these tests are about what holds with any number of them.
fn settings(packing: Packing, kubernetes_minor: u32) -> Settings {
    Settings { packing, kubernetes_minor, improvement_steps: 20_000, ..Settings::default() }
}

fn plan(input: &Input, packing: Packing) -> Planned {
    Planned::from(&Ours::new(input, &settings(packing, 36)).plan())
}

/// How the engine's greedy and the reference part, if they do.
fn disagreement(input: &Input) -> Option<String> {
    let outcome = Reference::new(input).solve();
    let planned = plan(input, Packing::Greedy);
    let expected = (outcome.nodes.len(), outcome.cost(), outcome.cost(), outcome.unplaced.len());
    let found = (planned.nodes, planned.cost, planned.greedy, planned.unplaced);
    (found != expected).then(|| format!("(nodes, cost, greedy's cost, unplaced) are {found:?}, of the reference {expected:?}"))
}

fn agree(what: &str, input: &Input) {
    assert_eq!(disagreement(input), None, "{what}");
}

#[test]
fn greedy_agrees_on_karpenters_sizes() {
    for count in fixtures::DIVERSE.into_iter().filter(|n| *n <= 2000) {
        let draws = fixtures::diverse(count).unwrap();
        agree(&format!("generic {count}"), &markets::synthetic().with_pods(fixtures::generic(&draws)));
        agree(&format!("anti {count}"), &markets::synthetic().with_pods(fixtures::anti(&draws)));
        if count <= 1000 {
            agree(&format!("constrained {count}"), &markets::synthetic().with_pods(fixtures::constrained(&draws)));
        }
        for set in Set::ALL {
            let market = markets::real(set).unwrap();
            agree(&format!("generic {count} on {}", set.name()), &market.with_pods(fixtures::generic(&draws)));
        }
    }
}

/// Nodes and cost of the diverse mix as a prototype of the documented greedy has them; the nodes are those
/// that Karpenter publishes.
#[test]
fn the_diverse_mix_takes_a_node_for_each_fifth_pod() {
    for (count, nodes, dollars) in [(50, 10, 15.42), (100, 20, 32.73), (500, 100, 164.61), (1000, 200, 338.04)] {
        let input = markets::synthetic().with_pods(fixtures::constrained(&fixtures::diverse(count).unwrap()));
        let planned = plan(&input, Packing::Greedy);
        assert_eq!((planned.nodes, planned.unplaced), (nodes, 0), "{count}");
        let off = bound::as_float(planned.cost.0) / (dollars * 1_000_000.0);
        assert!((0.95..1.05).contains(&off), "{count}: {} against {dollars}", planned.cost);
    }
    let input = markets::synthetic().with_pods(fixtures::preferring(50));
    assert_eq!(plan(&input, Packing::Greedy).nodes, 50);
    agree("preferring", &input);
}

#[test]
fn greedy_agrees_on_the_mixes() {
    for set in Set::ALL {
        let market = markets::real(set).unwrap();
        for mix in fixtures::MIXES {
            for count in [100, 1000] {
                agree(&format!("{mix} {count} on {}", set.name()), &market.with_pods(fixtures::mix(mix, count).unwrap()));
            }
        }
    }
    for mix in fixtures::MIXES {
        agree(mix, &markets::synthetic().with_pods(fixtures::mix(mix, 500).unwrap()));
    }
}

#[test]
fn greedy_agrees_on_pods_that_are_all_distinct() {
    agree("distinct", &markets::synthetic().with_pods(fixtures::distinct(2000)));
    agree("distinct on real types", &markets::real(Set::UpTo32).unwrap().with_pods(fixtures::distinct(1000)));
}

/// Whether a pool limits anything but its nodes. The reference books the largest type that a claim
/// may become, as documented; the engine then looks again at what the limit still allows.
fn books_more_than_it_buys(input: &Input) -> bool {
    input.pools.iter().any(|p| p.limits.amounts.iter().any(|(name, _)| name != NODES))
}

#[test]
fn greedy_agrees_on_random_clusters_with_every_constraint() {
    let market = clusters::few_types(&markets::real(Set::All).unwrap());
    let clusters = (0..300).map(|seed| (seed, clusters::random(&market, seed)));
    let (limited, plain): (Vec<_>, Vec<_>) = clusters.partition(|(_, input)| books_more_than_it_buys(input));
    assert!(limited.len() > 50 && plain.len() > 50);
    let parted: Vec<_> = plain.iter().filter_map(|(seed, input)| Some((seed, disagreement(input)?))).collect();
    assert!(parted.is_empty(), "clusters by seed: {parted:#?}");
    for (seed, input) in &limited {
        let (found, expected) = (plan(input, Packing::Greedy).unplaced, Reference::new(input).solve().unplaced.len());
        assert!(found <= expected, "cluster of seed {seed}: {found} pods are left over, by the reference {expected}");
    }
}

#[test]
fn types_that_have_no_room_for_their_daemons_are_not_bought() {
    let mut input = clusters::few_types(&markets::real(Set::All).unwrap());
    input.pools[0].template.requirements = [Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"])].into_iter().collect();
    let agent = Pod { requests: Resources::of(&[(MEMORY, 500 << 20), (PODS, 1)]), ..Pod::default() };
    input.daemon_sets = vec![DaemonSet { key: PodKey::new("kube-system", "agent"), template: agent, containers: None }];
    let thin = Pod { requests: Resources::of(&[(CPU, 100), (PODS, 1)]), ..fixtures::pods([(0, 0)]).remove(0) };
    input.pods = vec![thin];
    assert_eq!(Reference::new(&input).solve().nodes[0].offering.instance_type, "t3.micro");
    agree("one thin pod beside a daemon that t3.nano cannot hold", &input);
}

#[test]
fn the_portfolio_lies_between_bound_and_greedy() {
    for set in Set::ALL {
        let market = markets::real(set).unwrap();
        for mix in fixtures::MIXES {
            let input = market.with_pods(fixtures::mix(mix, 100).unwrap());
            let reference = Reference::new(&input);
            let planned = plan(&input, Packing::Cost);
            let what = format!("{mix} on {}", set.name());
            assert_eq!((planned.greedy, planned.unplaced), (reference.solve().cost(), 0), "{what}");
            assert!(planned.cost <= planned.greedy, "{what}: {planned:?}");
            assert!(planned.bound <= planned.cost, "{what}: {planned:?}");
            let aggregate = bound::aggregate(&reference, markets::POOL, &input.pods);
            assert!(bound::as_float(planned.bound.0) > 0.9999 * aggregate, "{what}: {planned:?} is weaker than {aggregate}");
        }
    }
}

#[test]
fn nominated_pods_keep_the_plan_and_others_cost_no_less_than_the_bound() {
    let market = markets::real(Set::UpTo32).unwrap();
    for mix in fixtures::MIXES {
        let input = market.with_pods(fixtures::mix(mix, 100).unwrap());
        let (nominating, older) = (settings(Packing::Cost, 36), settings(Packing::Cost, 34));
        assert!(nominating.nominates() && !older.nominates());
        let planned = plan(&input, Packing::Cost);
        assert_eq!(Ours::new(&input, &nominating).cost_when_bound(&input, &nominating), planned.cost, "{mix}");
        assert!(Ours::new(&input, &older).cost_when_bound(&input, &older) >= planned.bound, "{mix}");
    }
}
