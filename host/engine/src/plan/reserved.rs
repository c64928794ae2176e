//! Capacity reservations: paid for already, but counted. A pool's reserved offerings make a table of their own before
//! its others. A claim from it names one reservation and takes one of its instances, so no two claims count on the
//! same one and none is held back for nothing. The largest go first while claims are being filled; in the end each
//! claim has the smallest that holds it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use whittle_model::{CapacityType, Micros, Requirement, Requirements, keys};

use super::amounts::fits;
use super::finish::Finished;
use super::greedy::{Bench, Draft, OpenClaim};
use super::limits::Remaining;
use super::states::StateId;
use super::tables::PoolTable;
use crate::world::World;

/// What nodes in reservations are known to be. The pool's `minValues` is about a choice that there is not here.
pub(crate) fn template(of_pool: &Requirements) -> Requirements {
    let mut all: Requirements = of_pool.iter().map(|requirement| requirement.clone().with_min_values(None)).collect();
    all.add(Requirement::any_of(keys::CAPACITY_TYPE, &[CapacityType::Reserved.name()]));
    all
}

/// Instances that may still be launched into each reservation: what the catalogues say, the least where they differ,
/// less what claims that are not launched yet count on.
pub(crate) fn units(world: &World) -> BTreeMap<String, u32> {
    let mut units: BTreeMap<String, u32> = BTreeMap::new();
    if !world.settings.features.reserved_capacity {
        return units;
    }
    for offering in world.catalogs.values().flat_map(|catalog| &catalog.types).flat_map(|of_type| &of_type.offerings) {
        if let Some(reservation) = offering.reservation.as_ref().filter(|_| offering.available) {
            let least = units.entry(reservation.id.clone()).or_insert(reservation.left);
            *least = reservation.left.min(*least);
        }
    }
    if !units.is_empty() {
        for id in world.claims.values().filter(|c| c.status.launched.is_none()).filter_map(|claim| named(&claim.requirements)) {
            if let Some(left) = units.get_mut(id) {
                *left = left.saturating_sub(1);
            }
        }
    }
    units
}

/// Instances in reservations, by reservation.
pub(crate) fn taken(world: &World) -> BTreeMap<&str, u32> {
    let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
    if world.settings.features.reserved_capacity {
        let launched = world.claims.values().filter(|claim| claim.status.launched.is_some());
        launched.filter_map(|claim| named(&claim.requirements)).for_each(|id| *taken.entry(id).or_default() += 1);
    }
    taken
}

/// Instances that each reservation has when nothing is launched into it: those that are left, and those that are taken.
pub(crate) fn all_units(world: &World) -> BTreeMap<String, u32> {
    let mut units = BTreeMap::new();
    if world.settings.features.reserved_capacity {
        let behind = world.catalogs.values().flat_map(|catalog| catalog.held());
        for held in behind.map(|held| held.reservation) {
            let least = units.entry(held.id).or_insert(held.left);
            *least = held.left.min(*least);
        }
    }
    for (id, taken) in taken(world) {
        if let Some(units) = units.get_mut(id) {
            *units += taken;
        }
    }
    units
}

/// The reservation that requirements name.
pub(crate) fn named(requirements: &Requirements) -> Option<&str> {
    requirements.get(keys::RESERVATION_ID).and_then(Requirement::single)
}

/// The states that a new claim of this pool may begin in: that of an empty claim, or, of reservations, one for each
/// that has instances left, the largest first.
pub(crate) fn starts(bench: &mut Bench<'_, '_>, pool: usize, asker: u32, remaining: &Remaining) -> Vec<StateId> {
    let Some(base) = bench.states.base(pool) else { return Vec::new() };
    let table = &bench.tables.pools[pool];
    if !table.reserved {
        return vec![base];
    }
    let mut open: Vec<(Reverse<Micros>, &str)> =
        reservations(table).filter(|(_, id)| remaining.units(id) > 0).map(|(size, id)| (Reverse(size), id)).collect();
    open.sort_unstable();
    open.dedup();
    let one = |id: &str| [Requirement::any_of(keys::RESERVATION_ID, &[id])].into_iter().collect();
    let wanted: Vec<Requirements> = open.into_iter().map(|(_, id)| one(id)).collect();
    let mut states = Vec::new();
    for wanted in wanted {
        let profile = bench.states.profile(&wanted, asker);
        states.extend(bench.states.merge(bench.tables, base, profile));
    }
    states
}

