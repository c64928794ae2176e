//! A claim's way from intent to a node in use and out again, against a door that answers well,
//! badly or not at all.

mod common;

use common::door::{Door, Launching, names, outcome};
use common::{GIB, basics, bound, pod, pool, seconds, taint, told};
use whittle_engine::report::Step;
use whittle_engine::{Engine, Timer};
use whittle_model::{
    Action, CapacityType, Duration, Event, LaunchFailure, ListPrice, NodeClaim, OfferingKey, Outcome, Pod, PodKey, Timestamp, keys,
};

fn door_with(pools: Vec<whittle_model::NodePool>) -> Door {
    let mut events = basics();
    events.extend(pools.into_iter().map(|p| Event::NodePool(Box::new(p))));
    Door::new(told(&events))
}

/// One pool whose empty nodes go after a minute.
fn door() -> Door {
    let mut general = pool("general");
    general.disruption.consolidate_after = Some(Duration::minutes(1));
    door_with(vec![general])
}

fn with_pods(mut door: Door, count: usize) -> Door {
    for n in 0..count {
        door.put_pod(pod(&format!("web-{n}"), 1000, GIB));
    }
    door
}

fn reason(action: &Action) -> Option<&str> {
    if let Action::DeleteClaim { reason, .. } = action { Some(reason) } else { None }
}

fn reasons(actions: &[Action]) -> Vec<&str> {
    actions.iter().filter_map(reason).collect()
}

fn count(actions: &[Action], name: &str) -> usize {
    names(actions).iter().filter(|n| **n == name).count()
}

fn only_claim(door: &Door) -> NodeClaim {
    assert_eq!(door.claims.len(), 1);
    door.claims.values().next().cloned().expect("there is one")
}

#[test]
fn a_node_lives_from_launch_to_removal() {
    let mut door = with_pods(door(), 3);
    assert_eq!(names(&door.pass(seconds(2))), ["create", "launch", "update"]);
    let claim = only_claim(&door);
    assert!(!claim.status.provider_id.is_empty() && claim.labels.contains_key(keys::ZONE));

    door.join();
    let actions = door.pass(seconds(1));
    for (name, times) in [("register", 1), ("initialize", 0), ("update", 1), ("tag", 1), ("nominate", 3), ("create", 0), ("launch", 0)] {
        assert_eq!(count(&actions, name), times, "{name}: {:?}", names(&actions));
    }
    let node = door.nodes.values().next().unwrap();
    assert!(node.taints.iter().all(|t| t.key != keys::UNREGISTERED_TAINT));
    assert_eq!(node.labels.get(keys::NODE_POOL).map(String::as_str), Some("general"));
    assert!(only_claim(&door).status.initialized.is_some());
    assert_eq!(door.bind_nominated(), 3);
    assert_eq!(names(&door.pass(Duration::minutes(10))), ["update"], "a node in use says that it may be moved, and is left alone");

    for key in door.pods.keys().cloned().collect::<Vec<_>>() {
        door.remove_pod(&key);
    }
    assert_eq!(names(&door.pass(seconds(59))), ["update"], "not before it was empty for a minute");
    assert_eq!(reasons(&door.pass(seconds(15))), [""; 0], "it is looked at again before it goes");
    let actions = door.pass(seconds(9));
    assert_eq!(reasons(&actions), ["Empty"]);
    assert_eq!(names(&actions), ["delete", "cordon", "update", "update", "terminate", "release node", "release claim"]);
    assert!(door.claims.is_empty() && door.nodes.is_empty());
    assert_eq!(door.pass(Duration::minutes(60)), vec![]);
    assert_eq!(door.engine.deadline(door.now), None, "nothing is waited for any more");
}

#[test]
fn a_node_is_initialized_only_when_its_startup_taints_are_gone() {
    let mut slow = pool("slow");
    slow.template.startup_taints = vec![taint("starting")];
    let mut door = with_pods(door_with(vec![slow]), 1);
    door.pass(seconds(2));
    door.join();
    let actions = door.pass(Duration::minutes(5));
    assert_eq!((count(&actions, "register"), count(&actions, "initialize")), (1, 0));
    assert_eq!(count(&actions, "create"), 0, "its pods wait for it");
    door.finish_boot();
    assert_eq!(count(&door.pass(seconds(1)), "initialize"), 1);
}

