//! How nodes that go are emptied: in groups, within budgets, within the grace period, without their volumes.

mod common;

use common::door::{Door, names};
use common::{GIB, basics, bound, labels, pod, pool, seconds, told, toleration};
use whittle_engine::Timer;
use whittle_engine::report::{ClaimStep, Step};
use whittle_model::{
    Action, Duration, Event, LabelSelector, Milestone, NodeClaim, Owner, Pod, PodDisruptionBudget, PodKey, PodVolume, Timestamp,
    VolumeAttachment, VolumeClaim, VolumeClaimPhase, keys,
};

/// A node in use, and the names of its claim and itself.
fn node_in_use(grace: Option<Duration>) -> (Door, String, String) {
    let mut events = basics();
    let mut general = pool("general");
    general.template.termination_grace_period = grace;
    events.push(Event::NodePool(Box::new(general)));
    let mut door = Door::new(told(&events));
    door.put_pod(pod("first", 1000, GIB));
    door.pass(seconds(2));
    door.join();
    door.pass(seconds(1));
    door.remove_pod(&PodKey::new("default", "first"));
    let claim = door.claims.keys().next().cloned().expect("there is one");
    let node = door.nodes.keys().next().cloned().expect("there is one");
    assert!(door.claims[&claim].status.initialized.is_some());
    (door, claim, node)
}

fn running(name: &str, node: &str) -> Pod {
    Pod {
        ready: true,
        started: Some(Timestamp(0)),
        grace: seconds(30),
        labels: labels(&[("app", name)]),
        ..bound(pod(name, 50, GIB / 64), node)
    }
}

fn key(name: &str) -> PodKey {
    PodKey::new("default", name)
}

fn delete(door: &mut Door, claim: &str) {
    let deleted_at = Some(door.now);
    let known = NodeClaim { deleting: true, deleted_at, ..door.claims[claim].clone() };
    door.put_claim(known);
}

fn evicted(actions: &[Action]) -> Vec<&str> {
    actions.iter().filter_map(|a| if let Action::Evict { pod, .. } = a { Some(pod.name.as_str()) } else { None }).collect()
}

fn deleted(actions: &[Action]) -> Vec<(&str, i64)> {
    let of = |a| if let &Action::DeletePod { ref pod, grace_seconds, .. } = a { Some((pod.name.as_str(), grace_seconds)) } else { None };
    actions.iter().filter_map(of).collect()
}

fn said(door: &mut Door) -> Vec<String> {
    let steps = door.engine.take_reports().into_iter().flat_map(|r| r.steps);
    steps.filter_map(|step| if let Step::Claim { what: ClaimStep::Held(why), .. } = step { Some(why) } else { None }).collect()
}

fn budget(name: &str, app: &str, allowed: i32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        key: key(name),
        selector: LabelSelector::of_labels(&labels(&[("app", app)])),
        allowed,
        never: false,
        always_allow_unready: false,
    }
}

fn tell_budget(door: &mut Door, budget: &PodDisruptionBudget) {
    door.tell(&Event::PodDisruptionBudget(Box::new(budget.clone())));
}

#[test]
fn pods_leave_in_four_groups_and_a_group_waits_for_the_one_before() {
    let (mut door, claim, node) = node_in_use(None);
    door.slow = true;
    let daemon = Some(Owner { kind: "DaemonSet".into(), name: "d".into() });
    let critical = |p: Pod, class: &str| Pod { priority_class: class.into(), ..p };
    for pod in [
        running("plain-1", &node),
        running("plain-2", &node),
        Pod { owner: daemon.clone(), ..running("daemon", &node) },
        critical(running("dns", &node), "system-cluster-critical"),
        critical(Pod { owner: daemon.clone(), ..running("proxy", &node) }, "system-node-critical"),
        Pod { tolerations: vec![toleration(keys::DISRUPTED_TAINT)], ..running("stays", &node) },
        Pod { owner: Some(Owner { kind: "Node".into(), name: node.clone() }), ..running("static", &node) },
    ] {
        door.put_pod(pod);
    }
    delete(&mut door, &claim);
    let actions = door.pass(seconds(1));
    assert_eq!(names(&actions)[..1], ["cordon"]);
    assert_eq!(evicted(&actions), ["plain-1", "plain-2"]);
    let labels = &door.nodes[&node].labels;
    assert_eq!(labels.get(keys::EXCLUDED).map(String::as_str), Some("karpenter"), "no new connections either");
    door.remove_pod(&key("plain-1"));
    assert_eq!(evicted(&door.pass(seconds(60))), Vec::<&str>::new(), "plain-2 is still ending, though stuck by now it is not");
    for (gone, next) in [("plain-2", "daemon"), ("daemon", "dns"), ("dns", "proxy")] {
        door.remove_pod(&key(gone));
        let actions = door.pass(seconds(1));
        assert_eq!(evicted(&actions), [next], "after {gone}");
        assert!(!names(&actions).contains(&"terminate"));
    }
    door.remove_pod(&key("proxy"));
    let actions = door.pass(seconds(1));
    assert_eq!(names(&actions), ["update", "terminate", "release node", "release claim"], "those that stay go with the node");
}

