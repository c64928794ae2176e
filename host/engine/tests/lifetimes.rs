//! When and why claims go on their own account, and what is looked after meanwhile.

mod common;

use common::door::{Door, names};
use common::{GIB, basics, bound, pod, pool, seconds, settings, told};
use whittle_engine::Engine;
use whittle_engine::report::{ClaimStep, Step};
use whittle_model::resources::{CPU, Resources};
use whittle_model::{
    Action, CapacityType, Duration, Event, Features, Instance, Interruption, ListPrice, Node, NodeClaim, NodeCondition, OfferingKey,
    Settings, Timestamp, keys,
};

/// As many nodes in use, each with a pod of its own; nothing goes for being empty.
fn nodes_in_use(count: usize, change: impl Fn(&mut whittle_model::NodePool)) -> Door {
    let mut general = pool("general");
    general.disruption.consolidate_after = None;
    general.template.expire_after = None;
    change(&mut general);
    let mut events = basics();
    events.push(Event::Settings(Settings { features: Features { node_repair: true, ..Features::default() }, ..settings() }));
    events.push(Event::NodePool(Box::new(general)));
    let mut door = Door::new(told(&events));
    for n in 0..count {
        door.put_pod(whittle_model::Pod { grace: seconds(600), ..pod(&format!("web-{n}"), 6000, GIB) });
    }
    door.pass(seconds(2));
    door.join();
    // Nodes open in turns.
    for _ in 0..2 * count {
        door.pass(seconds(1));
        door.bind_nominated();
    }
    assert_eq!(door.claims.values().filter(|c| c.status.initialized.is_some()).count(), count);
    door
}

fn reasons(actions: &[Action]) -> Vec<&str> {
    actions.iter().filter_map(|a| if let Action::DeleteClaim { reason, .. } = a { Some(reason.as_str()) } else { None }).collect()
}

fn steps(door: &mut Door) -> Vec<Step> {
    door.engine.take_reports().into_iter().flat_map(|r| r.steps).collect()
}

fn change_node(door: &mut Door, nth: usize, change: impl FnOnce(&mut Node)) {
    let mut node = door.nodes.values().nth(nth).cloned().expect("there are as many");
    change(&mut node);
    door.put_node(node);
}

#[test]
fn a_claim_expires_and_its_node_is_drained() {
    let mut door = nodes_in_use(1, |pool| pool.template.expire_after = Some(Duration::minutes(60)));
    let created = door.claims.values().next().unwrap().created;
    door.slow = true;
    let left = created.plus(Duration::minutes(60)).since(door.now);
    assert_eq!(reasons(&door.pass(Duration(left.0 - 1))), Vec::<&str>::new());
    let actions = door.pass(seconds(1));
    assert_eq!(reasons(&actions), ["Expired"]);
    assert!(names(&actions).contains(&"evict") && !names(&actions).contains(&"terminate"), "pods are asked");
}

#[test]
fn a_deleted_node_deletes_its_claim() {
    let mut door = nodes_in_use(2, |_| {});
    change_node(&mut door, 0, |node| node.deleting = true);
    let actions = door.pass(seconds(10));
    assert_eq!(reasons(&actions), ["NodeDeleted"]);
    assert_eq!((door.claims.len(), door.nodes.len()), (1, 1));
}

fn sick(name: &str, holds: Option<bool>, since: Timestamp) -> Vec<NodeCondition> {
    vec![NodeCondition { name: name.into(), holds, since }]
}

