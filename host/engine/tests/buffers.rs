//! Capacity buffers: nodes are bought and kept for pods to come, and nobody hears of those pods.

mod common;

use common::door::Door;
use common::{GIB, NOW, basics, bound, join, node, objections, pod, pool, seconds, settings, told};
use whittle_engine::report::Step;
use whittle_engine::{BufferRoom, Engine};
use whittle_model::{
    Action, CapacityBuffer, Duration, Event, Features, ListPrice, NodeClaim, PodKey, Requirement, Settings, Timestamp, keys,
};

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

/// A cluster with one pool whose nodes are of two cores and bought on demand, in which room is kept for one-core pods.
fn small_nodes(count: u32) -> Door {
    let mut twos = pool("p");
    twos.template.requirements.add(Requirement::any_of(keys::INSTANCE_TYPE, &["c.2"]));
    twos.template.requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]));
    twos.disruption.consolidate_after = Some(Duration(0));
    let features = Features { capacity_buffer: true, ..Features::default() };
    let mut events = vec![Event::Settings(Settings { features, ..settings() })];
    events.extend(basics().into_iter().filter(|event| !matches!(event, Event::Settings(_))));
    events.extend([Event::NodePool(Box::new(twos)), buffer(count, 1000)]);
    let mut door = Door::new(told(&events));
    grow(&mut door);
    door
}

/// What was bought joins the cluster and is ready; what was ordered.
fn grow(door: &mut Door) -> Vec<Action> {
    let mut all = door.pass(seconds(5));
    door.join();
    all.extend(door.pass(seconds(20)));
    all
}

fn room(door: &Door) -> Option<BufferRoom> {
    door.engine.world().buffer_rooms().get(&PodKey::new("default", "spare")).copied()
}

fn deleted(actions: &[Action]) -> Vec<&str> {
    actions.iter().filter_map(|a| if let Action::DeleteClaim { reason, .. } = a { Some(reason.as_str()) } else { None }).collect()
}

#[test]
fn a_buffer_says_how_much_room_it_has() {
    let mut twos = small_nodes(0);
    assert_eq!(room(&twos), Some(BufferRoom::default()), "there is nothing to look for");
    twos.tell(&buffer(2, 1000));
    assert_eq!(room(&twos), None, "no plan has looked at it");
    twos.pass(seconds(2));
    assert_eq!(room(&twos), Some(BufferRoom { coming: 2, ..BufferRoom::default() }));
    grow(&mut twos);
    assert_eq!(room(&twos), Some(BufferRoom { ready: 2, ..BufferRoom::default() }));
    twos.tell(&buffer(2, 1500));
    assert_eq!(room(&twos), None, "its pods are other pods");
    twos.pass(seconds(2));
    assert_eq!(room(&twos), Some(BufferRoom { ready: 2, ..BufferRoom::default() }));
    twos.tell(&buffer(3, 9000));
    twos.pass(seconds(2));
    assert_eq!(room(&twos), Some(BufferRoom { missing: 3, ..BufferRoom::default() }), "no node of two cores holds them");
    assert_eq!(room(&twos).unwrap().wanted(), 3);
}

#[test]
fn room_on_nodes_of_others_counts() {
    let mut door = small_nodes(0);
    door.put_node(node("theirs", "c.4", "us-east-1a"));
    door.tell(&buffer(2, 1000));
    assert_eq!(created(&door.pass(seconds(5))), vec![]);
    assert_eq!(room(&door), Some(BufferRoom { ready: 2, ..BufferRoom::default() }));
    door.put_pod(bound(pod("user", 3000, GIB), "theirs"));
    assert_eq!(created(&door.pass(seconds(5))).len(), 2, "room that is used is bought anew");
    door.remove_pod(&PodKey::new("default", "user"));
    door.tell(&buffer(3, 1000));
    door.pass(seconds(5));
    assert_eq!(room(&door).unwrap().ready, 1, "two have their nodes on the way");
    door.tell(&Event::NodeGone("theirs".to_owned()));
    assert_eq!(room(&door), None);
    assert_eq!(created(&door.pass(seconds(5))).len(), 1);
}