#[test]
fn a_drain_takes_five_seconds_at_least() {
    let (mut door, claim, node) = node_in_use(None);
    delete(&mut door, &claim);
    let begun = door.now;
    let actions = door.pass(Duration(4999));
    assert_eq!(names(&actions), ["cordon", "update"]);
    assert_eq!(door.claims[&claim].status.drained, Milestone::Since(begun));
    // kube-scheduler had not seen the taint.
    door.put_pod(running("late", &node));
    assert_eq!(evicted(&door.pass(Duration(1))), ["late"]);
    let ends: Vec<Timestamp> = door.actions.iter().filter(|(_, a)| matches!(a, Action::Terminate { .. })).map(|(at, _)| *at).collect();
    assert_eq!(ends, [begun.plus(seconds(5))]);
    assert!(door.claims.is_empty());
}

#[test]
fn evictions_keep_within_a_budget_and_what_it_holds_is_said_once() {
    let (mut door, claim, node) = node_in_use(None);
    door.slow = true;
    for n in 0..3 {
        door.put_pod(Pod { labels: labels(&[("app", "web")]), ..running(&format!("web-{n}"), &node) });
    }
    tell_budget(&mut door, &budget("web", "web", 1));
    tell_budget(&mut door, &budget("other", "other", 0));
    delete(&mut door, &claim);
    let actions = door.pass(seconds(1));
    assert_eq!(evicted(&actions), ["web-0"], "one and no more");
    assert_eq!(said(&mut door), ["PodDisruptionBudget default/web lets no pod go now"]);
    tell_budget(&mut door, &budget("web", "web", 0));
    let actions = door.pass(Duration::minutes(9));
    assert_eq!((evicted(&actions).len(), said(&mut door).len()), (0, 0), "what must be refused is not asked for");
    door.remove_pod(&key("web-0"));
    tell_budget(&mut door, &budget("web", "web", 2));
    assert_eq!(evicted(&door.pass(seconds(1))), ["web-1", "web-2"]);
    assert_eq!(said(&mut door), Vec::<String>::new());
}

#[test]
fn an_eviction_that_shows_nothing_is_asked_for_again_after_ten_seconds() {
    let (mut door, claim, node) = node_in_use(None);
    door.put_pod(running("web", &node));
    tell_budget(&mut door, &budget("web", "web", 1));
    delete(&mut door, &claim);
    door.deaf = true;
    let actions = door.pass(seconds(25));
    assert_eq!(evicted(&actions).len(), 3, "{:?}", names(&actions));
    tell_budget(&mut door, &budget("web", "web", 0));
    assert_eq!(evicted(&door.pass(seconds(60))), Vec::<&str>::new());
}

#[test]
fn pods_that_are_not_ready_go_where_the_budget_says_so() {
    let (mut door, claim, node) = node_in_use(None);
    door.slow = true;
    for (name, ready) in [("well", true), ("sick", false)] {
        door.put_pod(Pod { ready, labels: labels(&[("app", "web")]), ..running(name, &node) });
    }
    tell_budget(&mut door, &PodDisruptionBudget { always_allow_unready: true, ..budget("web", "web", 0) });
    delete(&mut door, &claim);
    assert_eq!(evicted(&door.pass(seconds(1))), ["sick"]);
}