/// Claims of the first pool without pods: in its reservations as far as these go, then in what can be bought.
pub(crate) fn bare(bench: &mut Bench<'_, '_>, count: usize, remaining: &Remaining) -> Vec<OpenClaim> {
    let (mut claims, mut left) = (Vec::new(), remaining.clone());
    let width = bench.tables.dimensions.names().len();
    for pool in 0..bench.tables.pools.len() {
        while claims.len() < count {
            let Some(start) = starts(bench, pool, 0, &left).into_iter().next() else { break };
            named(&bench.states.get(start).requirements).into_iter().for_each(|reservation| {
                left.reserve(reservation);
            });
            claims.push(OpenClaim::new(pool, start, width));
        }
    }
    claims
}

/// The reservations of a table with what an hour of such an instance would cost on demand.
fn reservations<'t>(table: &'t PoolTable<'_>) -> impl Iterator<Item = (Micros, &'t str)> {
    table.offers.iter().filter_map(|offer| {
        let id = &offer.offering.reservation.as_ref()?.id;
        Some((on_demand(table, offer.row, &offer.offering.zone), id.as_str()))
    })
}

/// What a type costs on demand, in this zone if it is sold there.
fn on_demand(table: &PoolTable<'_>, row: u32, zone: &str) -> Micros {
    let offerings = &table.rows[row as usize].instance_type.offerings;
    let sold = || offerings.iter().filter(|o| o.capacity_type == CapacityType::OnDemand);
    sold().find(|o| o.zone == zone).or_else(|| sold().next()).map_or(Micros(0), |o| o.price)
}

/// Moves each claim in a reservation into the smallest that holds what it holds, in the same zone.
pub(crate) fn tighten(bench: &mut Bench<'_, '_>, draft: &mut Draft, remaining: &Remaining) {
    let mut left = remaining.clone();
    let of_reservation = |claim: &OpenClaim, bench: &Bench<'_, '_>| named(&bench.states.get(claim.state).requirements).map(str::to_owned);
    let ids: Vec<Option<String>> =
        draft.claims.iter().map(|c| of_reservation(c, bench).filter(|_| bench.tables.pools[c.pool].reserved)).collect();
    ids.iter().flatten().for_each(|id| {
        left.reserve(id);
    });
    for (claim, id) in draft.claims.iter_mut().zip(ids) {
        let Some(id) = id else { continue };
        if let Some((state, smaller)) = smaller(bench, claim, &id, &left) {
            claim.state = state;
            left.reserve(&smaller);
            left.release(&id);
        }
    }
}

/// The smallest reservation with an instance left that is smaller than `id` and holds the claim, and its state there.
fn smaller(bench: &mut Bench<'_, '_>, claim: &OpenClaim, id: &str, left: &Remaining) -> Option<(StateId, String)> {
    let table = &bench.tables.pools[claim.pool];
    let zone_of = |id: &str| table.offers.iter().find_map(|o| (o.offering.reservation.as_ref()?.id == id).then_some(&o.offering.zone));
    let mut others: Vec<(Micros, &str)> = reservations(table).collect();
    let own = others.iter().find(|(_, other)| *other == id)?.0;
    others.retain(|(size, other)| *size < own && left.units(other) > 0 && zone_of(other) == zone_of(id));
    others.sort_unstable();
    let others: Vec<String> = others.into_iter().map(|(_, id)| id.to_owned()).collect();
    let asker = bench.classes[claim.content.first()?.0].asker;
    for other in others {
        let mut wanted = bench.states.get(claim.state).requirements.clone();
        wanted.remove(keys::RESERVATION_ID);
        wanted.add(Requirement::any_of(keys::RESERVATION_ID, &[&other]));
        let profile = bench.states.profile(&wanted, asker);
        let Some(state) = bench.states.base(claim.pool).and_then(|base| bench.states.merge(bench.tables, base, profile)) else { continue };
        let holds = bench.states.get(state).rows.ones().any(|row| fits(&claim.used, &bench.tables.pools[claim.pool].rows[row].room));
        // Prices that differ by asker would have to be those of all on the claim.
        let purse = bench.states.get(state).purse == bench.states.get(claim.state).purse;
        if holds && purse {
            return Some((state, other));
        }
    }
    None
}

