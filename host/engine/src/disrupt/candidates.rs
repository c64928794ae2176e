//! Nodes that may be moved, what they cost, what moving their pods costs, and why others may not.
//!
//! What must not enter: where their pods would go.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use whittle_model::{CapacityType, Duration, Micros, NodeClaim, NodePool, OfferingKey, PodKey, Timestamp, keys};

use super::fences::Fences;
use super::weights;
use crate::world::{PodRecord, World};

/// A node that may be moved as far as it is concerned.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) claim: String,
    pub(super) node: String,
    pub(super) pool: String,
    /// Pods that have to go elsewhere and can, by name.
    pub(super) pods: Vec<PodKey>,
    /// Price of an hour today; zero when it is not known.
    pub(super) price: Micros,
    /// What it costs to move them, in [`weights::UNIT`]s; 1 for the node itself.
    pub(super) weight: i64,
    /// Whether no pod of its stands in the way of calling it empty.
    pub(super) empty: bool,
    pub(super) offering: Option<OfferingKey>,
    /// Whether its pool's `consolidateAfter` has passed.
    pub(super) consolidatable: bool,
    /// Why its pods, or the node itself, must be left alone, if so.
    pub(super) blocked: Option<String>,
    /// Whether only its pods stand in the way, and a grace period limits how long they can.
    pub(super) eventual: bool,
    /// How long what is saved by moving its pods is likely to last.
    pub(super) lasts: Duration,
    /// The types that its pods were moved off lately.
    pub(super) came_from: BTreeSet<String>,
}

impl Candidate {
    /// The order in which nodes are tried: most saved for the disruption first, then by name.
    pub(super) fn by_ratio(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (i128::from(self.price.0) * i128::from(other.weight), i128::from(other.price.0) * i128::from(self.weight));
        theirs.cmp(&mine).then_with(|| self.claim.cmp(&other.claim))
    }

    pub(super) fn spot(&self) -> bool {
        self.offering.as_ref().is_some_and(|o| o.capacity_type == CapacityType::Spot)
    }
}

/// All nodes that may be moved as far as they are concerned, or would be but for their pods; by claim.
pub(super) fn all(world: &World, fences: &mut Fences<'_>, now: Timestamp) -> Vec<Candidate> {
    world.claims.values().filter_map(|claim| candidate(world, claim, fences, now)).collect()
}

/// The node of a claim as a candidate; `None` when it is no matter of disruption.
pub(super) fn candidate(world: &World, claim: &NodeClaim, fences: &mut Fences<'_>, now: Timestamp) -> Option<Candidate> {
    let pool = world.pools.get(&claim.node_pool)?;
    let node = world.node_of(claim)?;
    let going = claim.deleting || node.deleting || world.leaving.contains(&claim.name);
    if claim.status.initialized.is_none() || going || world.stays(claim) || expected(world, claim) {
        return None;
    }
    let offering = claim.status.offering();
    let own = [&node.annotations, &claim.annotations].iter().any(|a| a.get(keys::DO_NOT_DISRUPT).is_some_and(|v| v == "true"));
    let mut found = Candidate {
        claim: claim.name.clone(),
        node: node.name.clone(),
        pool: pool.name.clone(),
        pods: Vec::new(),
        price: weights::price(world, claim),
        weight: weights::UNIT,
        empty: true,
        offering,
        consolidatable: consolidatable_at(pool, claim).is_some_and(|at| at <= now),
        blocked: own.then(|| format!("the node has the annotation {}", keys::DO_NOT_DISRUPT)),
        eventual: !own && claim.termination_grace_period.is_some(),
        lasts: Duration(i64::MAX),
        came_from: BTreeSet::new(),
    };
    for key in world.pods_on(&node.name) {
        let Some(record) = world.pods.get(key) else { continue };
        let fence = fences.around(key, record);
        weigh(world, key, record, fence.is_some(), &mut found);
        found.blocked = found.blocked.or(fence);
    }
    // Room that is kept has to be found elsewhere before the node goes, though nobody is evicted from it.
    for key in world.assigned.pods(&claim.name).filter(|key| world.buffers.holds(key)) {
        found.empty = false;
        found.pods.push(key.clone());
    }
    Some(found)
}

fn weigh(world: &World, key: &PodKey, record: &PodRecord, fenced: bool, found: &mut Candidate) {
    if world.tied_to_node(record) {
        return;
    }
    if record.deleting {
        // Its work still runs: the node is in use until it is gone.
        found.empty = false;
        return;
    }
    let cost = weights::eviction(world, record).max(0);
    found.weight += cost;
    found.empty &= cost == 0;
    if !fenced {
        // Nothing is bought for a pod that will not move now.
        found.pods.push(key.clone());
    }
}

/// Whether pods are on their way to a claim's node.
fn expected(world: &World, claim: &NodeClaim) -> bool {
    world.assigned.pods(&claim.name).any(|pod| !world.buffers.holds(pod)) || world.nominated.contains_key(&claim.status.node)
}

/// When a claim's node has been left alone for as long as its pool asks; `None` when it may not be consolidated at all.
pub(super) fn consolidatable_at(pool: &NodePool, claim: &NodeClaim) -> Option<Timestamp> {
    let after = pool.disruption.consolidate_after.filter(|_| pool.replicas.is_none())?;
    let initialized = claim.status.initialized?;
    Some(claim.status.last_pod_event.map_or(initialized, |last| last.max(initialized)).plus(after))
}
