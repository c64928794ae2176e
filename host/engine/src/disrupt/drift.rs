//! Why a claim is no longer what its NodePool and EC2NodeClass ask for, in Karpenter's order of reasons.
//!
//! What must not enter: what is done about it.

use whittle_model::{CapacityType, Duration, Labels, NodeClaim, OfferingKey, Timestamp, keys, provider_drift};

use crate::world::World;

/// As Karpenter: a type is missed at the earliest this long after the claim was made.
const TYPE_IS_MISSED_AFTER: Duration = Duration::minutes(60);

/// Why a claim has drifted; `None` when it has not.
pub(super) fn reason(world: &World, claim: &NodeClaim, now: Timestamp) -> Option<String> {
    claim.status.launched?;
    let pool = world.pools.get(&claim.node_pool)?;
    let before = claim.status.drifted.as_ref().map(|(reason, _)| reason.as_str());
    let of_pool = (&pool.annotations, keys::NODE_POOL_HASH, keys::NODE_POOL_HASH_VERSION);
    if hash_differs(claim, of_pool, before == Some("NodePoolDrifted")) {
        return Some("NodePoolDrifted".to_owned());
    }
    if !pool.template.requirements.met_by(&claim.labels) {
        return Some("RequirementsDrifted".to_owned());
    }
    if now.since(claim.created) > TYPE_IS_MISSED_AFTER && type_is_missing(world, claim) {
        return Some("InstanceTypeNotFound".to_owned());
    }
    if let Some(class) = world.node_classes.get(&claim.node_class) {
        let of_class = (&class.annotations, keys::NODE_CLASS_HASH, keys::NODE_CLASS_HASH_VERSION);
        if hash_differs(claim, of_class, before == Some("NodeClassDrift")) {
            return Some("NodeClassDrift".to_owned());
        }
    }
    // Before AWS was asked, what was found in an earlier life stands.
    let known = || before.filter(|before| provider_drift::REASONS.contains(before)).map(ToOwned::to_owned);
    world.provider_drift.get(&claim.name).cloned().unwrap_or_else(known)
}

/// Whether a claim was made from another version of its owner. Hashes of different versions say nothing: what was found
/// before stands.
fn hash_differs(claim: &NodeClaim, (owner, hash, version): (&Labels, &str, &str), before: bool) -> bool {
    let both = |key: &str| Some((owner.get(key)?, claim.annotations.get(key)?));
    let (Some(hashes), Some(versions)) = (both(hash), both(version)) else { return false };
    if versions.0 == versions.1 { hashes.0 != hashes.1 } else { before }
}

/// Whether what was bought is no longer sold anywhere, sold out or not. An instance in a reservation goes on as on-demand.
fn type_is_missing(world: &World, claim: &NodeClaim) -> bool {
    let (Some(catalog), Some(bought)) = (world.catalog(&claim.node_class), claim.status.offering()) else { return false };
    let ways: &[CapacityType] = match bought.capacity_type {
        CapacityType::Reserved => &[CapacityType::Reserved, CapacityType::OnDemand],
        CapacityType::Spot => &[CapacityType::Spot],
        CapacityType::OnDemand => &[CapacityType::OnDemand],
    };
    !ways.iter().any(|way| catalog.offering(&OfferingKey { capacity_type: *way, ..bought.clone() }).is_some())
}

/// When a claim may turn out to have drifted although nothing happens.
pub(super) fn next(world: &World, now: Timestamp) -> Option<Timestamp> {
    let missing = world.claims.values().filter(|claim| type_is_missing(world, claim));
    missing.map(|claim| claim.created.plus(TYPE_IS_MISSED_AFTER).plus(Duration(1))).filter(|at| *at > now).min()
}
