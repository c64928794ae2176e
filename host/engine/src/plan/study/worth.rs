//! What pods and nodes are worth by the duals of the bound: which moves cannot pay, without trying them, and which nodes
//! the cheapest cluster for all the pods would keep.

use std::collections::BTreeMap;

use whittle_model::Micros;

use super::{Left, Study};
use crate::pack::{self, Packing};
use crate::plan::amounts::{Amounts, add, fits};
use crate::plan::{Scene, cost};

/// What is known without asking what anything can be bought for.
#[derive(Debug, Default)]
pub(super) struct Worth {
    /// What nodes can be bought with, the cheapest first: their price and room, but for those that another beats in both.
    /// `None` where prices are more than the list says.
    sizes: Option<Vec<(Micros, Amounts)>>,
    /// Whether the bound holds for whatever the greedy may buy.
    binding: bool,
    /// By class: what a pod of it costs at the least.
    value: Vec<f64>,
}

impl Worth {
    pub(super) fn of(scene: &Scene<'_>) -> Self {
        let tables = &scene.tables.pools;
        let one_tier = tables.iter().all(|table| !table.reserved && table.tier == tables[0].tier);
        let sizes = scene.at_list().then(|| sizes(scene));
        Self { binding: one_tier && sizes.is_some(), sizes, value: vec![0.0; scene.classes.len()] }
    }
}

fn sizes(scene: &Scene<'_>) -> Vec<(Micros, Amounts)> {
    let rows = scene.tables.pools.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let mut all: Vec<(Micros, &Amounts)> = rows
        .filter_map(|(table, row)| Some((table.offers[row.offers.clone()].iter().map(|o| o.offering.price).min()?, &row.room)))
        .collect();
    all.sort();
    let mut best: Vec<(Micros, Amounts)> = Vec::new();
    for (price, room) in all {
        if !best.iter().any(|(_, other)| room.iter().zip(other).all(|(mine, theirs)| mine <= theirs)) {
            best.push((price, room.clone()));
        }
    }
    best
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

impl Study<'_> {
    /// Whether one node that costs less than `below` may have room for these pods.
    pub(crate) fn one_may_do(&self, left: &Left, below: Micros) -> bool {
        let Some(sizes) = &self.worth.sizes else { return true };
        let mut sum = Amounts::from_elem(0, self.scene.tables.dimensions.names().len());
        for (class, count) in left {
            add(&mut sum, &self.scene.classes[*class].need, i64::try_from(*count).unwrap_or(i64::MAX));
        }
        sizes.iter().take_while(|(price, _)| *price < below).any(|(_, room)| fits(&sum, room))
    }

    /// Whether nodes for these pods may cost less than `below`.
    pub(crate) fn may_cost_less(&self, left: &Left, below: f64) -> bool {
        !self.worth.binding || self.value(left) < below
    }

    /// What pods cost at the least, by the duals of the bound.
    pub(crate) fn value(&self, pods: &Left) -> f64 {
        pods.iter().map(|(class, count)| self.worth.value[*class] * float(*count)).sum()
    }

    /// Finds out what the pods of these nodes would cost at the prices at which the cheapest nodes just pay: by the duals
    /// of the bound of all of them together.
    pub(crate) fn appraise(&mut self, nodes: &[&str]) {
        let translated = self.translated(nodes);
        let bound = pack::bound(&translated.problem);
        self.worth.value.fill(0.0);
        for duals in &bound.duals {
            for (class, worth) in duals.classes.iter().zip(&duals.values) {
                self.worth.value[translated.class(*class)] = *worth;
            }
        }
    }

    fn translated(&mut self, nodes: &[&str]) -> cost::Translated {
        let mut counts = vec![0; self.scene.classes.len()];
        for (class, count) in self.counts(nodes) {
            counts[class] = count;
        }
        let mut bench = self.scene.bench(&mut self.pricer);
        cost::translate(&mut bench, &counts, &self.remaining)
    }

    /// What the pods of each node are worth. A node that costs more is badly shaped or badly filled.
    pub(crate) fn values(&self, nodes: &[&str]) -> Vec<f64> {
        nodes.iter().map(|node| self.value(&self.counts(&[node]))).collect()
    }

    /// The cheapest cluster for the pods of these nodes that can be found from nothing in so many steps: which of them it
    /// would have. `nodes` are named with pool and type; what exists counts as so many thousandths cheaper than what is
    /// bought.
    pub(crate) fn kept(&mut self, nodes: &[(&str, &str, &str)], permille: u32, steps: u64) -> Vec<bool> {
        let names: Vec<&str> = nodes.iter().map(|(node, ..)| *node).collect();
        let mut translated = self.translated(&names);
        let mut existing: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (number, (_, pool, of)) in nodes.iter().enumerate() {
            existing.entry((pool, of)).or_default().push(number);
        }
        let tables = &self.scene.tables;
        let kinds: Vec<(&str, &str)> = translated.kinds(tables).collect();
        for (kind, named) in translated.problem.kinds.iter_mut().zip(&kinds) {
            if existing.contains_key(named) {
                kind.rank = Micros(i64::try_from(i128::from(kind.rank.0) * i128::from(1000 - permille.min(1000)) / 1000).unwrap_or(0));
            }
        }
        let classes = translated.problem.classes.iter().zip(0..);
        let nothing = Packing { patterns: Vec::new(), unplaced: classes.map(|(class, number)| (number, class.count)).collect() };
        let solution = pack::solve(&translated.problem, &nothing, steps);
        let mut wanted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for pattern in &solution.packing.patterns {
            *wanted.entry(kinds[pattern.kind as usize]).or_default() += pattern.times as usize;
        }
        let values = self.values(&names);
        let mut kept = vec![false; nodes.len()];
        for (named, mut of_kind) in existing {
            of_kind.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then_with(|| names[*a].cmp(names[*b])));
            of_kind.iter().take(wanted.get(&named).copied().unwrap_or(0)).for_each(|number| kept[*number] = true);
        }
        kept
    }

    /// How many offerings there are.
    pub(crate) fn offers(&self) -> usize {
        self.scene.tables.pools.iter().map(|table| table.offers.len()).sum()
    }

    /// The least that any offering for sale costs: what costs no more is replaced by nothing cheaper.
    pub(crate) fn floor(&self) -> Micros {
        let offers = self.scene.tables.pools.iter().flat_map(|table| table.offers.iter());
        offers.map(|offer| offer.offering.price).min().unwrap_or(Micros(i64::MAX))
    }
}