#[test]
fn a_launch_without_answer_times_out_and_is_not_forgotten() {
    let mut door = with_pods(door(), 1);
    door.launching = Launching::Silent;
    door.pass(seconds(2));
    let claim = only_claim(&door).name;
    let before = door.pass(seconds(5 * 60 - 3));
    assert_eq!(reasons(&before), Vec::<&str>::new());
    let after = door.pass(seconds(3));
    assert_eq!(reasons(&after), ["LaunchTimeout"]);
    let later = door.pass(seconds(50));
    assert_eq!(count(&after, "release claim") + count(&later, "release claim"), 0, "its instance may exist");

    // The answer comes after all: the instance is ended before the claim is let go.
    let late = door.buy(&claim);
    door.tell(&late);
    let actions = door.pass(seconds(1));
    let of_claim = |a: &&Action| matches!(a, Action::Terminate { claim: c } | Action::ReleaseClaim { claim: c } if *c == claim);
    let wound_up: Vec<Action> = actions.iter().filter(of_claim).cloned().collect();
    assert_eq!(names(&wound_up), ["terminate", "release claim"]);
}

#[test]
fn a_launch_that_nobody_ever_answers_is_ended_before_its_claim_is_let_go() {
    let mut door = with_pods(door(), 1);
    door.launching = Launching::Silent;
    door.pass(seconds(2));
    let claim = only_claim(&door).name;
    let actions = door.pass(Duration::minutes(8));
    let of_claim = |a: &&Action| matches!(a, Action::Terminate { claim: c } | Action::ReleaseClaim { claim: c } if *c == claim);
    let wound_up: Vec<Action> = actions.iter().filter(of_claim).cloned().collect();
    assert_eq!(names(&wound_up), ["terminate", "release claim"], "an instance may carry its tag");
}

#[test]
fn a_deleted_claim_waits_for_the_answer_to_its_launch() {
    let mut door = with_pods(door(), 1);
    door.launching = Launching::Silent;
    door.pass(seconds(2));
    let claim = only_claim(&door);
    door.put_claim(NodeClaim { deleting: true, ..claim.clone() });
    assert_eq!(count(&door.pass(seconds(20)), "release claim"), 0);
    let failure = LaunchFailure::Other("Throttled".to_owned(), "later".to_owned());
    door.tell(&outcome(Outcome::LaunchFailed { claim: claim.name.clone(), failure }));
    assert!(door.pass(seconds(1)).contains(&Action::ReleaseClaim { claim: claim.name }));
}

#[test]
fn a_node_that_never_joins_times_out_after_fifteen_minutes() {
    let mut door = with_pods(door(), 1);
    door.pass(seconds(2));
    let first = only_claim(&door).name;
    let actions = door.pass(seconds(15 * 60 - 3));
    assert_eq!(reasons(&actions), Vec::<&str>::new());
    let actions = door.pass(seconds(5));
    assert_eq!(reasons(&actions), ["RegistrationTimeout"]);
    assert!(actions.contains(&Action::Terminate { claim: first.clone() }) && actions.contains(&Action::ReleaseClaim { claim: first }));
    assert_eq!(count(&actions, "create"), 1, "its pod is planned for again");
}

#[test]
fn a_node_that_is_never_ready_times_out_after_thirty_minutes() {
    let mut door = with_pods(door(), 1);
    door.boots = false;
    door.pass(seconds(2));
    door.join();
    door.pass(seconds(20)); // it keeps its taint meanwhile, for its pods to be nominated
    let actions = door.pass(seconds(30 * 60 - 3));
    assert_eq!(reasons(&actions), Vec::<&str>::new());
    assert_eq!(reasons(&door.pass(seconds(5))), ["InitializationTimeout"]);
}

fn spot(door: &Door) -> impl Iterator<Item = OfferingKey> + use<> {
    let all: Vec<OfferingKey> = door
        .catalog
        .types
        .iter()
        .flat_map(|t| {
            let key = |zone: &str| OfferingKey { instance_type: t.name.clone(), zone: zone.to_owned(), capacity_type: CapacityType::Spot };
            common::ZONES.map(key)
        })
        .collect();
    all.into_iter()
}

fn paying(name: &str, how: &str, weight: i32) -> whittle_model::NodePool {
    let mut pool = pool(name);
    pool.weight = weight;
    pool.template.requirements.add(common::any_of(keys::CAPACITY_TYPE, &[how]));
    pool
}