#[test]
fn nodes_that_stay_unhealthy_are_replaced_at_once_and_by_force() {
    for (name, holds, minutes) in [
        ("Ready", Some(false), Some(30)),
        ("Ready", None, Some(30)),
        ("AcceleratedHardwareReady", Some(false), Some(10)),
        ("KernelReady", Some(false), Some(30)),
        ("KernelReady", None, None),
        ("DiskPressure", Some(true), None),
        ("Ready", Some(true), None),
    ] {
        let mut door = nodes_in_use(1, |pool| pool.template.termination_grace_period = Some(Duration::minutes(600)));
        let annotations = common::labels(&[(keys::DO_NOT_DISRUPT, "true")]);
        let held =
            bound(whittle_model::Pod { annotations, grace: seconds(60), ..pod("web-0", 6000, GIB) }, door.nodes.keys().next().unwrap());
        door.put_pod(held);
        let since = door.now;
        change_node(&mut door, 0, |node| node.conditions = sick(name, holds, since));
        door.pass(Duration::minutes(40));
        let at = |of: &dyn Fn(&Action) -> bool| door.actions.iter().find(|(_, a)| of(a)).map(|(at, _)| at.since(since).0 / 60_000);
        assert_eq!(at(&|a| matches!(a, Action::DeleteClaim { reason, .. } if reason == "Unhealthy")), minutes, "{name} {holds:?}");
        assert_eq!(at(&|a| matches!(a, Action::DeletePod { grace_seconds: 1, .. })), minutes, "{name} {holds:?}: nothing holds its pods");
        let annotated = door.actions.iter().position(|(_, a)| matches!(a, Action::AnnotateClaim { .. }));
        let deleted = door.actions.iter().position(|(_, a)| matches!(a, Action::DeleteClaim { .. }));
        assert!(annotated <= deleted && annotated.is_some() == minutes.is_some(), "the end is noted first");
    }
}

#[test]
fn repair_stops_when_too_much_is_unhealthy() {
    let mut door = nodes_in_use(6, |_| {});
    let since = door.now;
    for nth in 0..3 {
        change_node(&mut door, nth, |node| node.conditions = sick("Ready", Some(false), since));
    }
    let actions = door.pass(Duration::minutes(45));
    assert_eq!(reasons(&actions), Vec::<&str>::new(), "three of six are more than a fifth, rounded up");
    let why: Vec<String> = steps(&mut door)
        .into_iter()
        .filter_map(|s| if let Step::Claim { what: ClaimStep::Kept(why), .. } = s { Some(why) } else { None })
        .collect();
    assert_eq!(why.len(), 3, "said once for each: {why:?}");
    assert!(why[0].contains("3 of 6 nodes of nodepool general"), "{why:?}");
    change_node(&mut door, 0, |node| node.conditions.clear());
    assert_eq!(reasons(&door.pass(Duration::minutes(2))), ["Unhealthy", "Unhealthy"]);
}

fn instance(provider_id: &str) -> Instance {
    Instance { provider_id: provider_id.into(), launched: Timestamp(0), group: None, claim: None, running: true }
}

#[test]
fn garbage_is_collected_up_to_a_limit_and_beyond_it_is_said() {
    let mut door = nodes_in_use(2, |_| {});
    let mut list: Vec<Instance> =
        door.claims.values().map(|c| Instance { claim: Some(c.name.clone()), ..instance(&c.status.provider_id) }).collect();
    list.extend((0..8).map(|n| instance(&format!("aws:///us-east-1a/i-stray{n}"))));
    door.now = door.now.plus(Duration::minutes(5));
    let ended = |actions: &[Action]| names(actions).iter().filter(|n| **n == "terminate stray").count();
    door.tell(&Event::Instances(list.clone()));
    assert_eq!(ended(&door.settle()), 5);
    assert!(steps(&mut door).contains(&Step::CollectionStopped { left: 3, most: 5 }));
    list.retain(|i| !["0", "1", "2", "3", "4"].iter().any(|n| i.provider_id.ends_with(&format!("stray{n}"))));
    door.now = door.now.plus(Duration::minutes(2));
    door.tell(&Event::Instances(list.clone()));
    assert_eq!(ended(&door.settle()), 0);
    assert!(steps(&mut door).is_empty(), "said once");
    door.now = door.now.plus(Duration::minutes(60));
    door.tell(&Event::Instances(list));
    assert_eq!(ended(&door.settle()), 3, "an hour later there is room again");
}

#[test]
fn claims_whose_instances_are_gone_all_at_once_are_not_believed() {
    let mut door = nodes_in_use(8, |_| {});
    door.now = door.now.plus(Duration::minutes(5));
    for nth in 0..8 {
        change_node(&mut door, nth, |node| node.ready = false);
    }
    door.tell(&Event::Instances(Vec::new()));
    assert_eq!(reasons(&door.settle()).len(), 5);
    let gone: Vec<String> =
        door.nodes.values().filter(|n| !n.taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT)).map(|n| n.name.clone()).collect();
    assert_eq!(gone.len(), 3);
    door.nodes.remove(&gone[0]);
    door.tell(&Event::NodeGone(gone[0].clone()));
    door.tell(&Event::Instances(Vec::new()));
    assert_eq!(reasons(&door.settle()), ["GarbageCollected"], "a node that is gone too is a second witness");
}