/// S30.
#[test]
fn two_budgets_over_a_pod_hold_it_until_the_grace_period_ends() {
    let (mut door, claim, node) = node_in_use(Some(Duration::minutes(10)));
    door.put_pod(running("web", &node));
    tell_budget(&mut door, &budget("pdb-a", "web", 5));
    tell_budget(&mut door, &budget("pdb-b", "web", 5));
    delete(&mut door, &claim);
    let begun = door.now;
    let actions = door.pass(Duration::minutes(9));
    assert!(evicted(&actions).is_empty() && deleted(&actions).is_empty(), "{:?}", names(&actions));
    let said = said(&mut door);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("default/pdb-a and default/pdb-b") && said[0].contains("pod default/web"), "{said:?}");
    let noted = door.claims[&claim].annotations[keys::TERMINATION_TIMESTAMP].clone();
    assert_eq!(noted, begun.plus(Duration::minutes(10)).rfc3339());
    let actions = door.pass(Duration::minutes(1));
    assert_eq!(deleted(&actions).len(), 1, "{:?}", names(&actions));
    assert!(door.claims.is_empty());
}

/// S31: B, D and E.
#[test]
fn do_not_disrupt_holds_a_drain_until_it_ends() {
    for (value, minutes) in [("true", None), ("30m", Some(30)), ("soon", Some(0)), ("-5m", Some(0)), ("false", Some(0))] {
        let (mut door, claim, node) = node_in_use(None);
        let annotations = labels(&[(keys::DO_NOT_DISRUPT, value)]);
        door.put_pod(Pod { annotations, ..running("web", &node) });
        delete(&mut door, &claim);
        door.pass(Duration::minutes(120));
        let at = door.actions.iter().find(|(_, a)| matches!(a, Action::Evict { .. })).map(|(at, _)| at.0 / 60_000);
        assert_eq!(at, minutes, "{value}");
    }
    let (mut door, claim, node) = node_in_use(Some(Duration::minutes(60)));
    door.put_pod(Pod { annotations: labels(&[(keys::DO_NOT_DISRUPT, "true")]), ..running("web", &node) });
    delete(&mut door, &claim);
    let actions = door.pass(Duration(Duration::minutes(60).0 - 30_000));
    assert!(deleted(&actions).is_empty(), "it has its grace period yet");
    assert_eq!(door.engine.deadline(door.now).map(|d| d.why), Some(Timer::Drain));
    assert_eq!(deleted(&door.pass(seconds(1))), [("web", 29)]);
}

#[test]
fn a_pod_that_would_outlast_its_node_is_given_less_time() {
    let (mut door, claim, node) = node_in_use(Some(seconds(100)));
    door.slow = true;
    door.put_pod(Pod { grace: Duration::minutes(60), ..running("slow", &node) });
    let ends_at = Some(door.now.plus(Duration::minutes(30)));
    door.put_pod(Pod { deleting: true, ends_at, ..running("ending", &node) });
    let critical = Pod { priority_class: "system-node-critical".into(), grace: seconds(200), ..running("critical", &node) };
    door.put_pod(critical);
    delete(&mut door, &claim);
    let actions = door.pass(seconds(1));
    let mut told = deleted(&actions);
    told.sort_unstable();
    assert_eq!(told, [("critical", 100), ("ending", 100), ("slow", 100)], "all groups at once");
    assert!(deleted(&door.pass(seconds(90))).is_empty(), "what has so little time is not told again");
    assert!(!names(&door.pass(seconds(60))).contains(&"terminate"), "their time is over, but they are there");
    assert!(names(&door.pass(seconds(40))).contains(&"terminate"), "a minute later they are not waited for");
}

/// S33.
#[test]
fn a_deadline_long_past_leaves_pods_a_second() {
    let (mut door, claim, node) = node_in_use(None);
    door.put_pod(running("web", &node));
    let past = Timestamp(0).rfc3339();
    let mut known = door.claims[&claim].clone();
    known.annotations.insert(keys::TERMINATION_TIMESTAMP.into(), past);
    door.now = door.now.plus(Duration::minutes(5));
    door.put_claim(known);
    tell_budget(&mut door, &budget("web", "web", 0));
    delete(&mut door, &claim);
    assert_eq!(deleted(&door.pass(seconds(1))), [("web", 1)]);
}

