//! Why a claim was not made for another instance type: the first of the plan's own rules that speaks
//! against it. What must not enter: choosing.

use whittle_engine::World;
use whittle_model::resources::format_amount;
use whittle_model::{InstanceType, NodeClaim, Offering, Requirement, Requirements, Timestamp, keys};

/// Keys that offerings answer, not types.
const OF_OFFERINGS: [&str; 4] = [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE, keys::REGION];

/// What speaks against an instance type for a claim, in the world in which the claim was planned.
#[must_use]
pub fn why_not(world: &World, claim: &NodeClaim, name: &str, now: Timestamp) -> String {
    let class = &claim.node_class;
    let Some(catalog) = world.catalog(class) else { return format!("nothing is known of what EC2NodeClass {class} can buy") };
    let Some(kind) = catalog.get(name) else {
        return format!("EC2NodeClass {class} cannot buy a type of this name in {}", catalog.region);
    };
    let asked = world.pool(&claim.node_pool).map(|pool| &pool.template.requirements);
    if let Some(against) = asked.and_then(|asked| against(kind, asked)) {
        return format!("nodepool {} asks for {against}", claim.node_pool);
    }
    let listed = claim.requirements.get(keys::INSTANCE_TYPE).is_some_and(|types| types.allows(name));
    let others: Requirements = claim.requirements.iter().filter(|asked| asked.key() != keys::INSTANCE_TYPE).cloned().collect();
    if let Some(against) = against(kind, &others).filter(|_| !listed) {
        return format!("the pods that the claim is for ask for {against}");
    }
    let short = claim.requests.iter().find(|(resource, wanted)| kind.allocatable.get(resource) < *wanted);
    if let Some((resource, wanted)) = short {
        let (wanted, has) = (format_amount(resource, wanted), format_amount(resource, kind.allocatable.get(resource)));
        return format!("it is too small: pods and daemons ask for {resource} {wanted}, it has {has}");
    }
    offered(world, claim, kind, listed, now)
}

/// What its offerings say.
fn offered(world: &World, claim: &NodeClaim, kind: &InstanceType, listed: bool, now: Timestamp) -> String {
    let fits = |offering: &&Offering| {
        let agrees = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|wanted| wanted.allows(value));
        agrees(keys::ZONE, &offering.zone) && agrees(keys::CAPACITY_TYPE, offering.capacity_type.name())
    };
    let sold: Vec<&Offering> = kind.offerings.iter().filter(fits).filter(|offering| offering.available).collect();
    let key = |offering| kind.key(offering);
    if sold.is_empty() {
        return "it is not sold in the zones and capacity types that the claim may have".to_owned();
    }
    let left = sold.iter().filter(|offering| world.sold_out_until(&key(offering)).is_none_or(|until| until <= now));
    let Some(cheapest) = left.min_by_key(|offering| offering.price) else {
        return "EC2 had answered that it is sold out".to_owned();
    };
    let (offering, price) = (key(cheapest), cheapest.price);
    if listed {
        format!("it would have done, and the claim leaves it open: {offering} costs {price}/h by the list")
    } else {
        format!("it would have done; {offering} costs {price}/h by the list, and the claim names those that rank better")
    }
}

/// The first requirement that a type does not meet, with what it has instead.
fn against(kind: &InstanceType, asked: &Requirements) -> Option<String> {
    asked.iter().filter(|wanted| !OF_OFFERINGS.contains(&wanted.key())).find_map(|wanted| {
        let known = kind.labels.get(wanted.key());
        let open = kind.requirements.get(wanted.key());
        let met = match (known, open) {
            (Some(value), _) => wanted.allows(value),
            (None, Some(open)) => open.intersects(wanted) || (open.admits_absence() && wanted.admits_absence()),
            // A key that no type defines is the pool's own.
            (None, None) => true,
        };
        (!met).then(|| format!("{}; it has {}", shortened(wanted), known.map_or("none", String::as_str)))
    })
}

/// A requirement without more values than a person reads.
fn shortened(wanted: &Requirement) -> String {
    const SHOWN: usize = 8;
    let values = wanted.values();
    if values.len() <= SHOWN {
        return wanted.to_string();
    }
    let first: Vec<&str> = values.iter().take(SHOWN).map(String::as_str).collect();
    format!("{} {} [{}, and {} more]", wanted.key(), wanted.operator().name(), first.join(", "), values.len() - SHOWN)
}
