//! Capacity buffers: nodes are bought and kept for pods to come, and nobody hears of those pods.

mod common;

use common::{GIB, NOW, basics, join, objections, pod, pool, settings, told};
use whittle_engine::Engine;
use whittle_engine::report::Step;
use whittle_model::{Action, CapacityBuffer, Event, Features, ListPrice, NodeClaim, PodKey, Settings, Timestamp};

fn buffer(count: u32, cpu: i64) -> Event {
    let template = pod("template", cpu, GIB);
    Event::CapacityBuffer(Box::new(CapacityBuffer { key: PodKey::new("default", "spare"), template, count }))
}

fn engine(gate: bool, events: &[Event]) -> Engine {
    let mut all = basics();
    let features = Features { capacity_buffer: gate, ..Features::default() };
    all.push(Event::Settings(Settings { features, ..settings() }));
    all.push(Event::NodePool(Box::new(pool("p"))));
    all.extend(events.iter().cloned());
    told(&all)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1000)
}

fn created(actions: &[Action]) -> Vec<NodeClaim> {
    actions.iter().filter_map(|a| if let Action::CreateClaim(claim) = a { Some((**claim).clone()) } else { None }).collect()
}

/// The claim is written, bought as an m.8, and its node is ready.
fn boot(engine: &mut Engine, claim: &NodeClaim, now: Timestamp) -> Vec<Action> {
    engine.handle(&Event::Claim(Box::new(claim.clone())), now);
    join(engine, claim, "m.8", now)
}

#[test]
fn room_is_bought_and_kept_without_a_word() {
    let mut engine = engine(true, &[buffer(3, 2000)]);
    let claims = created(&engine.poll(at(2), &mut ListPrice));
    assert_eq!(claims.len(), 1, "three of them share an m.8 or what is cheaper");
    for report in engine.take_reports() {
        assert!(report.objections.is_empty(), "{report:?}");
        for step in report.steps {
            if let Step::Planned(planned) = step {
                assert!(planned.pods.is_empty());
            }
        }
    }
    let after = boot(&mut engine, &claims[0], at(3));
    assert!(after.iter().all(|a| !matches!(a, Action::Nominate { .. } | Action::DeleteClaim { .. })), "{after:?}");
    // A day of nothing: the node stays, and nothing is bought.
    for hour in 1..24 {
        let actions = engine.poll(at(hour * 3600), &mut ListPrice);
        assert!(created(&actions).is_empty() && !actions.iter().any(|a| matches!(a, Action::DeleteClaim { .. })), "{actions:?}");
        engine.handle(&buffer(3, 2000), at(hour * 3600));
    }
    let again = Engine::restore(engine.checkpoint());
    assert_eq!(again.plan(at(90_000), &mut ListPrice), engine.plan(at(90_000), &mut ListPrice));
    engine.handle(&Event::CapacityBufferGone(PodKey::new("default", "spare")), at(90_000));
    let gone: Vec<Action> = (0..3).flat_map(|n| engine.poll(at(90_000 + n * 60), &mut ListPrice)).collect();
    assert!(gone.iter().any(|a| matches!(a, Action::DeleteClaim { .. })), "{gone:?}");
}

#[test]
fn pods_that_are_there_come_first() {
    let engine = engine(true, &[buffer(2, 3000), Event::Pod(Box::new(pod("real", 1000, GIB)))]);
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(objections(&engine, &plan), vec![]);
    assert_eq!(plan.nodes.iter().map(|n| n.pods.len()).sum::<usize>(), 3);
    let mut limited = pool("p");
    limited.limits.amounts.push(("cpu".to_owned(), 2000));
    let mut small = engine.clone();
    small.handle(&Event::NodePool(Box::new(limited)), NOW);
    let plan = small.plan(NOW, &mut ListPrice);
    assert_eq!(plan.nodes.iter().flat_map(|n| &n.pods).map(|p| p.name.as_str()).collect::<Vec<_>>(), ["real"]);
}

#[test]
fn a_buffer_that_grows_buys_more_and_without_the_gate_nothing() {
    let mut small = engine(true, &[buffer(1, 7000)]);
    let first = created(&small.poll(at(2), &mut ListPrice));
    boot(&mut small, &first[0], at(3));
    small.handle(&buffer(2, 7000), at(10));
    assert_eq!(created(&small.poll(at(12), &mut ListPrice)).len(), 1);
    let mut shut = engine(false, &[buffer(5, 7000)]);
    assert_eq!(shut.poll(at(12), &mut ListPrice), vec![]);
}