/// S43.
#[test]
fn volumes_are_waited_for_but_those_of_pods_that_stay() {
    for grace in [None, Some(Duration::minutes(10))] {
        let (mut door, claim, node) = node_in_use(grace);
        let volumes = vec![PodVolume { claim: "logs".into(), ephemeral: None }];
        door.put_pod(Pod { volumes, tolerations: vec![toleration(keys::DISRUPTED_TAINT)], ..running("daemon", &node) });
        let bound = VolumeClaim { key: key("logs"), phase: VolumeClaimPhase::Bound, volume: "pv-2".into(), ..VolumeClaim::default() };
        door.tell(&Event::VolumeClaim(Box::new(bound)));
        for (name, volume) in [("va1", "pv-1"), ("va2", "pv-2"), ("va3", "")] {
            let held = VolumeAttachment { name: name.into(), node: node.clone(), volume: volume.into() };
            door.tell(&Event::VolumeAttachment(Box::new(held)));
        }
        delete(&mut door, &claim);
        let actions = door.pass(Duration::minutes(9));
        assert!(!names(&actions).contains(&"terminate"));
        assert_eq!(said(&mut door), ["volumes are not detached: pv-1"]);
        assert!(matches!(door.claims[&claim].status.volumes_detached, Milestone::Since(_)));
        if grace.is_none() {
            door.tell(&Event::VolumeAttachmentGone("va1".into()));
            assert!(names(&door.pass(seconds(1))).contains(&"terminate"));
        } else {
            assert!(names(&door.pass(Duration::minutes(2))).contains(&"terminate"), "the grace period is over");
        }
        let ended =
            door.actions.iter().rev().find_map(|(_, a)| if let Action::UpdateClaim { status, .. } = a { Some(status) } else { None });
        let detached = ended.map(|status| status.volumes_detached);
        assert!(matches!((grace, detached), (None, Some(Milestone::Done(_))) | (Some(_), Some(Milestone::GivenUp(_)))), "{detached:?}");
    }
}

/// S41.
#[test]
fn a_claim_without_an_instance_is_let_go_at_once_whatever_is_gone() {
    let mut door = Door::new(told(&basics()));
    let claim =
        NodeClaim { name: "k".into(), node_pool: "gone".into(), deleting: true, deleted_at: Some(Timestamp(0)), ..NodeClaim::default() };
    door.put_claim(claim.clone());
    door.put_claim(NodeClaim { name: "alone".into(), node_pool: String::new(), ..claim });
    let actions = door.pass(seconds(1));
    assert_eq!(names(&actions).iter().filter(|name| **name == "release claim").count(), 2, "{:?}", names(&actions));
    assert!(door.claims.is_empty());
}

/// S29.
#[test]
fn nothing_is_bought_ahead_for_pods_that_cannot_move() {
    type Change = fn(&mut Door, &str);
    let held: [(&str, Change); 3] = [
        ("never", |door, node| {
            door.put_pod(running("web", node));
            tell_budget(door, &PodDisruptionBudget { never: true, ..budget("web", "web", 0) });
        }),
        ("marked", |door, node| {
            door.put_pod(Pod { annotations: labels(&[(keys::DO_NOT_DISRUPT, "true")]), ..running("web", node) });
        }),
        ("ending", |door, node| door.put_pod(Pod { deleting: true, ..running("web", node) })),
    ];
    for (name, hold) in held {
        let (mut door, claim, node) = node_in_use(None);
        hold(&mut door, &node);
        delete(&mut door, &claim);
        // Something else that waits makes a plan.
        door.put_pod(pod("other", 100, GIB / 8));
        door.pass(seconds(3));
        let plan = door.engine.plan(door.now, &mut whittle_model::ListPrice);
        let planned: Vec<&PodKey> = plan.nodes.iter().flat_map(|n| &n.pods).chain(plan.placed.values().flatten()).collect();
        assert!(!planned.contains(&&key("web")), "{name}: {planned:?}");
        assert_eq!(common::objections(&door.engine, &plan), [], "{name}");
    }
}

/// S32.
#[test]
fn a_node_whose_last_pod_is_ending_is_not_empty() {
    let (mut door, _, node) = node_in_use(None);
    door.put_pod(Pod { deleting: true, annotations: labels(&[(keys::DO_NOT_DISRUPT, "true")]), ..running("work", &node) });
    assert!(door.pass(Duration::minutes(300)).iter().all(|a| !matches!(a, Action::DeleteClaim { .. })));
}
