//! In which order nodes that joined are opened, where pods are nominated to them.
//!
//! A node that opens has kube-scheduler try every pod that waits, and each try that fails costs the pod its
//! nomination. Nominations given long before their node opens are therefore lost, and nodes that open one shortly
//! after the other cost each other's pods theirs. So a node keeps its taint until it could take pods, its pods are
//! nominated when its turn has come, it opens once their nominations are seen, and the next turn begins a moment
//! after they are bound. Fuller nodes come first: a pod that is tried before its own node has opened finds little room there.
//!
//! Pods that must be together on one node are worse off: where one of them finds room elsewhere, the others can go nowhere
//! but there, and there may be no room for them. So nodes that such pods are planned for come before all others, which
//! wait a while for them to join. That others are full does not help: one of their own pods that may not be bound yet, as
//! its spread wants others bound first, leaves its room to whoever is tried next.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, Node, NodeClaim, PodKey, Timestamp, keys, resources};

use crate::world::{PodRecord, Shape, World};

/// How long a turn lasts at most. Two writes, the watch's answers and a binding take a few tenths of a second.
const TURN: Duration = Duration::seconds(2);

/// How long after a turn the next begins. A node that opened has kube-scheduler try every pod that waits, some milliseconds
/// each, and those that a further event had queued once more: a nomination that comes meanwhile is cleared again.
const SETTLE: Duration = Duration(300);

/// How long a node that could take pods waits for its turn and in it at most: pods pay for it by waiting longer.
const PATIENCE: Duration = Duration::seconds(8);

/// What remains of that for its turn when it waited for the node of pods that must be together.
const TURN_AT_LAST: Duration = Duration::seconds(3);

/// How long a node with planned pods keeps its taint until it is ready: on EKS that takes some ten seconds. Not for
/// ever: there are networks whose daemons do not tolerate the taint, and without them no node is ever ready.
const READY_WITHIN: Duration = Duration::seconds(20);

/// One node of so many that wait has its turn, at least one: few go one by one, many in some dozen waves.
const WAVES: usize = 8;

/// Whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Turns {
    /// Claims whose node could take its planned pods, and when it opens at the latest.
    waiting: BTreeMap<String, Timestamp>,
    /// Those of them that have their turn, and until when.
    current: BTreeMap<String, Timestamp>,
    /// When the next turn may begin, after the last one.
    settled: Option<Timestamp>,
    /// Whether nodes wait for one that has not joined.
    expecting: bool,
}

impl Turns {
    /// Claims that wait for their turn or have it.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &String> {
        self.waiting.keys()
    }

    /// Whether the pods of a claim may be nominated before its node is registered.
    pub(crate) fn has(&self, claim: &str) -> bool {
        self.current.contains_key(claim)
    }

    /// When something changes for a claim that waits although nothing happens, seen from now.
    fn due(&self, claim: &str, now: Timestamp) -> Option<Timestamp> {
        let until = *self.waiting.get(claim)?;
        let at_last = Some(turn_at_last(until)).filter(|at| self.expecting && *at > now);
        Some(self.current.values().copied().min().or(self.settled).or(at_last).map_or(until, |turn| turn.min(until)))
    }

    /// A claim is gone.
    pub(crate) fn forget(&mut self, claim: &str) {
        self.waiting.remove(claim);
        self.current.remove(claim);
    }

    /// Ends turns that are over, lets a claim wait whose node could take pods, and begins the next turns.
    pub(crate) fn advance<'n>(&mut self, world: &World, names: impl Iterator<Item = &'n String>, now: Timestamp) {
        let joined = |name: &str| {
            let claim = world.claims.get(name).filter(|claim| !claim.deleting)?;
            world.node_of(claim).filter(|_| planned(world, claim)).map(|node| (claim, node))
        };
        let had = !self.current.is_empty();
        self.current.retain(|name, until| *until > now && joined(name).is_some());
        if had && self.current.is_empty() {
            self.settled = Some(now.plus(SETTLE));
        }
        self.settled = self.settled.filter(|at| *at > now);
        self.waiting.retain(|name, _| joined(name).is_some_and(|(_, node)| !registered(node)));
        for name in names {
            if joined(name).is_some_and(|(claim, node)| !registered(node) && claim.startup_taints.is_empty() && usable(claim, node)) {
                self.waiting.entry(name.clone()).or_insert_with(|| now.plus(PATIENCE));
            }
        }
        if !self.current.is_empty() || self.settled.is_some() {
            return;
        }
        let together = together(world);
        let open_soon: Vec<(&String, &NodeClaim, &Node)> = self
            .waiting
            .iter()
            .filter(|(_, until)| **until > now)
            .filter_map(|(name, _)| joined(name).map(|(claim, node)| (name, claim, node)))
            .collect();
        // Also those of such pods wait for others of such: they might draw these.
        let missing = together.iter().any(|of| !self.waiting.contains_key(*of));
        let expects = |(name, ..): &(&String, &NodeClaim, &Node)| missing && turn_at_last(self.waiting[*name]) > now;
        let (expecting, mut next): (Vec<_>, Vec<_>) = open_soon.into_iter().partition(expects);
        let first = |name: &String| together.contains(name);
        next.sort_by_cached_key(|(name, claim, node)| (!first(name), room(claim, node), *name));
        let mut turns: Vec<String> = next.iter().take(next.len().div_ceil(WAVES)).map(|(name, ..)| (*name).clone()).collect();
        if turns.first().is_some_and(&first) {
            turns.retain(first);
        }
        self.expecting = !expecting.is_empty();
        for name in turns {
            let until = now.plus(TURN);
            if let Some(latest) = self.waiting.get_mut(&name) {
                *latest = until.min(*latest);
            }
            self.current.insert(name, until);
        }
    }
}

