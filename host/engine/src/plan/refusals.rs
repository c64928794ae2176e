//! Why pods have no place: one reason for each pool, and the nearest miss.

mod of_pool;

use std::collections::BTreeSet;

use whittle_model::{Timestamp, keys};

use super::Seats;
use super::bins::Bins;
use super::classes::{Class, Member};
use super::finish::Priced;
use super::greedy::Bench;
use super::limits::Remaining;
use super::reserved;
use super::tables::alternatives_of;
use super::topology::tally::Tally;
use super::volumes;
use crate::protection;
use crate::report::{Reason, Refusal, Unplaced};
use crate::world::World;
use of_pool::Near;

/// The pods to plan for, and those that cannot be planned for whatever the cluster offers.
pub(crate) fn sort_out(world: &World, now: Timestamp) -> (Vec<Member<'_>>, Vec<Unplaced>) {
    let (mut pods, mut refused): (Vec<Member<'_>>, Vec<Unplaced>) = (Vec::new(), Vec::new());
    let homeless = departing(world).into_iter().filter_map(|node| world.usage.get(node)).flat_map(|usage| usage.pods.iter());
    let moving = homeless.filter(|key| world.pods.get(*key).is_some_and(|r| protection::reschedulable(world, r, now)));
    for key in world.pending.iter().chain(moving) {
        let Some(record) = world.pods.get(key) else { continue };
        let broken = || if record.volumes.is_empty() { None } else { volumes::fault(world, key, record) };
        match objection(world.shape_of(record)).or_else(broken) {
            None => pods.push(Member { key, record }),
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

/// Whether a node is on its way out, so that its pods need another: it is being deleted, or as Karpenter counts it a
/// move takes it or it was told to go, though the watch shows it alive.
pub(crate) fn going(world: &World, name: &str) -> bool {
    world
        .nodes
        .get(name)
        .is_some_and(|node| node.deleting || world.claim_of(node).is_some_and(|c| c.deleting || world.leaving.contains(&c.name)))
}

/// The nodes that are on their way out, by name.
pub(crate) fn departing(world: &World) -> BTreeSet<&str> {
    let claims = world.going.iter().chain(&world.leaving).filter_map(|claim| world.claims.get(claim));
    let nodes = claims.flat_map(|claim| world.nodes_of(claim)).chain(world.nodes.values().filter(|node| node.deleting));
    nodes.map(|node| node.name.as_str()).filter(|name| going(world, name)).collect()
}

/// Why pods of this shape are never planned for.
fn objection(shape: &crate::world::Shape) -> Option<Reason> {
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
    tally: &Tally,
    remaining: &Remaining,
) -> Vec<Unplaced> {
    if best.unplaced.is_empty() {
        return Vec::new();
    }
    let tally = &super::leftovers::counted(bench, tally, &best.claims);
    let left = super::leftovers::after(remaining, &best.claims);
    let mut counts: Vec<(usize, usize)> = best.unplaced.clone();
    counts.sort_unstable();
    counts.into_iter().map(|(class, count)| explain_class(bench, bins, seats, (class, count), tally, &left)).collect()
}

fn explain_class(
    bench: &mut Bench<'_, '_>,
    bins: &Bins<'_>,
    seats: &Seats<'_>,
    (number, count): (usize, usize),
    tally: &Tally,
    left: &Remaining,
) -> Unplaced {
    let standing = seats.standing(number);
    let pods = standing[standing.len() - count..].iter().map(|key| (*key).clone()).collect();
    let class = &bench.classes[number];
    let mut reasons: Vec<Refusal> = Vec::new();
    let mut misses: Vec<Near> = Vec::new();
    for pool in 0..bench.tables.pools.len() {
        let (mut why, miss) = of_pool::refusal(bench, pool, class, tally, left);
        if bench.tables.pools[pool].reserved && reserved::starts(bench, pool, class.asker, left).is_empty() {
            why = Reason::ReservationsInUse;
        }
        let why = with_vetoes(bench, pool, class, why);
        let place = format!("nodepool {}", bench.tables.pools[pool].pool.name);
        match reasons.iter_mut().find(|known| known.place == place) {
            // Of the tables that overlays make of a pool that one speaks which the class agrees with.
            Some(known) if agrees(bench, pool, class) => known.why = why,
            Some(_) => {}
            None => reasons.push(Refusal { place, why }),
        }
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

/// Whether the class and a table agree, room aside.
fn agrees(bench: &mut Bench<'_, '_>, pool: usize, class: &Class<'_>) -> bool {
    let base = bench.states.base(pool);
    base.is_some_and(|base| class.profiles.iter().any(|p| bench.states.merge(bench.tables, base, *p).is_some()))
}

/// A refusal with what policies have to do with it.
fn with_vetoes(bench: &Bench<'_, '_>, pool: usize, class: &Class<'_>, why: Reason) -> Reason {
    let prices = &bench.states.prices[pool];
    let vetoes = prices.groups.get(prices.group(class.asker) as usize).map(|group| &group.vetoes);
    let Some(vetoes) = vetoes.filter(|v| !v.is_empty()) else { return why };
    let vetoes = vetoes.iter().map(|(reason, count)| (*count, bench.pricer.reason(*reason))).collect();
    Reason::Vetoed { reason: Box::new(why), vetoes, offerings: bench.tables.pools[pool].offers.len() }
}