/// A bound on what it costs to buy for so many pods, less what reservations can save of it.
pub(crate) fn less(bench: &Bench<'_, '_>, bound: Micros, pods: usize, remaining: &Remaining) -> Micros {
    if bench.tables.pools.iter().any(|table| table.reserved) {
        worth(bench, pods, remaining).map_or(Micros(0), |worth| bound - worth)
    } else {
        bound
    }
}

/// What is left once these claims have their part of it.
pub(crate) fn after(remaining: &Remaining, claims: &[Finished]) -> Remaining {
    let mut left = remaining.clone();
    for reservation in claims.iter().filter_map(|claim| named(&claim.menu.requirements)) {
        left.reserve(reservation);
    }
    left
}

/// What the reservations of a plan can be worth at most: instead of each, the same type could be bought in the same
/// zone. `None` when that is not so for one of them.
fn worth(bench: &Bench<'_, '_>, pods: usize, remaining: &Remaining) -> Option<Micros> {
    let choosy = |wanted: &Requirements| {
        [keys::CAPACITY_TYPE, keys::RESERVATION_ID, keys::RESERVATION_TYPE, keys::RESERVATION_INTERRUPTIBLE]
            .into_iter()
            .any(|key| wanted.get(key).is_some())
    };
    if bench.classes.iter().flat_map(|class| &class.profiles).any(|profile| choosy(bench.states.wanted(*profile))) {
        return None;
    }
    let mut all: BTreeMap<&str, Option<Micros>> = BTreeMap::new();
    for table in bench.tables.pools.iter().filter(|table| table.reserved) {
        for offer in table.offers.iter() {
            let Some(reservation) = &offer.offering.reservation else { continue };
            let instead = sold_instead(bench, table, offer.row, &offer.offering.zone);
            let worth = all.entry(&reservation.id).or_insert(instead);
            *worth = worth.and_then(|worth| instead.map(|instead| worth.max(instead)));
        }
    }
    let mut values: Vec<Micros> = Vec::new();
    for (id, worth) in all {
        let units = usize::try_from(remaining.units(id)).unwrap_or(usize::MAX).min(pods);
        if units > 0 {
            values.extend(std::iter::repeat_n(worth?, units));
        }
    }
    values.sort_unstable_by_key(|value| Reverse(*value));
    Some(values.into_iter().take(pods).sum())
}

/// The highest rank of the same type in the same zone in a table of what is not reserved, of the same pool.
fn sold_instead(bench: &Bench<'_, '_>, table: &PoolTable<'_>, row: u32, zone: &str) -> Option<Micros> {
    let name = &table.rows[row as usize].instance_type.name;
    let (number, other) = bench.tables.pools.iter().enumerate().find(|(_, other)| !other.reserved && other.home == table.home)?;
    let row = other.rows.iter().find(|row| row.instance_type.name == *name)?;
    let offers = row.offers.clone().filter(|offer| other.offers[*offer].offering.zone == zone);
    let groups = &bench.states.prices[number].groups;
    let rank = |offer: usize| {
        groups.iter().map(|group| group.prices[offer].map(|price| price.rank)).collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    offers.filter_map(rank).max()
}