#[test]
fn a_drain_ends_when_its_instance_is_gone() {
    let mut door = nodes_in_use(1, |_| {});
    door.slow = true;
    let claim = door.claims.values().next().cloned().unwrap();
    door.put_claim(NodeClaim { deleting: true, deleted_at: Some(door.now), ..claim });
    assert!(!names(&door.pass(Duration::minutes(5))).contains(&"release claim"));
    door.tell(&Event::Instances(Vec::new()));
    assert_eq!(door.settle(), vec![], "a ready node is a running instance, whatever a list says");
    change_node(&mut door, 0, |node| node.ready = false);
    door.tell(&Event::Instances(Vec::new()));
    assert_eq!(names(&door.settle()), ["release node", "release claim"]);
}

/// S40.
#[test]
fn empty_is_no_identity() {
    let mut door = Door::new(told(&basics()));
    for name in ["k1", "k2"] {
        door.put_claim(NodeClaim { name: name.into(), node_pool: "general".into(), node_class: "default".into(), ..NodeClaim::default() });
    }
    door.put_node(Node { name: "new-1".into(), ready: true, ..Node::default() });
    door.tell(&Event::Instances(Vec::new()));
    for what in [Interruption::SpotInterrupted, Interruption::InstanceTerminated] {
        door.tell(&Event::Interrupted { provider_id: String::new(), what });
    }
    let actions = door.engine.poll(seconds_later(1), &mut ListPrice);
    assert!(actions.iter().all(|a| matches!(a, Action::Launch { .. })), "{:?}", names(&actions));
}

fn seconds_later(n: i64) -> Timestamp {
    Timestamp(0).plus(seconds(n))
}

/// S42.
#[test]
fn a_claim_that_the_watch_never_shows_is_forgotten_and_its_pods_are_planned_again() {
    let mut events = basics();
    events.push(Event::NodePool(Box::new(pool("general"))));
    let mut engine: Engine = told(&events);
    engine.handle(&Event::Pod(Box::new(pod("web", 1000, GIB))), Timestamp(0));
    let mut created = std::collections::BTreeSet::new();
    let mut now = Timestamp(0);
    while now.0 < 8 * 60_000 {
        for action in engine.poll(now, &mut ListPrice) {
            if let Action::CreateClaim(claim) = action {
                created.insert(claim.name);
            } else {
                assert!(matches!(&action, Action::DeleteClaim { reason, .. } if reason == "LaunchTimeout"), "{action:?}");
            }
        }
        now = engine.deadline(now).map_or(now.plus(Duration::minutes(8)), |d| d.at.max(now.plus(Duration(1))));
    }
    assert_eq!(created.len(), 2, "another took its place: {created:?}");
    assert_eq!(engine.world().claims().count(), 1);
}

#[test]
fn several_nodes_of_one_instance_are_none_of_a_claims() {
    let mut events = basics();
    events.push(Event::NodePool(Box::new(pool("general"))));
    let mut door = Door::new(told(&events));
    door.put_pod(pod("web", 1000, GIB));
    door.pass(seconds(2));
    let provider_id = door.claims.values().next().unwrap().status.provider_id.clone();
    for name in ["one", "two"] {
        door.put_node(Node { name: name.into(), provider_id: provider_id.clone(), ready: true, ..Node::default() });
    }
    let actions = door.pass(seconds(10));
    assert!(names(&actions).contains(&"update") && !names(&actions).contains(&"register"), "{:?}", names(&actions));
    let error = door.claims.values().next().unwrap().status.registration_error.clone().unwrap();
    assert_eq!(error, ("MultipleNodesFound".into(), "several nodes have its provider id: one, two".into()));
    door.nodes.remove("one");
    door.tell(&Event::NodeGone("one".into()));
    assert!(names(&door.pass(seconds(10))).contains(&"register"));
    assert_eq!(door.claims.values().next().unwrap().status.registration_error, None);
}