/// Until when a node that joined keeps its taint, seen from now; `None` when it is to be registered.
pub(crate) fn held_until(world: &World, turns: &Turns, claim: &NodeClaim, node: &Node, now: Timestamp) -> Option<Timestamp> {
    if let Some(until) = turns.due(&claim.name, now) {
        let opens = turns.has(&claim.name) && awaited(world, claim, node);
        return Some(until).filter(|_| !opens && turns.waiting[&claim.name] > now);
    }
    let usable = claim.startup_taints.is_empty() && usable(claim, node);
    let starts = claim.startup_taints.is_empty() && (!node.ready || node.taints.iter().any(starting));
    let until = if starts && planned(world, claim) { node.created.plus(READY_WITHIN) } else { registers_at(node) };
    Some(until).filter(|until| !usable && *until > now)
}

/// When a node that joined is registered at the latest where no pods are nominated. A kubelet that is nearly ready gets
/// a moment, so that one write both registers and initializes its node. Nothing can run there meanwhile: a node that is
/// not ready takes no pods. API servers give times in whole seconds, so the moment is two to three of them.
fn registers_at(node: &Node) -> Timestamp {
    node.created.plus(Duration::seconds(3))
}

/// Whether pods that wait are planned for a claim and will be nominated to its node.
fn planned(world: &World, claim: &NodeClaim) -> bool {
    let waits = |record: &PodRecord| record.node.is_none();
    world.settings.nominates()
        && world.assigned.pods(&claim.name).any(|pod| !world.buffers.holds(pod) && world.pods.get(pod).is_some_and(waits))
}

/// Until when a node may wait for others before it has its own turn.
fn turn_at_last(latest: Timestamp) -> Timestamp {
    latest.plus(Duration(-TURN_AT_LAST.0))
}

/// Claims whose planned pods must be on one node with others, and whose node is not open yet.
fn together(world: &World) -> BTreeSet<&String> {
    let on_one_node = |shape: &Shape| shape.pod_affinity.iter().any(|term| term.topology_key == keys::HOSTNAME);
    if !world.shapes.values().any(on_one_node) {
        return BTreeSet::new();
    }
    let to_come = |name: &String| {
        let claim = world.claims.get(name).filter(|claim| !claim.deleting);
        claim.is_some_and(|claim| world.node_of(claim).is_none_or(|node| !registered(node)))
    };
    let waits = |pod: &PodKey| {
        let record = world.pods.get(pod).filter(|record| record.node.is_none() && !world.buffers.holds(pod));
        record.is_some_and(|record| on_one_node(world.shape_of(record)))
    };
    world.assigned.iter().filter(|(pod, claim)| waits(pod) && to_come(claim)).map(|(_, claim)| claim).collect()
}

/// Whether the pods that are planned for a node are seen to be nominated to it.
fn awaited(world: &World, claim: &NodeClaim, node: &Node) -> bool {
    let settled = |record: &PodRecord| record.node.is_some() || record.nominated.as_ref() == Some(&node.name);
    world.assigned.pods(&claim.name).all(|pod| world.buffers.holds(pod) || world.pods.get(pod).is_none_or(settled))
}

fn registered(node: &Node) -> bool {
    node.labels.contains_key(keys::REGISTERED)
}

/// Whether a taint goes by itself while a node starts.
fn starting(taint: &whittle_model::Taint) -> bool {
    keys::ephemeral_taint(&taint.key) && taint.key != keys::UNREGISTERED_TAINT
}

/// Whether pods can run on a node: it is ready, what its start waits for is done, and its devices are there.
pub(crate) fn usable(claim: &NodeClaim, node: &Node) -> bool {
    let missing = claim.requests.iter().any(|(name, amount)| extended(name) && amount > 0 && node.allocatable.get(name) <= 0);
    node.ready && !missing && !node.taints.iter().any(|taint| starting(taint) || claim.startup_taints.contains(taint))
}

/// Whether a resource comes from a device plugin, which may register after the node is ready.
fn extended(name: &str) -> bool {
    name.contains('/')
}

/// What is free of a node beside what is planned for it, in thousandths: the scarcer of CPU and memory.
fn room(claim: &NodeClaim, node: &Node) -> i64 {
    let free = |name: &str| {
        let all = node.allocatable.get(name).max(1);
        (i128::from(all - claim.requests.get(name)) * 1000 / i128::from(all)) as i64
    };
    free(resources::CPU).min(free(resources::MEMORY))
}

#[cfg(test)]
#[path = "../tests_unit/turns.rs"]
mod tests;