#[test]
fn what_is_sold_out_is_left_alone_for_three_minutes_and_something_else_is_bought() {
    let mut door = with_pods(door_with(vec![paying("cheap", "spot", 50), paying("sure", "on-demand", 0)]), 1);
    door.sold_out = spot(&door).collect();
    let actions = door.pass(seconds(5));
    assert_eq!(reasons(&actions), ["InsufficientCapacity"]);
    assert_eq!(only_claim(&door).node_pool, "sure");
    let key = spot(&door).next().unwrap();
    let until = door.engine.world().sold_out_until(&key).unwrap();
    assert!((Duration::minutes(3).0 - 5000..=Duration::minutes(3).0 + 5000).contains(&until.0));
    door.now = until;
    door.settle();
    assert_eq!(door.engine.world().sold_out_until(&key), None);
}

#[test]
fn pods_wait_for_what_is_sold_out_and_are_planned_again() {
    let mut door = with_pods(door_with(vec![paying("cheap", "spot", 0)]), 1);
    door.sold_out = spot(&door).collect();
    let actions = door.pass(seconds(10));
    assert_eq!(count(&actions, "create"), 1, "it is not asked for again while it is known to be sold out");
    assert!(door.claims.is_empty());
    assert_eq!(door.engine.deadline(door.now).unwrap().why, Timer::SoldOut);
    door.sold_out.clear();
    let actions = door.pass(Duration::minutes(3));
    assert_eq!((count(&actions, "create"), count(&actions, "launch")), (1, 1));
    assert!(!only_claim(&door).status.provider_id.is_empty());
}

#[test]
fn other_failures_back_off_until_the_launch_times_out() {
    let mut door = with_pods(door(), 1);
    door.launching = Launching::Fails("Throttled".to_owned());
    door.pass(seconds(2));
    let claim = only_claim(&door).name;
    assert_eq!(only_claim(&door).status.launch_error.unwrap().0, "Throttled");
    door.pass(Duration::minutes(4));
    let tries: Vec<i64> =
        door.actions.iter().filter(|(_, a)| matches!(a, Action::Launch { claim: c, .. } if *c == claim)).map(|(at, _)| at.0).collect();
    let gaps: Vec<i64> = tries.windows(2).map(|w| (w[1] - w[0]) / 1000).collect();
    assert_eq!(gaps[..6], [1, 2, 4, 8, 16, 32]);
    assert_eq!(reasons(&door.pass(Duration::minutes(1))), ["LaunchTimeout"]);
    assert!(door.actions.iter().any(|(_, a)| *a == Action::ReleaseClaim { claim: claim.clone() }), "no instance can exist");
}

#[test]
fn late_and_repeated_sights_of_a_claim_do_not_undo_what_is_known() {
    let mut door = with_pods(door(), 1);
    door.launching = Launching::Silent;
    door.pass(seconds(2));
    let fresh = only_claim(&door);
    let bought = door.buy(&fresh.name);
    door.tell(&bought);
    door.tell(&bought);
    let launched = door.engine.world().claim(&fresh.name).unwrap().clone();
    door.tell(&Event::Claim(Box::new(fresh.clone())));
    assert_eq!(door.engine.world().claim(&fresh.name).unwrap().status, launched.status);
    let actions = door.pass(seconds(200));
    assert_eq!((count(&actions, "launch"), count(&actions, "create")), (0, 0), "{:?}", names(&actions));
    let known = door.engine.world().claim(&fresh.name).unwrap();
    assert_eq!((&known.status.provider_id, known.labels.get(keys::ZONE)), (&launched.status.provider_id, launched.labels.get(keys::ZONE)));

    door.join();
    door.pass(seconds(1));
    let in_use = door.engine.world().claim(&fresh.name).unwrap().clone();
    assert!(in_use.status.initialized.is_some());
    for stale in [fresh.clone(), launched] {
        door.tell(&Event::Claim(Box::new(stale)));
        let known = &door.engine.world().claim(&fresh.name).unwrap().status;
        assert_eq!((known.registered, known.initialized), (in_use.status.registered, in_use.status.initialized));
    }
    let actions = door.pass(seconds(10));
    for name in ["launch", "register", "initialize", "delete"] {
        assert_eq!(count(&actions, name), 0, "{name}");
    }
}