#[test]
fn a_node_that_is_less_than_was_bought_is_said_so() {
    let mut door = nodes_in_use(1, |_| {});
    let bought = door.claims.values().next().unwrap().status.capacity.clone();
    let with = |percent: i64| {
        let mut less = bought.clone();
        less.set(CPU, bought.get(CPU) * percent / 100);
        less
    };
    for (percent, short) in [(90, false), (89, true), (100, false)] {
        let capacity: Resources = with(percent);
        change_node(&mut door, 0, |node| node.capacity = capacity);
        door.pass(seconds(1));
        assert_eq!(door.claims.values().next().unwrap().status.inconsistent.is_some(), short, "{percent}");
    }
    let said = steps(&mut door);
    let texts =
        said.iter().filter(|s| matches!(s, Step::Claim { what: ClaimStep::Inconsistent(why), .. } if why.contains("of cpu, but found")));
    assert_eq!(texts.count(), 1, "{said:?}");
}

#[test]
fn labels_that_older_versions_did_not_write_are_added() {
    let mut door = nodes_in_use(1, |_| {});
    let mut claim = door.claims.values().next().cloned().unwrap();
    claim.labels.remove(keys::NODE_CLASS);
    let mut engine = told(&basics());
    change_node(&mut door, 0, |node| {
        node.labels.remove(keys::NODE_CLASS);
    });
    engine.handle(&Event::Node(Box::new(door.nodes.values().next().cloned().unwrap())), door.now);
    engine.handle(&Event::Claim(Box::new(claim)), door.now);
    let actions = engine.poll(door.now, &mut ListPrice);
    assert_eq!(names(&actions), ["update", "label node"], "{actions:?}");
    assert_eq!(engine.poll(door.now, &mut ListPrice), vec![]);
}

/// S44.
#[test]
fn messages_of_interruption_act_once_whatever_else_comes() {
    let mut door = nodes_in_use(1, |pool| pool.template.requirements.add(common::any_of(keys::CAPACITY_TYPE, &["spot"])));
    door.slow = true;
    let claim = door.claims.values().next().cloned().unwrap();
    let status = &claim.status;
    let key = OfferingKey { instance_type: status.instance_type.clone(), zone: status.zone.clone(), capacity_type: CapacityType::Spot };
    let tell = |door: &mut Door, id: &str, what| door.tell(&Event::Interrupted { provider_id: id.to_owned(), what });
    tell(&mut door, "aws:///us-east-1a/i-of-another-cluster", Interruption::SpotInterrupted);
    tell(&mut door, "", Interruption::InstanceTerminated);
    let id = status.provider_id.clone();
    tell(&mut door, &id, Interruption::RebalanceRecommendation);
    tell(&mut door, &id, Interruption::RebalanceRecommendation);
    assert_eq!(door.settle(), vec![]);
    let advised = steps(&mut door).iter().filter(|s| matches!(s, Step::Claim { what: ClaimStep::RebalanceAdvised, .. })).count();
    assert_eq!(advised, 1);
    // The queue does not always know the zone.
    let bare = format!("aws:////{}", id.rsplit('/').next().unwrap());
    for _ in 0..3 {
        tell(&mut door, &bare, Interruption::SpotInterrupted);
    }
    tell(&mut door, &id, Interruption::InstanceStopped);
    let actions = door.settle();
    assert_eq!(reasons(&actions), ["SpotInterrupted"]);
    let until = door.engine.world().sold_out_until(&key).unwrap();
    door.now = door.now.plus(seconds(60));
    tell(&mut door, &id, Interruption::SpotInterrupted);
    assert_eq!(reasons(&door.settle()), Vec::<&str>::new());
    assert_eq!(door.engine.world().sold_out_until(&key), Some(until), "a repeated message starts nothing anew");
    assert_eq!(door.engine.world().interruptions(&key, door.now).0, 1);
}

#[test]
fn a_broken_machine_gives_its_pods_no_time() {
    let mut door = nodes_in_use(1, |_| {});
    let id = door.claims.values().next().unwrap().status.provider_id.clone();
    for _ in 0..2 {
        door.tell(&Event::Interrupted { provider_id: id.clone(), what: Interruption::SystemStatus });
    }
    let actions = door.pass(seconds(10));
    assert_eq!(reasons(&actions), ["SystemStatus"]);
    assert_eq!(names(&actions)[..2], ["annotate", "delete"]);
    assert!(names(&actions).contains(&"delete pod") && !names(&actions).contains(&"evict"));
}
