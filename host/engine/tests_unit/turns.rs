//! Whose node is opened when.

use super::*;
use whittle_model::{Duration, Pod, PodAffinityTerm, PodKey, Resources, Taint};

/// A world with nodes that joined, each with one pod of the given CPU planned for it.
fn world(pods: &[i64]) -> World {
    let mut world = World::default();
    for (at, cpu) in pods.iter().enumerate() {
        let (name, provider) = (format!("c{at}"), format!("aws:///a/i-{at}"));
        let size = Resources::of(&[("cpu", 4000), ("memory", 1 << 34), ("pods", 10)]);
        let requests = Resources::of(&[("cpu", *cpu), ("memory", 1 << 20)]);
        let mut claim = NodeClaim { name: name.clone(), requests, ..NodeClaim::default() };
        claim.status.provider_id.clone_from(&provider);
        claim.status.launched = Some(Timestamp(0));
        world.put_claim(claim);
        world.put_node(Node { name: format!("n{at}"), provider_id: provider, allocatable: size, ready: true, ..Node::default() });
        let key = PodKey::new("default", &format!("p{at}"));
        world.put_pod(&Pod { key: key.clone(), unschedulable: true, ..Pod::default() });
        world.assigned.set(key, &name);
    }
    world
}

fn change_node(world: &mut World, name: &str, change: impl FnOnce(&mut Node)) {
    let mut node = world.nodes[name].clone();
    change(&mut node);
    world.put_node(node);
}

fn change_pod(world: &mut World, name: &str, change: impl FnOnce(&mut Pod)) {
    let mut pod = world.pod(&PodKey::new("default", name)).unwrap_or_default();
    change(&mut pod);
    world.put_pod(&pod);
}

fn register(world: &mut World, name: &str) {
    change_node(world, name, |node| drop(node.labels.insert(keys::REGISTERED.to_owned(), "true".to_owned())));
}

fn held(world: &World, turns: &Turns, claim: &str, now: Timestamp) -> bool {
    let claim = &world.claims[claim];
    let node = world.node_of(claim).expect("its node is there");
    held_until(world, turns, claim, node, now).is_some()
}

fn names(world: &World) -> Vec<String> {
    world.claims.keys().cloned().collect()
}

#[test]
fn the_fullest_node_opens_first_and_the_next_when_its_pods_are_bound() {
    let (mut world, mut turns) = (world(&[1000, 3000, 2000]), Turns::default());
    let mut now = Timestamp(0);
    let mut order = Vec::new();
    for _ in 0..3 {
        turns.advance(&world, names(&world).iter(), now);
        let turn: Vec<String> = names(&world).into_iter().filter(|name| turns.has(name)).collect();
        assert_eq!(turn.len(), 1, "one at a time");
        let claim = turn[0].clone();
        let (node, pod) = (claim.replace('c', "n"), claim.replace('c', "p"));
        assert!(held(&world, &turns, &claim, now), "its pod is not nominated yet");
        change_pod(&mut world, &pod, |pod| pod.nominated = Some(node.clone()));
        assert!(!held(&world, &turns, &claim, now));
        register(&mut world, &node);
        turns.advance(&world, names(&world).iter(), now);
        assert!(turns.has(&claim), "its pod is not bound yet");
        assert!(turns.waiting().all(|other| *other != claim && held(&world, &turns, other, now)));
        change_pod(&mut world, &pod, |pod| (pod.node, pod.nominated) = (Some(node.clone()), None));
        order.push(claim);
        // kube-scheduler may still be trying the others: they are not nominated before it has done with them.
        turns.advance(&world, names(&world).iter(), now);
        now = now.plus(Duration(299));
        turns.advance(&world, names(&world).iter(), now);
        assert!(names(&world).iter().all(|name| !turns.has(name)), "it is too soon");
        assert!(turns.waiting().all(|other| held_until(&world, &turns, &world.claims[other], &world.nodes[&other.replace('c', "n")], now)
            == Some(now.plus(Duration(1)))));
        now = now.plus(Duration(1));
    }
    assert_eq!(order, ["c1", "c2", "c0"]);
    turns.advance(&world, names(&world).iter(), now);
    assert_eq!(turns, Turns::default());
}

#[test]
fn nobody_waits_for_ever() {
    let (mut world, mut turns) = (world(&[1000, 3000, 2000]), Turns::default());
    turns.advance(&world, names(&world).iter(), Timestamp(0));
    // Nominations of the first are never seen.
    for (at, claim, is_held) in [(1999, "c1", true), (2000, "c1", false), (1999, "c0", true), (7999, "c0", true), (8000, "c0", false)] {
        assert_eq!(held(&world, &turns, claim, Timestamp(at)), is_held, "{claim} at {at}");
    }
    register(&mut world, "n1");
    turns.advance(&world, names(&world).iter(), Timestamp(2000));
    turns.advance(&world, names(&world).iter(), Timestamp(2300));
    assert!(turns.has("c2") && !turns.has("c1"), "a turn ends though its pod is not bound");
    // One that is not ready keeps its taint for a while, one without planned pods only for a moment.
    change_node(&mut world, "n0", |node| {
        node.taints = vec![Taint::new("node.kubernetes.io/not-ready", "", whittle_model::Effect::NoSchedule)]
    });
    turns.forget("c0");
    for (at, is_held) in [(19_999, true), (20_000, false)] {
        assert_eq!(held(&world, &turns, "c0", Timestamp(at)), is_held, "at {at}");
    }
    world.assigned.clear(&PodKey::new("default", "p0"));
    for (at, is_held) in [(2999, true), (3000, false)] {
        assert_eq!(held(&world, &turns, "c0", Timestamp(at)), is_held, "at {at}");
    }
}

#[test]
fn nodes_wait_for_that_of_pods_that_must_be_together() {
    let (mut world, mut turns) = (world(&[3900, 3000, 1000]), Turns::default());
    let beside = PodAffinityTerm {
        topology_key: keys::HOSTNAME.to_owned(),
        namespaces: vec!["default".to_owned()],
        namespace_selector: None,
        selector: whittle_model::LabelSelector::default(),
    };
    change_pod(&mut world, "p2", |pod| pod.pod_affinity = vec![beside]);
    let to_come = world.nodes["n2"].clone();
    world.drop_node("n2");
    turns.advance(&world, names(&world).iter(), Timestamp(0));
    assert!(!turns.has("c0") && !turns.has("c1"), "they might draw one of those that must be together");
    let until = |turns: &Turns, now| held_until(&world, turns, &world.claims["c0"], &world.nodes["n0"], Timestamp(now));
    assert_eq!(until(&turns, 0), Some(Timestamp(5000)));
    let mut patient = turns.clone();
    patient.advance(&world, names(&world).iter(), Timestamp(4999));
    assert!(!patient.has("c0"));
    patient.advance(&world, names(&world).iter(), Timestamp(5000));
    assert!(patient.has("c0"), "not for ever");
    assert_eq!(until(&patient, 5000), Some(Timestamp(7000)));
    // Theirs joins, and comes first though another is fuller.
    world.put_node(to_come);
    turns.advance(&world, names(&world).iter(), Timestamp(2000));
    assert!(turns.has("c2") && !turns.has("c0") && !turns.has("c1"));
}

#[test]
fn many_nodes_open_in_waves() {
    let (world, mut turns) = (world(&[1000; 40]), Turns::default());
    turns.advance(&world, names(&world).iter(), Timestamp(0));
    assert_eq!(names(&world).iter().filter(|name| turns.has(name)).count(), 5);
}
