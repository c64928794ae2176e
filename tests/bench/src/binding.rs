//! From a plan to bound pods, with the engine's model of kube-scheduler: nodes come up together,
//! each as the offering its plan counts on, planned pods are nominated to them where the server
//! keeps nominations, and the queue is worked off. DaemonSets are not started: the mixes have none.

use std::collections::BTreeMap;

use whittle_engine::scheduler::{Scheduler, queue_order};
use whittle_engine::{Plan, PlannedNode};
use whittle_model::{Node, Pod, PodKey, Settings, Timestamp, keys};

use crate::Input;

/// The seed of the model's ties; another than the engine uses to judge its own plans.
const TIES: u64 = 20_000;

/// An empty cluster.
#[must_use]
pub fn scheduler(settings: &Settings) -> Scheduler {
    Scheduler::of_version(TIES, settings.kubernetes_minor)
}

/// The node that a plan's claim becomes.
#[must_use]
pub fn node(input: &Input, planned: &PlannedNode) -> Node {
    let (claim, choice) = (&planned.claim, &planned.choice);
    let mut labels = claim.labels.clone();
    let mut node = Node { name: claim.name.clone(), taints: claim.taints.clone(), ready: true, ..Node::default() };
    let catalog = input.catalogs.iter().find(|c| c.node_class == claim.node_class);
    if let Some(bought) = catalog.and_then(|c| c.get(&choice.instance_type)) {
        labels.extend(bought.labels.clone());
        (node.capacity, node.allocatable) = (bought.capacity.clone(), bought.allocatable.clone());
    }
    for (key, value) in [
        (keys::ZONE, choice.zone.as_str()),
        (keys::CAPACITY_TYPE, choice.capacity_type.name()),
        (keys::HOSTNAME, &claim.name),
        (keys::REGISTERED, "true"),
        (keys::INITIALIZED, "true"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    node.labels = labels;
    node
}

/// Brings `nodes` up, nominates, and schedules what waits. Bound pods are told, the others returned.
pub fn bind(
    scheduler: &mut Scheduler,
    nodes: &[Node],
    plan: &Plan,
    waiting: Vec<Pod>,
    settings: &Settings,
    told: &mut dyn FnMut(Pod),
) -> Vec<Pod> {
    for node in nodes {
        scheduler.apply_node(node);
    }
    let by_key: BTreeMap<&PodKey, &Pod> = waiting.iter().map(|p| (&p.key, p)).collect();
    if settings.nominates() {
        for (node, pod) in plan.nodes.iter().flat_map(|n| n.pods.iter().map(move |p| (&n.claim.name, p))) {
            if let Some(pod) = by_key.get(pod) {
                scheduler.nominate(pod, node);
            }
        }
    }
    let mut queue: Vec<(&Pod, Timestamp)> = waiting.iter().map(|p| (p, p.created)).collect();
    queue_order(&mut queue);
    let mut left = Vec::new();
    for (pod, _) in queue {
        match scheduler.schedule_and_bind(pod) {
            Ok(node) => told(Pod { node: Some(node), unschedulable: false, ..pod.clone() }),
            Err(_) => left.push(pod.clone()),
        }
    }
    left
}