#[test]
fn room_that_pods_take_is_bought_anew() {
    let mut door = small_nodes(2);
    assert_eq!(door.nodes.len(), 2);
    // kube-scheduler had a place for it at once: it never waited.
    let first = door.nodes.keys().next().cloned().unwrap();
    door.put_pod(bound(pod("user", 1500, GIB), &first));
    assert_eq!(created(&door.pass(seconds(3))).len(), 1);
    grow(&mut door);
    assert_eq!(room(&door), Some(BufferRoom { ready: 2, ..BufferRoom::default() }));
    // A pod that leaves it as it is changes nothing.
    let last = door.nodes.keys().next_back().cloned().unwrap();
    door.put_pod(bound(pod("small", 100, GIB), &last));
    assert_eq!(created(&door.pass(seconds(600))), vec![]);
}

#[test]
fn a_node_with_room_is_not_empty_but_may_be_exchanged() {
    let mut door = small_nodes(2);
    assert_eq!(deleted(&door.pass(seconds(600))), Vec::<&str>::new());
    // Drift takes them one after the other, and the room moves along.
    let before: Vec<String> = door.claims.keys().cloned().collect();
    for claim in &before {
        door.tell(&Event::ProviderDrift { claim: claim.clone(), reason: Some("AMIDrift".to_owned()) });
    }
    let mut grown = 0;
    while before.iter().any(|claim| door.claims.contains_key(claim)) {
        grow(&mut door);
        grown += 1;
        assert!(grown <= 4, "two nodes are exchanged within two minutes: {:?}", door.claims.keys());
    }
    assert_eq!((door.claims.len(), room(&door)), (2, Some(BufferRoom { ready: 2, ..BufferRoom::default() })));
    // A node that goes for good leaves its room to be bought again, before it is gone.
    let doomed = door.claims.values().next().cloned().unwrap();
    door.put_claim(NodeClaim { deleting: true, ..doomed });
    assert_eq!(room(&door), None);
    assert_eq!(created(&door.pass(seconds(2))).len(), 1);
    grow(&mut door);
    assert_eq!(room(&door), Some(BufferRoom { ready: 2, ..BufferRoom::default() }));
    door.tell(&Event::CapacityBufferGone(PodKey::new("default", "spare")));
    assert_eq!(deleted(&door.pass(seconds(60))), ["Empty", "Empty"]);
}

#[test]
fn nodes_are_emptied_only_if_their_room_is_found_elsewhere() {
    // Two pods and the room for a third fit on two nodes, but not on one.
    let mut door = small_nodes(3);
    let nodes: Vec<String> = door.nodes.keys().cloned().collect();
    assert_eq!(nodes.len(), 3);
    for (number, node) in nodes.iter().enumerate().take(2) {
        door.put_pod(bound(pod(&format!("user-{number}"), 600, GIB / 4), node));
    }
    assert_eq!(deleted(&door.pass(seconds(600))), Vec::<&str>::new(), "there would be room for two only");
    door.tell(&buffer(1, 1000));
    door.pass(seconds(300));
    assert_eq!((door.claims.len(), room(&door)), (2, Some(BufferRoom { ready: 1, ..BufferRoom::default() })));
}

#[test]
fn drift_does_not_wait_for_room_that_cannot_be_bought() {
    let mut door = small_nodes(1);
    let mut full = door.engine.world().pools().next().cloned().unwrap();
    full.limits.amounts.push(("cpu".to_owned(), 2000));
    door.tell(&Event::NodePool(Box::new(full)));
    let claim = door.claims.keys().next().cloned().unwrap();
    door.tell(&Event::ProviderDrift { claim: claim.clone(), reason: Some("AMIDrift".to_owned()) });
    for _ in 0..10 {
        grow(&mut door);
    }
    assert!(!door.claims.contains_key(&claim));
    assert_eq!((door.claims.len(), room(&door)), (1, Some(BufferRoom { ready: 1, ..BufferRoom::default() })));
}

#[test]
fn who_asks_for_the_pods_of_the_cluster_hears_nothing_of_buffers() {
    let door = small_nodes(3);
    assert_eq!((door.engine.world().pod_keys().count(), door.engine.world().pending().count()), (0, 0));
}
