//! Rule `min-values`: a claim leaves as many values open as its pool asks for, or says that it does
//! not; rule `reserved`: no more claims count on a reservation than it has left.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{CapacityType, NodeClaim};

use super::Findings;
use super::presence::{Kinds, Outcome};
use crate::plan::Plan;
use crate::world::World;

/// Annotation of a claim that has fewer values than its pool asks for.
const RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Label: the capacity reservation that a node stands in.
const RESERVATION: &str = "karpenter.k8s.aws/capacity-reservation-id";

pub(super) fn check<'w>(world: &'w World, plan: &'w Plan, kinds: &mut Kinds<'w>, found: &mut Findings) {
    for node in &plan.nodes {
        let Some(pool) = world.pools.get(&node.claim.node_pool) else { continue };
        let outcomes = kinds.for_sale(&node.claim);
        // Reserved capacity is what it is: there is no choice to keep open.
        if counts_on(&outcomes, &node.claim).is_some() {
            continue;
        }
        for requirement in pool.template.requirements.iter() {
            let Some(wanted) = requirement.min_values() else { continue };
            let values: BTreeSet<&str> = outcomes.iter().flat_map(|outcome| outcome.values(requirement.key())).collect();
            let few = values.len() < usize::try_from(wanted).unwrap_or(usize::MAX);
            let relaxed = world.settings.relax_min_values && node.claim.annotations.get(RELAXED).is_some_and(|v| v == "true");
            if few && !relaxed {
                let (name, key, has) = (&node.claim.name, requirement.key(), values.len());
                found.object("min-values", format!("claim {name} has {has} values of {key} left, its pool asks for {wanted}"));
            }
        }
    }
    reserved(world, plan, kinds, found);
}

/// The reservations that a claim counts on when all it may become is reserved.
fn counts_on<'w>(outcomes: &[Outcome<'w>], claim: &NodeClaim) -> Option<BTreeSet<&'w str>> {
    let named = claim.requirements.get(RESERVATION);
    let reserved = |o: &Outcome<'_>| o.offering.capacity_type == CapacityType::Reserved;
    if outcomes.is_empty() || !outcomes.iter().all(reserved) {
        return None;
    }
    let ids = outcomes.iter().filter_map(|o| o.offering.reservation.as_ref()).map(|r| r.id.as_str());
    Some(ids.filter(|id| named.is_none_or(|r| r.allows(id))).collect())
}

fn reserved<'w>(world: &'w World, plan: &'w Plan, kinds: &mut Kinds<'w>, found: &mut Findings) {
    let mut left: BTreeMap<&str, u32> = BTreeMap::new();
    for offering in world.catalogs.values().flat_map(|c| &c.types).flat_map(|t| &t.offerings) {
        if let Some(reservation) = &offering.reservation {
            let least = left.entry(&reservation.id).or_insert(reservation.left);
            *least = reservation.left.min(*least);
        }
    }
    if left.is_empty() {
        return;
    }
    let waiting = world.claims.values().filter(|c| c.status.launched.is_none() && !c.deleting);
    let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let wishes: Vec<BTreeSet<&str>> =
        waiting.chain(plan.nodes.iter().map(|n| &n.claim)).filter_map(|claim| counts_on(&kinds.outcomes(claim), claim)).collect();
    for number in 0..wishes.len() {
        if !seat(number, &wishes, &left, &mut holders, &mut BTreeSet::new()) {
            let ids: Vec<&str> = wishes[number].iter().copied().collect();
            found.object("reserved", format!("more claims count on {} than are left", ids.join(", ")));
        }
    }
}

/// Gives a claim its place in a reservation, moving others if need be (augmenting paths).
fn seat<'w>(
    claim: usize,
    wishes: &[BTreeSet<&'w str>],
    left: &BTreeMap<&str, u32>,
    holders: &mut BTreeMap<&'w str, Vec<usize>>,
    tried: &mut BTreeSet<&'w str>,
) -> bool {
    for id in &wishes[claim] {
        if !tried.insert(id) {
            continue;
        }
        let room = left.get(id).copied().map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let held = holders.entry(id).or_default().clone();
        if held.len() < room {
            holders.entry(id).or_default().push(claim);
            return true;
        }
        for (place, other) in held.into_iter().enumerate() {
            if seat(other, wishes, left, holders, tried) {
                if let Some(slot) = holders.get_mut(id).and_then(|of_id| of_id.get_mut(place)) {
                    *slot = claim;
                }
                return true;
            }
        }
    }
    false
}
