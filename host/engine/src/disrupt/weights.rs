//! What nodes cost and what disrupting them costs, in whole numbers.
//! Source: Karpenter's eviction cost, `1 + deletion cost / 2^27 + priority / 2^25` within -10 and 10.

use whittle_model::{Micros, NodeClaim, keys};

use crate::world::{PodRecord, World};

/// Costs of disruption are whole numbers of this part of 1.
pub(crate) const UNIT: i64 = 1 << 27;

/// What evicting a pod costs, in [`UNIT`]s.
pub(crate) fn eviction(world: &World, record: &PodRecord) -> i64 {
    let asked = world.identity_of(record).annotations.get(keys::DELETION_COST);
    let deletion: i64 = asked.and_then(|text| text.parse::<i32>().ok()).map_or(0, i64::from);
    let priority = i64::from(world.shape_of(record).priority);
    (UNIT + deletion + 4 * priority).clamp(-10 * UNIT, 10 * UNIT)
}

/// What disrupting a node costs whether or not it may be disrupted, in [`UNIT`]s: 1 for itself and what its pods cost.
pub(crate) fn of_node(world: &World, node: &str) -> i64 {
    let records = world.pods_on(node).filter_map(|key| world.pods.get(key));
    let moving = records.filter(|record| !record.deleting && !world.tied_to_node(record));
    UNIT + moving.map(|record| eviction(world, record).max(0)).sum::<i64>()
}

/// Such a cost in thousandths, for tables.
pub(crate) fn milli(cost: i64) -> i64 {
    i64::try_from(i128::from(cost) * 1000 / i128::from(UNIT)).unwrap_or(0)
}

/// What an hour of a claim costs today; zero when its type is no longer known.
pub(crate) fn price(world: &World, claim: &NodeClaim) -> Micros {
    let sold = claim.status.offering().and_then(|key| world.catalog(&claim.node_class)?.offering(&key));
    sold.map_or(Micros(0), |offering| offering.price)
}
