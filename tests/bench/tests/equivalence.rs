//! The engine's greedy against the plain reference: same nodes, same cost, same pods left over. And
//! the default portfolio against both: never dearer than greedy, never below the bound.

mod clusters;

use whittle_bench::markets::{self, Set};
use whittle_bench::ours::{Ours, Planned};
use whittle_bench::reference::Reference;
use whittle_bench::{Input, bound, fixtures};
use whittle_model::{Packing, Settings};

fn plan(input: &Input, packing: Packing) -> Planned {
    Planned::from(&Ours::new(input, &Settings { packing, ..Settings::default() }).plan())
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
        for set in Set::ALL {
            let market = markets::real(set).unwrap();
            agree(&format!("generic {count} on {}", set.name()), &market.with_pods(fixtures::generic(&draws)));
        }
    }
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

#[test]
fn greedy_agrees_on_random_clusters_with_every_constraint() {
    let market = clusters::few_types(&markets::real(Set::All).unwrap());
    let parted = (0..300).filter_map(|seed| Some((seed, disagreement(&clusters::random(&market, seed))?)));
    let parted: Vec<_> = parted.collect();
    assert!(parted.is_empty(), "clusters by seed: {parted:#?}");
}

#[test]
fn the_portfolio_lies_between_bound_and_greedy() {
    for set in Set::ALL {
        let market = markets::real(set).unwrap();
        for mix in fixtures::MIXES {
            let input = market.with_pods(fixtures::mix(mix, 200).unwrap());
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
        let input = market.with_pods(fixtures::mix(mix, 150).unwrap());
        let nominating = Settings::default();
        let older = Settings { kubernetes_minor: 34, ..Settings::default() };
        assert!(nominating.nominates() && !older.nominates());
        let planned = plan(&input, Packing::Cost);
        assert_eq!(Ours::new(&input, &nominating).cost_when_bound(&input, &nominating), planned.cost, "{mix}");
        assert!(Ours::new(&input, &older).cost_when_bound(&input, &older) >= planned.bound, "{mix}");
    }
}
