//! What AWS says on its own account, and what cannot be read: instances and claims that lost each other, instances
//! that will not stay, objects that are set aside.

mod common;

use common::door::{Door, Launching, names};
use common::{GIB, basics, bound, pod, pool, seconds, told};
use whittle_model::{Action, Duration, Event, Instance, Interruption, Labels, Node, NodeClaim, ObjectKind, PodKey, Timestamp, keys};

fn door() -> Door {
    let mut general = pool("general");
    general.disruption.consolidate_after = Some(Duration::minutes(1));
    let mut events = basics();
    events.push(Event::NodePool(Box::new(general)));
    Door::new(told(&events))
}

/// A door with one node in use.
fn running() -> (Door, NodeClaim) {
    let mut door = door();
    door.put_pod(pod("web", 1000, GIB));
    door.pass(seconds(2));
    door.join();
    door.pass(seconds(1));
    assert_eq!(door.bind_nominated(), 1);
    door.pass(Duration::minutes(5));
    let claim = door.claims.values().next().cloned().expect("it was bought");
    assert!(claim.status.initialized.is_some());
    (door, claim)
}

fn instance(provider_id: &str, launched: Timestamp, group: Option<&str>) -> Instance {
    Instance { provider_id: provider_id.to_owned(), launched, group: group.map(str::to_owned), claim: None, running: true }
}

fn list(door: &mut Door, instances: &[Instance]) -> Vec<Action> {
    door.tell(&Event::Instances(instances.to_vec()));
    door.settle()
}

#[test]
fn an_instance_that_no_claim_stands_for_is_ended_once_it_is_old_enough() {
    let (mut door, claim) = running();
    let own = Instance { claim: Some(claim.name.clone()), ..instance(&claim.status.provider_id, Timestamp(0), None) };
    let ages = [(31, vec!["terminate stray"]), (29, vec![])];
    for (age, expected) in ages {
        let launched = Timestamp(door.now.0 - age * 1000);
        let stray = instance("aws:///zone-a/i-stray", launched, Some("nobody"));
        assert_eq!(names(&list(&mut door, &[own.clone(), stray])), expected, "{age} s old");
    }
    let ending = Instance { running: false, ..instance("aws:///zone-a/i-ending", Timestamp(0), None) };
    assert_eq!(list(&mut door, &[own, ending]), vec![]);
}

#[test]
fn an_instance_whose_claim_waits_for_the_answer_is_not_a_stray() {
    let mut door = door();
    door.put_pod(pod("web", 1000, GIB));
    door.launching = Launching::Silent;
    door.pass(seconds(60));
    let claim = door.claims.values().next().cloned().expect("it was written");
    let group = claim.annotations[keys::LAUNCH_GROUP].clone();
    assert_eq!(list(&mut door, &[instance("aws:///zone-a/i-1", Timestamp(0), Some(&group))]), vec![]);
    let other = list(&mut door, &[instance("aws:///zone-a/i-2", Timestamp(0), Some("another"))]);
    assert_eq!(names(&other), ["terminate stray"]);
}

#[test]
fn a_claim_whose_instance_is_gone_goes_unless_its_node_is_ready() {
    let (mut door, claim) = running();
    assert_eq!(list(&mut door, &[]), vec![], "a ready node is a running instance, whatever a list says");
    let mut node = door.nodes.values().next().cloned().expect("it joined");
    node.ready = false;
    door.put_node(node);
    let actions = list(&mut door, &[]);
    assert_eq!(actions.first(), Some(&Action::DeleteClaim { claim: claim.name, reason: "GarbageCollected".to_owned() }));
}

#[test]
fn a_node_that_is_deleted_and_that_nobody_stands_for_is_let_go() {
    let (mut door, claim) = running();
    let mut node = door.nodes.values().next().cloned().expect("it joined");
    node.deleting = true;
    let own = instance(&claim.status.provider_id, Timestamp(0), None);
    // Somebody took the finalizer of the claim away: it is gone at once.
    door.claims.remove(&claim.name);
    door.tell(&Event::ClaimGone(claim.name));
    door.put_node(node.clone());
    door.settle();
    assert_eq!(names(&list(&mut door, &[own])), ["terminate stray"], "first its instance has to go");
    door.nodes.insert(node.name.clone(), node.clone());
    assert_eq!(list(&mut door, &[]), vec![Action::ReleaseNode { node: node.name.clone() }]);
    // What others made is theirs to let go.
    let theirs = Node { name: "theirs".to_owned(), labels: Labels::new(), ..node };
    door.put_node(theirs);
    assert_eq!(list(&mut door, &[]), vec![]);
}