#[test]
fn nothing_is_launched_before_the_watch_shows_the_claim() {
    let mut engine: Engine = door().engine;
    engine.handle(&Event::Pod(Box::new(pod("web", 1000, GIB))), Timestamp(0));
    let first = engine.poll(Timestamp(1000), &mut ListPrice);
    assert_eq!(names(&first), ["create"]);
    assert_eq!(engine.poll(Timestamp(30_999), &mut ListPrice), vec![], "one order at a time");
    let again = engine.poll(Timestamp(31_000), &mut ListPrice);
    assert_eq!(again, first, "an order without effect is given again");
    let Action::CreateClaim(claim) = &again[0] else { unreachable!("it creates") };
    engine.handle(&Event::Claim(claim.clone()), Timestamp(32_000));
    assert_eq!(names(&engine.poll(Timestamp(32_000), &mut ListPrice)), ["launch"]);
}

#[test]
fn planning_waits_for_a_quiet_second_and_ten_at_most() {
    let mut door = door();
    for n in 0..24 {
        door.put_pod(pod(&format!("web-{n}"), 100, GIB / 8));
        let actions = door.pass(Duration(400));
        assert_eq!(names(&actions), Vec::<&str>::new(), "after {} ms", door.now.0);
    }
    door.put_pod(pod("last", 100, GIB / 8));
    let actions = door.pass(Duration(400));
    assert!(count(&actions, "create") > 0, "ten seconds are over");
    door.put_pod(pod("later", 7000, GIB / 8));
    assert_eq!(count(&door.pass(Duration(999)), "create"), 0);
    assert_eq!(count(&door.pass(Duration(1)), "create"), 1, "a quiet second is over");
}

#[test]
fn nothing_is_planned_before_everything_was_listed() {
    let events: Vec<Event> = basics().into_iter().filter(|e| *e != Event::Synced).collect();
    let mut door = Door::new(told(&events));
    door.tell(&Event::NodePool(Box::new(pool("general"))));
    door.put_pod(pod("web", 100, GIB));
    assert_eq!(door.pass(Duration::minutes(5)), vec![]);
    door.tell(&Event::Synced);
    assert_eq!(count(&door.pass(seconds(2)), "create"), 1);
}

#[test]
fn a_pod_that_is_not_understood_is_refused_by_name_and_others_go_on() {
    let mut door = door();
    door.put_pod(Pod { unsupported: vec!["spec.topologySpreadConstraints".to_owned()], ..pod("strange", 100, GIB) });
    door.put_pod(Pod { affinity: hostname(), ..pod("picky", 100, GIB) });
    door.put_pod(pod("plain", 100, GIB));
    door.pass(seconds(2));
    let mut refused = Vec::new();
    for step in door.engine.take_reports().into_iter().flat_map(|r| r.steps) {
        if let Step::Unplaced(unplaced) = step {
            refused.extend(unplaced.pods.iter().map(|p| (p.name.clone(), unplaced.reasons[0].clone())));
        }
    }
    refused.sort();
    refused.dedup();
    let texts: Vec<String> = refused.iter().map(|(name, r)| format!("{name}: {}: {}", r.place, r.why)).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("picky: pod: ") && texts[0].contains("kubernetes.io/hostname"), "{texts:?}");
    assert!(texts[1].starts_with("strange: pod: ") && texts[1].contains("spec.topologySpreadConstraints"), "{texts:?}");
    assert_eq!(door.claims.len(), 1, "the third pod gets its node");
}

fn hostname() -> whittle_model::Affinity {
    let node_selector = common::all_of(&[common::any_of(keys::HOSTNAME, &["ip-10-0-0-1"])]);
    whittle_model::Affinity { node_selector, ..whittle_model::Affinity::default() }
}

#[test]
fn pods_of_a_node_that_is_going_get_a_new_one_first() {
    let mut door = with_pods(door(), 1);
    door.pass(seconds(2));
    door.join();
    door.pass(seconds(1));
    door.bind_nominated();
    let first = only_claim(&door);
    door.put_claim(NodeClaim { deleting: true, ..first.clone() });
    let key = PodKey::new("default", "web-0");
    // The eviction makes a new pod, as its ReplicaSet would.
    let actions = door.pass(seconds(1));
    assert_eq!(count(&actions, "evict"), 1, "{:?}", names(&actions));
    assert!(!door.pods.contains_key(&key));
    door.put_pod(pod("web-1", 1000, GIB));
    let actions = door.pass(seconds(5));
    assert_eq!(count(&actions, "create"), 1);
    assert!(!door.claims.contains_key(&first.name));
    door.put_pod(bound(pod("web-2", 10, GIB), "elsewhere"));
    assert_eq!(count(&door.pass(seconds(3)), "create"), 0);
}
