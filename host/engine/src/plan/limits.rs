//! How much each pool may still buy, kept strictly within a plan.

use std::collections::BTreeMap;
use std::rc::Rc;

use whittle_model::resources::NODES;
use whittle_model::{NodeClaim, Resources, keys};

use super::reserved;
use super::tables::{PoolTable, Tables};
use crate::world::World;

/// Name and what is left.
type Limit = (String, i64);

/// What is left of the limits of each pool. Resources that a pool does not limit are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remaining {
    /// By table; empty for all tables of a pool but its first.
    left: Vec<Vec<Limit>>,
    /// The first table of each table's pool.
    home: Vec<usize>,
    /// By table and limit of its pool.
    takes: Rc<Vec<Vec<Takes>>>,
    /// Instances that may still be launched into each capacity reservation, by its id.
    units: BTreeMap<String, u32>,
}

/// What the types of a table take of one limit.
#[derive(Debug, PartialEq, Eq)]
struct Takes {
    by_row: Vec<i64>,
    /// The rows, those that take most first.
    order: Vec<usize>,
}

impl Takes {
    fn of(table: &PoolTable<'_>, limit: &str) -> Self {
        let by_row: Vec<i64> =
            table.rows.iter().map(|row| if limit == NODES { 1 } else { row.instance_type.capacity.get(limit) }).collect();
        let mut order: Vec<usize> = (0..by_row.len()).collect();
        order.sort_by_key(|row| std::cmp::Reverse(by_row[*row]));
        Self { by_row, order }
    }

    fn most(&self) -> i64 {
        self.order.first().map_or(0, |row| self.by_row[*row])
    }
}

impl Remaining {
    /// Limits less what the pools own.
    pub(crate) fn new(world: &World, tables: &Tables<'_>) -> Self {
        Self { units: reserved::units(world), ..Self::of(tables, |table| owned_by(world, &table.pool.name)) }
    }

    /// The same limits with nothing owned, and every reservation with all its instances.
    pub(crate) fn untouched(world: &World, tables: &Tables<'_>) -> Self {
        Self { units: reserved::all_units(world), ..Self::of(tables, |_| Resources::default()) }
    }

    fn of(tables: &Tables<'_>, owned: impl Fn(&PoolTable<'_>) -> Resources) -> Self {
        let (mut left, mut home, mut takes): (Vec<Vec<Limit>>, Vec<usize>, Vec<Vec<Takes>>) = Default::default();
        for (number, table) in tables.pools.iter().enumerate() {
            let limits = if table.home == number { &table.pool.limits.amounts[..] } else { &[] };
            let owned = if limits.is_empty() { Resources::default() } else { owned(table) };
            left.push(limits.iter().map(|(name, limit)| (name.clone(), limit.saturating_sub(owned.get(name)))).collect());
            home.push(table.home);
            takes.push(left[table.home].iter().map(|(name, _)| Takes::of(table, name)).collect());
        }
        Self { left, home, takes: Rc::new(takes), units: BTreeMap::new() }
    }

    /// Whether the pool has any limit at all.
    pub(crate) fn limited(&self, pool: usize) -> bool {
        !self.left[self.home[pool]].is_empty()
    }

    /// Whether one more node of some type of the table would cross a limit.
    pub(crate) fn tight(&self, pool: usize) -> bool {
        self.limits(pool).any(|((_, left), takes)| takes.most() > *left)
    }

    /// Whether one more node of a row's type would cross a limit.
    pub(crate) fn crosses(&self, pool: usize, row: usize) -> bool {
        self.crossed(pool, row).is_some()
    }

    /// The first limit that one more node of a row's type would cross: its name, what is left of
    /// it, and what the node would take.
    pub(crate) fn crossed(&self, pool: usize, row: usize) -> Option<(&str, i64, i64)> {
        self.limits(pool).find_map(|((name, left), takes)| {
            let takes = takes.by_row[row];
            (takes > *left).then_some((name.as_str(), *left, takes))
        })
    }

    fn limits(&self, pool: usize) -> impl Iterator<Item = (&Limit, &Takes)> {
        self.left[self.home[pool]].iter().zip(&self.takes[pool])
    }

    /// Instances that may still be launched into a capacity reservation.
    pub(crate) fn units(&self, reservation: &str) -> u32 {
        self.units.get(reservation).copied().unwrap_or(0)
    }

    /// Takes one of those, if there is one.
    pub(crate) fn reserve(&mut self, reservation: &str) -> bool {
        let unit = self.units.get_mut(reservation).filter(|left| **left > 0);
        unit.map(|left| *left -= 1).is_some()
    }

    /// Gives one of those back.
    pub(crate) fn release(&mut self, reservation: &str) {
        if let Some(left) = self.units.get_mut(reservation) {
            *left += 1;
        }
    }

    /// Takes from what is left, limit by limit, the most that any of these rows' types takes.
    pub(crate) fn take_most(&mut self, pool: usize, may: impl Fn(usize) -> bool) {
        for ((_, left), takes) in self.left[self.home[pool]].iter_mut().zip(&self.takes[pool]) {
            *left -= takes.order.iter().find(|row| may(**row)).map_or(0, |row| takes.by_row[*row]);
        }
    }

    /// Takes a node of this capacity from what is left.
    pub(crate) fn take(&mut self, pool: usize, capacity: &Resources) {
        for (name, left) in &mut self.left[self.home[pool]] {
            *left -= if name == NODES { 1 } else { capacity.get(name) };
        }
    }
}

/// What a pool owns: the capacity of its claims and of nodes without one. A claim that is not
/// bought yet counts as the largest type it may become.
pub(crate) fn owned_by(world: &World, pool: &str) -> Resources {
    let mut sum = Resources::default();
    for claim in world.claims.values().filter(|c| c.node_pool == pool) {
        sum.add(&claim_capacity(world, claim));
        sum.add(&Resources::of(&[(NODES, 1)]));
    }
    for node in world.nodes.values().filter(|n| n.labels.get(keys::NODE_POOL).is_some_and(|p| p == pool)) {
        if world.claim_of(node).is_none() {
            sum.add(&node.capacity);
            sum.add(&Resources::of(&[(NODES, 1)]));
        }
    }
    sum
}

fn claim_capacity(world: &World, claim: &NodeClaim) -> Resources {
    if claim.status.launched.is_some() {
        return claim.status.capacity.clone();
    }
    let mut largest = Resources::default();
    let names = claim.requirements.get(keys::INSTANCE_TYPE).map(|r| r.values().clone()).unwrap_or_default();
    for instance_type in names.iter().filter_map(|name| world.catalog_of(claim)?.get(name)) {
        largest.raise_to(&instance_type.capacity);
    }
    largest
}
