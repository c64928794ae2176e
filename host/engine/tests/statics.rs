//! Pools that keep a number of nodes: growth within limits, the order in which they shrink, pods that never make
//! them grow.

mod common;

use std::collections::BTreeMap;

use common::{GIB, NOW, basics, bound, catalog, join, pod, pool, settings, told};
use whittle_engine::{Engine, Timer};
use whittle_model::{
    Action, DisruptionSettings, Duration, Event, Features, LaunchFailure, ListPrice, NodeClaim, NodePool, OfferingKey, Outcome, Pod,
    Settings, Timestamp, keys,
};

fn keeps(replicas: u32) -> NodePool {
    let mut pool = pool("fixed");
    pool.replicas = Some(replicas);
    pool
}

fn engine(pools: &[NodePool]) -> Engine {
    let mut events = basics();
    // Moves are looked for so seldom that the deadline of what is bought shows: `deadline` tells the earliest alone.
    let disruption = DisruptionSettings { every: Duration::hours(1), ..DisruptionSettings::default() };
    let features = Features { static_capacity: true, ..Features::default() };
    events.push(Event::Settings(Settings { features, disruption, ..settings() }));
    events.extend(pools.iter().map(|p| Event::NodePool(Box::new(p.clone()))));
    told(&events)
}

fn created(actions: &[Action]) -> Vec<NodeClaim> {
    let of = |action: &Action| if let Action::CreateClaim(claim) = action { Some((**claim).clone()) } else { None };
    actions.iter().filter_map(of).collect()
}

fn deleted(actions: &[Action]) -> Vec<String> {
    let of = |action: &Action| if let Action::DeleteClaim { claim, .. } = action { Some(claim.clone()) } else { None };
    actions.iter().filter_map(of).collect()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1000)
}

/// Polls twice so that nothing more follows; answers what was created.
fn settle(engine: &mut Engine, now: Timestamp) -> Vec<NodeClaim> {
    let first = created(&engine.poll(now, &mut ListPrice));
    for claim in &first {
        engine.handle(&Event::Claim(Box::new(claim.clone())), now);
    }
    assert_eq!(created(&engine.poll(now, &mut ListPrice)), vec![], "what is planned is not planned twice");
    first
}

#[test]
fn nodes_are_bought_up_to_the_number_and_within_the_limit() {
    for (replicas, limit, want) in [(3, None, 3), (3, Some(2), 2), (0, None, 0), (5, Some(0), 0)] {
        let mut pool = keeps(replicas);
        pool.limits.amounts.extend(limit.map(|n| ("nodes".to_owned(), n)));
        let mut engine = engine(&[pool]);
        let claims = settle(&mut engine, NOW);
        assert_eq!(claims.len(), want, "{replicas} within {limit:?}");
        let short = want < usize::try_from(replicas).unwrap();
        let due = engine.deadline(NOW).filter(|d| d.why == Timer::Replicas);
        assert_eq!(due.map(|d| d.at), short.then(|| at(30)), "{replicas} within {limit:?}");
        for claim in claims {
            assert_eq!(claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values().len(), 8, "every type will do");
            assert!(claim.requests.is_empty(), "no pods stand behind it");
        }
    }
}

#[test]
fn pods_do_not_make_it_grow_but_use_what_is_there() {
    let mut engine = engine(&[keeps(1)]);
    let claims = settle(&mut engine, NOW);
    engine.handle(&Event::Pod(Box::new(pod("big", 30_000, GIB))), NOW);
    engine.poll(at(2), &mut ListPrice);
    let report = engine.plan(at(2), &mut ListPrice);
    assert_eq!(report.unplaced[0].reasons[0].why.to_string(), "it is static: its replicas are 1, whatever pods ask for");
    join(&mut engine, &claims[0], "c.8", at(3));
    engine.handle(&Event::Pod(Box::new(pod("small", 3000, GIB))), at(3));
    let plan = engine.plan(at(3), &mut ListPrice);
    assert_eq!((plan.placed.len(), plan.nodes.len()), (1, 0));
    for _ in 0..3 {
        assert_eq!(deleted(&engine.poll(at(4000), &mut ListPrice)), Vec::<String>::new(), "an empty one stays");
    }
}

#[test]
fn a_claim_that_fails_is_bought_again_once_something_is_for_sale() {
    let mut engine = engine(&[keeps(1)]);
    let claims = settle(&mut engine, NOW);
    let all: Vec<OfferingKey> = catalog("default")
        .types
        .iter()
        .flat_map(|t| {
            t.offerings.iter().map(|o| OfferingKey { instance_type: t.name.clone(), zone: o.zone.clone(), capacity_type: o.capacity_type })
        })
        .collect();
    let failure = LaunchFailure::InsufficientCapacity(all);
    engine.handle(&Event::Outcome(Box::new(Outcome::LaunchFailed { claim: claims[0].name.clone(), failure })), at(1));
    assert_eq!(created(&engine.poll(at(1), &mut ListPrice)), vec![], "nothing is for sale");
    engine.handle(&Event::ClaimGone(claims[0].name.clone()), at(2));
    assert_eq!(created(&engine.poll(at(2), &mut ListPrice)), vec![]);
    let due = engine.deadline(at(2)).unwrap();
    assert_eq!((due.at, due.why), (at(32), Timer::Replicas));
    assert_eq!(created(&engine.poll(at(200), &mut ListPrice)).len(), 1);
}

#[test]
fn it_shrinks_by_what_is_least_missed() {
    for wish in ["true", "2h"] {
        shrinks_in_order(wish);
    }
}

/// Not launched, empty, one cheap pod, two pods, and last the one that must not be disturbed.
fn shrinks_in_order(wish: &str) {
    let mut engine = engine(&[keeps(5)]);
    let claims = settle(&mut engine, NOW);
    for claim in &claims[..4] {
        join(&mut engine, claim, "c.8", NOW);
    }
    let on = |number: usize| format!("node-{}", claims[number].name);
    let annotated = |pod: Pod, key: &str, value: &str| {
        let annotations = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Pod { annotations, ..pod }
    };
    let two = ["a", "b"].map(|name| bound(pod(name, 100, GIB), &on(0)));
    let guarded = annotated(bound(pod("c", 100, GIB), &on(1)), keys::DO_NOT_DISRUPT, wish);
    let cheap = annotated(bound(pod("d", 100, GIB), &on(2)), "controller.kubernetes.io/pod-deletion-cost", "-1000000");
    for one in two.into_iter().chain([guarded, cheap]) {
        engine.handle(&Event::Pod(Box::new(one)), NOW);
    }
    let order = [4, 3, 2, 0, 1];
    let mut gone = Vec::new();
    for (left, number) in (0..5).rev().zip(order) {
        engine.handle(&Event::NodePool(Box::new(keeps(left))), at(1));
        gone.extend(deleted(&engine.poll(at(1), &mut ListPrice)));
        assert_eq!(gone.last(), Some(&claims[number].name), "down to {left}, {wish}");
    }
    assert_eq!(gone.len(), 5);
}

#[test]
fn without_the_gate_nothing_happens() {
    let mut engine = engine(&[keeps(2)]);
    engine.handle(&Event::Settings(settings()), NOW);
    assert_eq!(engine.poll(NOW, &mut ListPrice), vec![]);
}
