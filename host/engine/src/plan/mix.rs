//! The mix: what the cluster is made of, as a cross table that policies can price against.

use std::collections::BTreeMap;

use whittle_model::policy::{MixRowColumn, Table, Words};
use whittle_model::resources::CPU;
use whittle_model::{Labels, Micros, keys};

use super::askers::{family_label, identity_value, mix_column};
use crate::world::World;

/// What nodes of one kind come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cell {
    nodes: i64,
    pods: i64,
    cpu_milli: i64,
    list: i64,
    cost: i64,
}

/// Key number, value, capacity type, zone, family; words all but the first.
type Place = (usize, i64, i64, i64, i64);

/// A node's part in the mix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part {
    pub(crate) capacity_type: i64,
    pub(crate) zone: i64,
    pub(crate) family: i64,
    pub(crate) list: Micros,
    pub(crate) cost: Micros,
    /// For each key its values with pods and CPU.
    pub(crate) values: Vec<BTreeMap<i64, (i64, i64)>>,
}

/// The cross table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mix {
    cells: BTreeMap<Place, Cell>,
}

impl Mix {
    /// The mix of nodes and claims that exist. A claim in flight counts with the pods meant for it,
    /// once it is known what was bought.
    pub(crate) fn of_world(world: &World, mix_keys: &[String], words: &mut Words) -> Self {
        let mut mix = Self::default();
        for claim in world.claims.values().filter(|c| !c.deleting && c.status.launched.is_some()) {
            let node = world.node_of(claim);
            let labels = node.map_or(&claim.labels, |n| &n.labels);
            let bound = node.into_iter().flat_map(|n| world.pods_on(&n.name));
            let pods: Vec<_> = bound.chain(world.assigned.pods(&claim.name)).collect();
            let mut part = Part::of_labels(labels, claim.status.price, words);
            part.values = mix_keys
                .iter()
                .map(|key| {
                    let mut values: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
                    let pool = words.intern(&claim.node_pool);
                    for record in pods.iter().filter_map(|key| world.pods.get(*key)).filter(|r| !world.tied_to_node(r)) {
                        let value = mix_column(key).map_or(pool, |column| identity_value(world, record, &column, words));
                        let slot = values.entry(value).or_default();
                        *slot = (slot.0 + 1, slot.1 + world.shape_of(record).requests.get(CPU));
                    }
                    if values.is_empty() && mix_column(key).is_none() {
                        values.insert(pool, (0, 0));
                    }
                    values
                })
                .collect();
            mix.add(&part);
        }
        mix
    }

    /// Adds a node's part.
    pub(crate) fn add(&mut self, part: &Part) {
        self.change(part, 1);
    }

    /// Takes a node's part away.
    pub(crate) fn subtract(&mut self, part: &Part) {
        self.change(part, -1);
    }

    fn change(&mut self, part: &Part, sign: i64) {
        for (key, values) in part.values.iter().enumerate() {
            let total: i64 = values.values().map(|(_, cpu)| cpu).sum();
            for (value, (pods, cpu)) in values {
                let place = (key, *value, part.capacity_type, part.zone, part.family);
                let cell = self.cells.entry(place).or_default();
                cell.nodes += sign;
                cell.pods += sign * pods;
                cell.cpu_milli += sign * cpu;
                cell.list += sign * share(part.list.0, *cpu, total, values.len());
                cell.cost += sign * share(part.cost.0, *cpu, total, values.len());
                if *cell == Cell::default() {
                    self.cells.remove(&place);
                }
            }
        }
    }

    /// The rows as a table, all of mix 0.
    pub(crate) fn table(&self, wanted: &[MixRowColumn], mix_keys: &[String], words: &mut Words) -> Table {
        let mut table = Table::of(wanted.len());
        let key_words: Vec<i64> = mix_keys.iter().map(|key| words.intern(key)).collect();
        for ((key, value, capacity_type, zone, family), cell) in &self.cells {
            table.push(wanted.iter().map(|column| match column {
                MixRowColumn::Mix => 0,
                MixRowColumn::Key => key_words.get(*key).copied().unwrap_or(0),
                MixRowColumn::Value => *value,
                MixRowColumn::CapacityType => *capacity_type,
                MixRowColumn::Zone => *zone,
                MixRowColumn::Family => *family,
                MixRowColumn::Nodes => cell.nodes,
                MixRowColumn::Pods => cell.pods,
                MixRowColumn::CpuMilli => cell.cpu_milli,
                MixRowColumn::ListMicros => cell.list,
                MixRowColumn::CostMicros => cell.cost,
            }));
        }
        table
    }
}

/// A part of `amount` in proportion to `cpu` of `total`; equal parts when nobody asks for CPU.
fn share(amount: i64, cpu: i64, total: i64, values: usize) -> i64 {
    if total > 0 {
        i64::try_from(i128::from(amount) * i128::from(cpu) / i128::from(total)).unwrap_or(i64::MAX)
    } else {
        amount / i64::try_from(values.max(1)).unwrap_or(1)
    }
}

impl Part {
    /// The part of a node with these labels, without its pods.
    pub(crate) fn of_labels(labels: &Labels, price: Micros, words: &mut Words) -> Self {
        let label = |key: &str| labels.get(key).map_or("", String::as_str);
        Self::new((label(keys::CAPACITY_TYPE), label(keys::ZONE), label(&family_label())), price, words)
    }

    /// The part of a node of this capacity type, zone and family, without its pods.
    pub(crate) fn new((capacity_type, zone, family): (&str, &str, &str), price: Micros, words: &mut Words) -> Self {
        let (capacity_type, zone, family) = (words.intern(capacity_type), words.intern(zone), words.intern(family));
        Self { capacity_type, zone, family, list: price, cost: price, values: Vec::new() }
    }
}
