//! Nodes that stay unhealthy are replaced, whatever their pods say: they do not run there anyway.
//!
//! What must not enter: nodes that are only late; registration and initialization have their own time-outs.

use std::collections::BTreeSet;

use whittle_model::{Duration, Node, NodeClaim, Timestamp, keys};

use crate::lifecycle;
use crate::report::ClaimStep;
use crate::round::Round;
use crate::world::World;

/// Conditions that call for repair: name, bad state (`None` is unknown), and for how long that is tolerated; those of
/// EKS nodes and their monitoring agent, with Karpenter's figures.
const POLICIES: [(&str, Option<bool>, Duration); 7] = [
    ("Ready", Some(false), Duration::minutes(30)),
    ("Ready", None, Duration::minutes(30)),
    ("AcceleratedHardwareReady", Some(false), Duration::minutes(10)),
    ("StorageReady", Some(false), Duration::minutes(30)),
    ("NetworkingReady", Some(false), Duration::minutes(30)),
    ("KernelReady", Some(false), Duration::minutes(30)),
    ("ContainerRuntimeReady", Some(false), Duration::minutes(30)),
];

/// As Karpenter: when more of a pool is unhealthy, percent rounded up, something else is wrong than single nodes.
const MOST_PERCENT: usize = 20;

/// When a node has been unhealthy for too long, and by which condition.
fn unhealthy_at(node: &Node) -> Option<(Timestamp, &'static str)> {
    let policies = POLICIES.iter();
    let bad = policies.filter_map(|(name, bad, tolerated)| {
        let condition = node.conditions.iter().find(|c| c.name == *name && c.holds == *bad)?;
        Some((condition.since.plus(*tolerated), *name))
    });
    bad.min()
}

/// When the node of a claim is to be repaired, if it does not get well.
pub(crate) fn due_at(world: &World, claim: &NodeClaim) -> Option<Timestamp> {
    if !world.settings.features.node_repair || claim.deleting || world.stays(claim) {
        return None;
    }
    world.node_of(claim).and_then(unhealthy_at).map(|(at, _)| at)
}

/// Removes nodes that have been unhealthy for too long, unless too many are.
pub(crate) fn advance(round: &mut Round<'_>, names: &BTreeSet<String>) {
    if !round.world.settings.features.node_repair {
        return;
    }
    for name in names {
        let Some(claim) = round.world.claims.get(name) else { continue };
        if due_at(round.world, claim).is_none_or(|at| at > round.now) || round.world.leaving.contains(name) {
            continue;
        }
        let why = too_many(round.world, &claim.node_pool);
        let before = round.ledger.held.get(name).cloned();
        if let Some(why) = why {
            if before.as_ref() != Some(&why) {
                round.ledger.held.insert(name.clone(), why.clone());
                round.step(name, ClaimStep::Kept(why));
            }
        } else {
            round.ledger.held.remove(name);
            lifecycle::condemn(round, name, "Unhealthy");
        }
    }
}

/// Why no node of a pool is repaired now; standalone claims count in the whole cluster.
fn too_many(world: &World, pool: &str) -> Option<String> {
    let of_pool = |node: &&Node| pool.is_empty() || node.labels.get(keys::NODE_POOL).is_some_and(|name| name == pool);
    let (mut all, mut bad) = (0_usize, 0_usize);
    for node in world.nodes.values().filter(of_pool) {
        all += 1;
        bad += usize::from(unhealthy_at(node).is_some());
    }
    let most = (all * MOST_PERCENT).div_ceil(100);
    let place = if pool.is_empty() { "the cluster".to_owned() } else { format!("nodepool {pool}") };
    (bad > most).then(|| format!("{bad} of {all} nodes of {place} are unhealthy, and more than {most} are not repaired"))
}
