//! Why pods have no place: one reason for each pool, and the nearest miss.

mod of_pool;

use whittle_model::{PodKey, Resources, keys};

use super::Seats;
use super::bins::Bins;
use super::classes::Class;
use super::finish::Priced;
use super::greedy::Bench;
use super::limits::Remaining;
use super::tables::alternatives_of;
use super::volumes;
use crate::report::{Reason, Refusal, Unplaced};
use crate::world::World;
use of_pool::Near;

/// The pods to plan for, and those that cannot be planned for whatever the cluster offers.
pub(crate) fn sort_out(world: &World) -> (Vec<&PodKey>, Vec<Unplaced>) {
    let (mut pods, mut refused): (Vec<&PodKey>, Vec<Unplaced>) = (Vec::new(), Vec::new());
    let homeless = world.usage.iter().filter(|(node, _)| going(world, node)).flat_map(|(_, usage)| usage.pods.iter());
    let moving = homeless.filter(|key| world.pods.get(*key).is_some_and(|r| !r.deleting && !world.tied_to_node(r)));
    for key in world.pending.iter().chain(moving) {
        let Some(record) = world.pods.get(key) else { continue };
        let broken = || if record.volumes.is_empty() { None } else { volumes::fault(world, key, record) };
        match objection(world.shape_of(record)).or_else(broken) {
            None => pods.push(key),
            Some(why) => {
                let reasons = vec![Refusal { place: "pod".to_owned(), why }];
                match refused.iter_mut().find(|u| u.reasons == reasons) {
                    Some(group) => group.pods.push(key.clone()),
                    None => refused.push(Unplaced { pods: vec![key.clone()], reasons, nearest: None }),
                }
            }
        }
    }
    (pods, refused)
}

/// Whether a node is on its way out, so that its pods need another.
fn going(world: &World, name: &str) -> bool {
    world.nodes.get(name).is_some_and(|node| node.deleting || world.claim_of(node).is_some_and(|c| c.deleting))
}

/// What a shape asks for that plans do not heed yet: planning for it all the same could put it where it may not run.
fn unheeded(shape: &crate::world::Shape) -> Option<&'static str> {
    let asked = [
        (!shape.spread.is_empty(), "topologySpreadConstraints"),
        (!shape.pod_affinity.is_empty(), "podAffinity"),
        (shape.anti_affinity.iter().any(|t| t.topology_key != keys::HOSTNAME || t.namespace_selector.is_some()), "podAntiAffinity"),
        (shape.preferences != whittle_model::Preferences::default(), "preferences"),
    ];
    asked.into_iter().find_map(|(asks, what)| asks.then_some(what))
}

/// Why pods of this shape are never planned for.
fn objection(shape: &crate::world::Shape) -> Option<Reason> {
    if let Some(what) = unheeded(shape) {
        return Some(Reason::NotUnderstood(vec![what.to_owned()]));
    }
    if !shape.unsupported.is_empty() {
        return Some(Reason::NotUnderstood(shape.unsupported.clone()));
    }
    if shape.resource_claims {
        return Some(Reason::ResourceClaims);
    }
    for wanted in alternatives_of(&shape.affinity) {
        for requirement in wanted.iter() {
            if let Some(why) = keys::restricted(requirement.key()) {
                return Some(Reason::Restricted { wanted: requirement.clone(), why: why.to_owned() });
            }
        }
    }
    None
}

/// Why the pods that `best` leaves out have no place.
pub(crate) fn explain(
    bench: &mut Bench<'_, '_>,
    bins: &Bins<'_>,
    seats: &Seats<'_>,
    best: &Priced,
    remaining: &Remaining,
) -> Vec<Unplaced> {
    let mut left = remaining.clone();
    for claim in &best.claims {
        let table = &bench.tables.pools[claim.pool];
        let mut largest = Resources::default();
        for instance_type in claim.types.iter().filter_map(|name| table.catalog.get(name)) {
            largest.raise_to(&instance_type.capacity);
        }
        left.take(claim.pool, &largest);
    }
    let mut counts: Vec<(usize, usize)> = best.unplaced.clone();
    counts.sort_unstable();
    counts.into_iter().map(|(class, count)| explain_class(bench, bins, seats, class, count, &left)).collect()
}

fn explain_class(bench: &mut Bench<'_, '_>, bins: &Bins<'_>, seats: &Seats<'_>, number: usize, count: usize, left: &Remaining) -> Unplaced {
    let standing = seats.standing(number);
    let pods = standing[standing.len() - count..].iter().map(|key| (*key).clone()).collect();
    let class = &bench.classes[number];
    let mut reasons: Vec<Refusal> = Vec::new();
    let mut misses: Vec<Near> = Vec::new();
    for pool in 0..bench.tables.pools.len() {
        let (why, miss) = of_pool::refusal(bench, pool, class, left);
        let why = with_vetoes(bench, pool, class, why);
        reasons.push(Refusal { place: format!("nodepool {}", bench.tables.pools[pool].pool.name), why });
        misses.extend(miss);
    }
    for (name, why) in &bench.tables.closed {
        reasons.push(Refusal { place: format!("nodepool {name}"), why: Reason::Closed(why.clone()) });
    }
    if reasons.is_empty() {
        reasons.push(Refusal { place: "cluster".to_owned(), why: Reason::NoNodePool });
    }
    let obstacles = bins.obstacles(class, bench.states, &bench.tables.dimensions);
    if !obstacles.is_empty() {
        reasons.push(Refusal { place: "nodes".to_owned(), why: Reason::Nodes(obstacles) });
    }
    misses.sort_by_key(|m| m.distance);
    Unplaced { pods, reasons, nearest: misses.into_iter().next().map(|m| m.miss) }
}

/// A refusal with what policies have to do with it.
fn with_vetoes(bench: &Bench<'_, '_>, pool: usize, class: &Class<'_>, why: Reason) -> Reason {
    let prices = &bench.states.prices[pool];
    let vetoes = prices.groups.get(prices.group(class.asker) as usize).map(|group| &group.vetoes);
    let Some(vetoes) = vetoes.filter(|v| !v.is_empty()) else { return why };
    let vetoes = vetoes.iter().map(|(reason, count)| (*count, bench.pricer.reason(*reason))).collect();
    Reason::Vetoed { reason: Box::new(why), vetoes, offerings: bench.tables.pools[pool].offers.len() }
}
