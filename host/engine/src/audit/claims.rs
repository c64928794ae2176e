//! New claims: rules `fit`, `taints`, `labels` and `affinity` for each node they may become, `pool`
//! for what they owe their pool, `offering` for what is for sale, `names` for their names.

use std::collections::BTreeSet;

use whittle_model::{ClaimStatus, Labels, NodeClaim, NodePool, Requirement, Requirements, Resources, Timestamp, keys};

use super::presence::{Facts, Kinds, Outcome, catalog_of, for_sale, narrower};
use super::roll::{Group, Loads};
use super::{Findings, tenants};
use crate::plan::{Plan, PlannedNode};
use crate::world::World;

pub(super) fn check<'w>(world: &'w World, plan: &'w Plan, loads: &Loads, kinds: &mut Kinds<'w>, now: Timestamp, found: &mut Findings) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (node, load) in plan.nodes.iter().zip(&loads.nodes) {
        let name = &node.claim.name;
        if name.is_empty() || !names.insert(name) || world.claims.contains_key(name) {
            found.object("names", format!("claim name {name:?} is taken"));
        }
        pool(world, &node.claim, now, found);
        let facts = kinds.of(&node.claim);
        offering(world, node, &facts, now, found);
        let place = format!("claim {name}");
        hold(world, &node.claim, &place, load, &facts, found);
        if !tenants::sum(world, load).fit_in(&node.claim.requests) {
            found.object("fit", format!("{place} says that it is for less than its pods ask for"));
        }
        let taints: Vec<_> = node.claim.taints.iter().collect();
        tenants::taints(world, &place, &taints, load, found);
    }
}

