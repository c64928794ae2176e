//! Nodes that exist and claims in flight: rules `fit`, `taints`, `labels` and `affinity` for what is
//! added to them, `names` for places that are none.

use std::collections::BTreeSet;

use whittle_model::{Affinity, DaemonSet, Labels, Node, NodeClaim, Resources, Taint, keys};

use super::presence::Kinds;
use super::roll::{Group, Loads, gather};
use super::{Findings, claims, tenants};
use crate::plan::Plan;
use crate::world::World;

/// A node as pods will find it once it is in use.
pub(super) struct Stand<'w> {
    pub(super) labels: &'w Labels,
    pub(super) taints: Vec<&'w Taint>,
    pub(super) allocatable: &'w Resources,
}

pub(super) fn check<'w>(world: &'w World, plan: &Plan, loads: &Loads, kinds: &mut Kinds<'w>, found: &mut Findings) {
    for (on, load) in plan.placed.keys().zip(&loads.placed) {
        match (world.nodes.get(on), world.claims.get(on)) {
            (Some(node), _) => on_node(world, node, load, found),
            (None, Some(claim)) => on_claim(world, claim, load, kinds, found),
            (None, None) => found.object("names", format!("pods are placed on {on:?}, which is neither node nor claim")),
        }
    }
}

fn on_node(world: &World, node: &Node, load: &[Group], found: &mut Findings) {
    let place = format!("node {}", node.name);
    let claim = claim_of(world, node);
    if node.deleting || node.cordoned || claim.is_some_and(|c| leaves(world, c)) {
        found.object("taints", format!("{place} is cordoned or going"));
    }
    if claim.is_none() && node.labels.contains_key(keys::NODE_POOL) {
        found.object("taints", format!("{place} may be going: its claim is not known"));
    }
    let present = present(world, &node.name);
    stands(world, &place, &stand(node, claim), load, &present, &daemons_on(world, &present), found);
}

/// The claim of a node, if it has one.
pub(super) fn claim_of<'w>(world: &'w World, node: &Node) -> Option<&'w NodeClaim> {
    let provider_id = &node.provider_id;
    let claim = world.claims.get(world.claim_by_provider.get(provider_id)?)?;
    (claim.status.provider_id == *provider_id && !provider_id.is_empty()).then_some(claim)
}

/// Whether a claim goes, was told to, or is what a move under way takes.
pub(super) fn leaves(world: &World, claim: &NodeClaim) -> bool {
    claim.deleting || world.leaving.contains(&claim.name)
}

/// Until a node has registered, its claim knows better what it will be.
pub(super) fn stand<'w>(node: &'w Node, claim: Option<&'w NodeClaim>) -> Stand<'w> {
    match claim {
        Some(claim) if claim.status.registered.is_none() => {
            Stand { labels: &claim.labels, taints: claim.taints.iter().collect(), allocatable: &claim.status.allocatable }
        }
        Some(claim) if claim.status.initialized.is_none() => {
            let passing = |t: &&Taint| keys::ephemeral_taint(&t.key) || claim.startup_taints.contains(t);
            let taints = node.taints.iter().filter(|t| !passing(t)).collect();
            Stand { labels: &node.labels, taints, allocatable: &claim.status.allocatable }
        }
        _ => Stand { labels: &node.labels, taints: node.taints.iter().collect(), allocatable: &node.allocatable },
    }
}

/// A claim whose instance is bought, before its node is there.
pub(super) fn stand_of_claim(claim: &NodeClaim) -> Stand<'_> {
    Stand { labels: &claim.labels, taints: claim.taints.iter().collect(), allocatable: &claim.status.allocatable }
}

fn on_claim<'w>(world: &'w World, claim: &'w NodeClaim, load: &[Group], kinds: &mut Kinds<'w>, found: &mut Findings) {
    let place = format!("claim {}", claim.name);
    if leaves(world, claim) {
        found.object("taints", format!("{place} is going"));
    }
    if claim.status.launched.is_some() {
        return stands(world, &place, &stand_of_claim(claim), load, &[], &BTreeSet::new(), found);
    }
    let taints: Vec<&Taint> = claim.taints.iter().collect();
    tenants::taints(world, &place, &taints, load, found);
    claims::hold(world, claim, &place, load, &kinds.of(claim), found);
}

/// Every rule for a node whose labels and size are settled.
fn stands(
    world: &World,
    place: &str,
    stand: &Stand<'_>,
    load: &[Group],
    present: &[Group],
    daemons: &BTreeSet<(&str, &str)>,
    found: &mut Findings,
) {
    tenants::taints(world, place, &stand.taints, load, found);
    for shape in tenants::shapes(load) {
        if !accepts(&world.shapes.value(shape).affinity, stand.labels) {
            found.object("labels", format!("{place} has labels that a pod planned for it does not accept"));
        }
    }
    let mut free = stand.allocatable.clone();
    free.subtract(&tenants::sum(world, present));
    for set in world.daemon_sets.values() {
        if !daemons.contains(&(set.key.namespace.as_str(), set.key.name.as_str())) && runs_on(set, stand) {
            free.subtract(&set.template.requests);
        }
    }
    let sum = tenants::sum(world, load);
    if !sum.fit_in(&free) {
        found.object("fit", format!("{place} lacks {}", claims::lacking(&sum, &free)));
    }
}

pub(super) fn accepts(affinity: &Affinity, labels: &Labels) -> bool {
    affinity.node_selector.met_by(labels) && (affinity.node_terms.is_empty() || affinity.node_terms.iter().any(|t| t.met_by(labels)))
}

fn runs_on(set: &DaemonSet, stand: &Stand<'_>) -> bool {
    let pod = &set.template;
    stand.taints.iter().all(|t| !t.repels() || t.tolerated_by(&pod.tolerations)) && accepts(&pod.affinity, stand.labels)
}

/// The pods that hold room on a node.
fn present(world: &World, node: &str) -> Vec<Group> {
    gather(world.pods_on(node).filter_map(|key| world.pods.get(key)).map(|record| (record.shape, record.identity)).collect())
}

/// The DaemonSets that have their pod there already: namespace and name.
pub(super) fn daemons_on<'w>(world: &'w World, present: &[Group]) -> BTreeSet<(&'w str, &'w str)> {
    let identities = present.iter().map(|group| world.identities.value(group.identity));
    identities
        .filter_map(|identity| {
            identity.owner.as_ref().filter(|o| o.kind == "DaemonSet").map(|o| (identity.namespace.as_str(), o.name.as_str()))
        })
        .collect()
}