#[test]
fn a_tag_that_was_lost_is_set_again() {
    let (mut door, claim) = running();
    let untagged = instance(&claim.status.provider_id, Timestamp(0), None);
    assert_eq!(list(&mut door, std::slice::from_ref(&untagged)), [Action::TagInstance { claim: claim.name.clone() }]);
    assert_eq!(list(&mut door, &[Instance { claim: Some(claim.name), ..untagged }]), vec![]);
}

#[test]
fn nothing_is_collected_while_a_claim_cannot_be_read() {
    let (mut door, claim) = running();
    let aside = Event::SetAside { kind: ObjectKind::NodeClaim, name: "odd".to_owned(), node: None, why: "spec: no".to_owned() };
    door.tell(&aside);
    let own = Instance { claim: Some(claim.name.clone()), ..instance(&claim.status.provider_id, Timestamp(0), None) };
    let stray = instance("aws:///zone-a/i-stray", Timestamp(0), None);
    assert_eq!(list(&mut door, &[own.clone(), stray.clone()]), vec![]);
    door.tell(&Event::ClaimGone("odd".to_owned()));
    assert_eq!(names(&list(&mut door, &[own, stray])), ["terminate stray"]);
}

#[test]
fn an_interrupted_instance_goes_and_its_offering_is_left_alone() {
    let rows = [
        (Interruption::SpotInterrupted, Some("SpotInterrupted")),
        (Interruption::InstanceStopped, Some("InstanceStopped")),
        (Interruption::InstanceTerminated, Some("InstanceTerminated")),
        (Interruption::ScheduledChange, Some("ScheduledChange")),
        (Interruption::CapacityReservationInterrupted, Some("CapacityReservationInterrupted")),
        (Interruption::InstanceStatus, Some("InstanceStatus")),
        (Interruption::SystemStatus, Some("SystemStatus")),
        (Interruption::EventStatus, Some("EventStatus")),
        (Interruption::RebalanceRecommendation, None),
    ];
    for (what, reason) in rows {
        let (mut door, claim) = running();
        // A message names the instance alone.
        let id = claim.status.provider_id.rsplit('/').next().expect("it has an id");
        for _ in 0..2 {
            door.tell(&Event::Interrupted { provider_id: format!("aws:///{id}"), what });
        }
        let deletes: Vec<String> = door
            .settle()
            .into_iter()
            .filter_map(|action| if let Action::DeleteClaim { reason, .. } = action { Some(reason) } else { None })
            .collect();
        assert_eq!(deletes, reason.into_iter().collect::<Vec<_>>(), "{what:?}, told twice");
    }
    let (mut door, _) = running();
    door.tell(&Event::Interrupted { provider_id: "aws:///i-of-others".to_owned(), what: Interruption::SpotInterrupted });
    assert_eq!(door.settle(), vec![]);
}

#[test]
fn what_hangs_on_an_unreadable_object_stays() {
    let rows = [
        ("its pool", ObjectKind::NodePool, "general", None),
        ("a pod on its node", ObjectKind::Pod, "default/odd", Some("node")),
        ("its claim", ObjectKind::NodeClaim, "claim", None),
        ("its node", ObjectKind::Node, "node", Some("node")),
    ];
    for (what, kind, name, node) in rows {
        let (mut door, claim) = running();
        let on = door.nodes.keys().next().cloned().expect("it joined");
        let name = match name {
            "claim" => claim.name.clone(),
            "node" => on.clone(),
            other => other.to_owned(),
        };
        door.tell(&Event::SetAside { kind, name: name.clone(), node: node.map(|_| on.clone()), why: "unreadable".to_owned() });
        for key in door.pods.keys().cloned().collect::<Vec<_>>() {
            door.remove_pod(&key);
        }
        assert_eq!(door.pass(Duration::minutes(30)), vec![], "{what}");
        // A pod that would fit is not counted on that room, and nothing is bought from a pool nobody can read.
        let readable = match kind {
            ObjectKind::NodePool => Event::NodePool(Box::new(whittle_model::NodePool {
                disruption: whittle_model::Disruption { consolidate_after: Some(Duration::minutes(1)), ..Default::default() },
                ..pool("general")
            })),
            ObjectKind::Pod => Event::PodGone(PodKey::new("default", "odd")),
            ObjectKind::NodeClaim => Event::Claim(Box::new(door.claims[&claim.name].clone())),
            ObjectKind::Node
            | ObjectKind::NodeClass
            | ObjectKind::DaemonSet
            | ObjectKind::VolumeClaim
            | ObjectKind::Volume
            | ObjectKind::StorageClass
            | ObjectKind::PodDisruptionBudget
            | ObjectKind::NodeOverlay => Event::Node(Box::new(door.nodes[&on].clone())),
        };
        door.tell(&readable);
        let actions = door.pass(Duration::minutes(30));
        assert!(names(&actions).contains(&"delete"), "{what} can be read again: {actions:?}");
    }
}