/// Rules `fit` and `labels`: whichever node the claim becomes holds the load.
pub(super) fn hold(world: &World, claim: &NodeClaim, place: &str, load: &[Group], facts: &[&Facts<'_>], found: &mut Findings) {
    let sum = tenants::sum(world, load);
    if facts.is_empty() && !load.is_empty() {
        found.object("fit", format!("{place} names no instance type that is known"));
    }
    if let Some(small) = facts.iter().find(|f| !sum.fit_in(&f.room)) {
        let what = lacking(&sum, &small.room);
        found.object("fit", format!("{place} may become {}, which lacks {what}", small.instance_type.name));
    }
    for shape in tenants::shapes(load) {
        let affinity = &world.shapes.value(shape).affinity;
        if implied(&claim.requirements, &affinity.node_selector)
            && (affinity.node_terms.is_empty() || affinity.node_terms.iter().any(|t| implied(&claim.requirements, t)))
        {
            continue;
        }
        let unfit = facts.iter().find_map(|f| {
            let shows = |offering| Outcome { claim, instance_type: f.instance_type, offering };
            f.open.iter().find(|o| !shows(**o).welcomes(affinity)).map(|o| (&f.instance_type.name, *o))
        });
        if let Some((name, offering)) = unfit {
            let (zone, paid) = (&offering.zone, offering.capacity_type);
            found.object("labels", format!("{place} may become {paid} {name} in {zone}, which a pod planned for it does not accept"));
        }
    }
}

/// Whether all that a claim may become within its requirements meets `wanted`. That it keeps
/// within them is looked at by itself.
pub(super) fn implied(requirements: &Requirements, wanted: &Requirements) -> bool {
    wanted.iter().all(|want| requirements.get(want.key()).is_some_and(|have| narrower(have, want)))
}

/// Names and amounts by which `sum` goes beyond `room`.
pub(super) fn lacking(sum: &Resources, room: &Resources) -> String {
    let over = sum.iter().filter(|(name, amount)| *amount > 0 && *amount > room.get(name));
    over.map(|(name, amount)| format!("{} {name}", amount - room.get(name))).collect::<Vec<_>>().join(", ")
}

/// Rule `offering`: the choice can be bought and the claim allows it, and so can one offering of
/// each type that it names.
fn offering(world: &World, node: &PlannedNode, facts: &[&Facts<'_>], now: Timestamp, found: &mut Findings) {
    let name = &node.claim.name;
    let named = node.claim.requirements.get(keys::INSTANCE_TYPE).map_or(0, |r| r.values().len());
    if named != facts.len() {
        found.object("offering", format!("claim {name} names {} types that its catalogue does not know", named - facts.len()));
    }
    for idle in facts.iter().filter(|f| f.cheapest.is_none()) {
        found.object("offering", format!("claim {name} names {}, of which it allows nothing that is for sale", idle.instance_type.name));
    }
    for key in std::iter::once(&node.choice).chain(node.runner_up.as_ref().map(|(key, _)| key)) {
        let of_type = facts.iter().find(|f| f.instance_type.name == key.instance_type);
        let known = catalog_of(world, &node.claim).and_then(|c| c.offering(key));
        let why = match (known, of_type) {
            (None, _) => "which does not exist",
            (Some(_), None) => "a type it does not name",
            (Some(o), Some(_)) if !for_sale(world, &key.instance_type, o, now) => "which is not for sale",
            // Two reservations of one type in one zone go by the same name.
            (Some(_), Some(f)) if !f.open.iter().any(|o| o.zone == key.zone && o.capacity_type == key.capacity_type) => {
                "which its requirements refuse"
            }
            (Some(_), Some(_)) => continue,
        };
        found.object("offering", format!("claim {name} counts on {key}, {why}"));
    }
}

/// Rule `pool`: the claim is what its pool makes.
fn pool(world: &World, claim: &NodeClaim, now: Timestamp, found: &mut Findings) {
    let name = &claim.name;
    let Some(pool) = world.pools.get(&claim.node_pool) else {
        return found.object("pool", format!("claim {name} is of nodepool {:?}, which does not exist", claim.node_pool));
    };
    if let Some(why) = closed(world, pool) {
        found.object("pool", format!("claim {name} is of nodepool {}, from which nothing may be bought: {why}", pool.name));
    }
    let template = &pool.template;
    let copied = [
        ("node class", claim.node_class == template.node_class),
        ("taints", claim.taints == template.taints),
        ("startup taints", claim.startup_taints == template.startup_taints),
        ("expireAfter", claim.expire_after == template.expire_after),
        ("terminationGracePeriod", claim.termination_grace_period == template.termination_grace_period),
        ("annotations", contains(&claim.annotations, &template.annotations)),
        ("labels", contains(&claim.labels, &template.labels) && own_labels(claim)),
        ("time of birth", claim.created == now && !claim.deleting),
        ("status", claim.status == ClaimStatus::default()),
    ];
    for (what, _) in copied.iter().filter(|(_, right)| !right) {
        found.object("pool", format!("claim {name} does not have the {what} that nodepool {} gives it", pool.name));
    }
    for wanted in template.requirements.iter() {
        required(claim, wanted, pool, found);
    }
    for (key, value) in &template.labels {
        required(claim, &Requirement::any_of(key, &[value]), pool, found);
    }
}

/// A requirement of the pool binds the claim, and so the label that the claim gives its node.
fn required(claim: &NodeClaim, wanted: &Requirement, pool: &NodePool, found: &mut Findings) {
    if !claim.requirements.get(wanted.key()).is_some_and(|have| narrower(have, wanted)) {
        found.object("pool", format!("claim {} goes beyond {wanted} of nodepool {}", claim.name, pool.name));
    }
}

/// Whose the claim is, and that its labels and requirements say the same.
fn own_labels(claim: &NodeClaim) -> bool {
    let is = |key: &str, value: &str| claim.labels.get(key).is_some_and(|v| v == value);
    let agrees = |(key, value): (&String, &String)| claim.requirements.get(key).is_none_or(|r| r.allows(value));
    is(keys::NODE_POOL, &claim.node_pool) && is(keys::NODE_CLASS, &claim.node_class) && claim.labels.iter().all(agrees)
}

fn contains(all: &Labels, some: &Labels) -> bool {
    some.iter().all(|(key, value)| all.get(key) == Some(value))
}

/// Why nothing may be bought from a pool.
pub(super) fn closed(world: &World, pool: &NodePool) -> Option<String> {
    if pool.deleting {
        return Some("it is being deleted".to_owned());
    }
    if pool.replicas.is_some() {
        return Some("it keeps a number of nodes of its own".to_owned());
    }
    match world.node_classes.get(&pool.template.node_class) {
        None => Some("its node class does not exist".to_owned()),
        Some(class) => pool.not_ready.clone().or_else(|| class.not_ready.clone()),
    }
}
