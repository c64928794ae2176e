//! Rule `limits`: what a pool owns and may come to own stays within its limits, whichever types its
//! claims become.

use std::collections::BTreeMap;

use whittle_model::resources::NODES;
use whittle_model::{NodeClaim, NodePool, keys};

use super::Findings;
use crate::plan::Plan;
use crate::world::World;

pub(super) fn check(world: &World, plan: &Plan, found: &mut Findings) {
    let mut buying: BTreeMap<&str, Vec<&NodeClaim>> = BTreeMap::new();
    for node in &plan.nodes {
        buying.entry(&node.claim.node_pool).or_default().push(&node.claim);
    }
    for (name, claims) in buying {
        let Some(pool) = world.pools.get(name) else { continue };
        for (resource, limit) in &pool.limits.amounts {
            let wanted: i64 = claims.iter().map(|claim| most(world, claim, resource)).fold(0, i64::saturating_add);
            let owned = owned(world, pool, resource);
            let over = owned.saturating_add(wanted).saturating_sub(*limit);
            if over > 0 {
                found.object("limits", format!("nodepool {name} would own {over} {resource} beyond its limit of {limit}"));
            }
        }
    }
}

fn owned(world: &World, pool: &NodePool, resource: &str) -> i64 {
    let claims = world.claims.values().filter(|c| c.node_pool == pool.name).map(|claim| most(world, claim, resource));
    let strays = world.nodes.values().filter(|node| {
        let of_pool = node.labels.get(keys::NODE_POOL).is_some_and(|p| *p == pool.name);
        of_pool && world.claims.values().all(|c| node.provider_id.is_empty() || c.status.provider_id != node.provider_id)
    });
    let strays = strays.map(|node| if resource == NODES { 1 } else { node.capacity.get(resource) });
    claims.chain(strays).fold(0, i64::saturating_add)
}

/// The most that a claim may have of a resource.
fn most(world: &World, claim: &NodeClaim, resource: &str) -> i64 {
    if resource == NODES {
        return 1;
    }
    if claim.status.launched.is_some() {
        return claim.status.capacity.get(resource);
    }
    let (catalog, named) = (world.catalog_of(claim), claim.requirements.get(keys::INSTANCE_TYPE));
    let types = named.into_iter().flat_map(|r| r.values()).filter_map(|name| catalog?.get(name));
    types.map(|t| t.capacity.get(resource)).max().unwrap_or(0)
}