#[test]
fn nothing_is_planned_on_a_node_or_bought_from_a_pool_that_cannot_be_read() {
    let (mut door, _) = running();
    let on = door.nodes.keys().next().cloned().expect("it joined");
    let odd =
        |kind, name: &str, node: Option<&String>| Event::SetAside { kind, name: name.to_owned(), node: node.cloned(), why: String::new() };
    door.tell(&odd(ObjectKind::Pod, "default/odd", Some(&on)));
    door.put_pod(pod("small", 100, GIB / 10));
    assert_eq!(names(&door.pass(seconds(2))).first(), Some(&"create"), "its room may be taken");

    let (mut door, _) = running();
    door.tell(&odd(ObjectKind::NodePool, "general", None));
    door.put_pod(pod("large", 30_000, GIB));
    assert_eq!(door.pass(seconds(20)), vec![]);
}

#[test]
fn a_pool_with_limits_buys_nothing_while_a_claim_was_never_read() {
    let limits = || whittle_model::Limits { amounts: vec![("nodes".to_owned(), 1)] };
    let mut door = door();
    door.tell(&Event::NodePool(Box::new(whittle_model::NodePool { limits: limits(), ..pool("general") })));
    let aside = Event::SetAside { kind: ObjectKind::NodeClaim, name: "odd".to_owned(), node: None, why: String::new() };
    door.tell(&aside);
    door.put_pod(pod("web", 1000, GIB));
    assert_eq!(door.pass(seconds(30)), vec![], "the claim that nobody can read may be all that the pool may have");
    door.tell(&Event::ClaimGone("odd".to_owned()));
    assert_eq!(names(&door.pass(seconds(12))).first(), Some(&"create"), "planned again as soon as it is read or gone");

    // A node of a pool that no claim stands for is counted: it is the unreadable claim's.
    let (mut door, claim) = running();
    door.tell(&Event::NodePool(Box::new(whittle_model::NodePool { limits: limits(), ..pool("general") })));
    let node = door.nodes.values().next().cloned().expect("it joined");
    door.tell(&Event::ClaimGone(claim.name));
    door.tell(&Event::Node(Box::new(node)));
    door.tell(&aside);
    door.put_pod(pod("large", 30_000, GIB));
    door.pass(seconds(12));
    let reasons = format!("{:?}", door.engine.take_reports());
    assert!(reasons.contains("nodes") && !reasons.contains("cannot be counted"), "{reasons}");
}

#[test]
fn only_a_launch_that_may_have_worked_looks_for_instances_first() {
    let mut door = door();
    door.put_pod(pod("web", 1000, GIB));
    door.launching = Launching::Silent;
    door.pass(Duration::minutes(3));
    let adopts = |door: &Door| -> Vec<bool> {
        door.actions.iter().filter_map(|(_, a)| if let Action::Launch { adopt, .. } = a { Some(*adopt) } else { None }).collect()
    };
    assert_eq!(adopts(&door), [false, true], "the first answer was lost");

    // A claim that is there at the start may have been launched by whoever wrote it.
    let written = door.claims.values().next().cloned().expect("it was written");
    let mut door = self::door();
    door.put_pod(bound(pod("other", 1, 1), "elsewhere"));
    door.put_claim(written);
    door.pass(seconds(1));
    assert_eq!(adopts(&door), [true]);
}

#[test]
fn an_observer_says_the_same_once_and_changes_nothing() {
    let mut acting = door();
    acting.put_pod(pod("web", 1000, GIB));
    let mut watching = acting.engine.clone();
    let settings = whittle_model::Settings { observe: true, ..watching.world().settings().clone() };
    watching.handle(&Event::Settings(settings), acting.now);
    let deadline = watching.deadline(acting.now).expect("the batch closes");
    let said = watching.poll(deadline.at, &mut whittle_model::ListPrice);
    acting.pass(seconds(2));
    assert_eq!(said.first(), acting.actions.first().map(|(_, action)| action), "as it would act");
    assert_eq!(watching.world().claims().count(), 0);
    assert_eq!(watching.deadline(deadline.at), None, "nothing is thought over twice");
    assert_eq!(watching.take_reports().len(), 1);
    watching.handle(&Event::Instances(vec![instance("aws:///zone-a/i-1", Timestamp(0), None)]), deadline.at);
    watching.handle(&Event::Pod(Box::new(pod("api", 500, GIB))), deadline.at);
    let later = watching.deadline(deadline.at).expect("another batch closes");
    let said = watching.poll(later.at, &mut whittle_model::ListPrice);
    assert_eq!(names(&said), ["create"], "for both pods, as nobody served the first");
}
