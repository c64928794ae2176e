//! Policy `spot-share`: a share of on-demand capacity, in the words of an Auto Scaling group.
//!
//! What must not enter: vetoes; where one kind is sold out the other is still bought.

mod config;
mod share;

pub use config::{Config, Unit};

use config::By;
use share::{Kinds, Target};
use whittle_sdk::prelude::*;

/// The highest rank that makes sense: a million dollars an hour.
const MOST: i64 = 1_000_000_000_000;

/// The most units of anything, ten million vCPUs: products of it stay within 64 bits.
const LARGEST: i64 = 10_000_000_000;

/// Parts of a whole are counted in millionths.
const MILLION: i64 = 1_000_000;

/// A node whose kind is wrong ranks dearer by this many times what its pods cost on demand: no spot price
/// makes up for that.
const WRONG: i64 = 1000;

/// While a packer is guided, the kind that fewer of the pods shall have ranks this many times as dear. Spot
/// is never below a tenth of on-demand, so on-demand leads when it is wanted, and the order within a kind stays.
const MINOR: i64 = 16;

/// While a packer is guided, a node that holds all pods ranks this many times dearer than small ones: few
/// large nodes cannot be mixed.
const TOO_LARGE: i64 = 3;

/// The policy.
#[derive(Debug)]
pub struct SpotShare {
    target: Target,
    unit: Unit,
    by: By,
    pending_pods: i64,
}

/// What is counted of one group in one mix.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    spot: i64,
    on_demand: i64,
}

impl Policy for SpotShare {
    type Config = Config;
    const ABOUT: About = About { name: "spot-share", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        let by = By::read(&config.by)?;
        setup
            .round([RoundColumn::PendingPods])
            .candidates([CandidateColumn::Mix, CandidateColumn::Exists, CandidateColumn::CapacityType])
            .candidates([CandidateColumn::OnDemandMicros, CandidateColumn::HoldsPods])
            .mix([MixRowColumn::Key, MixRowColumn::Value, MixRowColumn::CapacityType, config.unit.column()])
            .mix_key(by.key());
        match &by {
            By::NodePool => setup.candidates([CandidateColumn::NodePool]),
            By::Label(key) => setup.candidates([CandidateColumn::Asker]).askers([AskerColumn::Label(key.clone())]),
        };
        if config.unit == Unit::Cpu {
            setup.candidates([CandidateColumn::Asker]).askers([AskerColumn::CpuMilli]);
        }
        Ok(Self { target: config.target(), unit: config.unit, by, pending_pods: 0 })
    }

    fn open(&mut self, round: Round<'_>) {
        self.pending_pods = round.pending_pods().clamp(0, LARGEST);
    }

    fn price_all(&mut self, tables: &Tables, prices: &mut Prices) {
        let counted = self.count(tables);
        let view = View::of(self, tables);
        let settled = view.is_settled();
        let scale = (0..view.rows()).filter(|row| !view.exists(*row)).map(|row| view.scale(row)).min().unwrap_or(1);
        for (row, rank) in prices.ranks().iter_mut().enumerate() {
            let place = (view.mix[row], view.group[row]);
            let found = counted.binary_search_by(|(other, _)| other.cmp(&place));
            let around = found.map_or_else(|_| Counted::default(), |at| counted[at].1);
            let before = (*rank).clamp(0, MOST);
            let new = if view.exists(row) {
                before + self.penalty(around, view.units(row), view.spot(row), view.scale(row))
            } else if settled {
                before + self.penalty(around, view.units(row), view.spot(row), scale)
            } else {
                self.guide(around, view.one_pod(row), view.units(row), view.spot(row), before)
            };
            *rank = new.clamp(1, MOST);
        }
    }
}

impl SpotShare {
    /// What the mixes hold of each kind, by number of the mix and value of the key, sorted.
    fn count(&self, tables: &Tables) -> Vec<((i64, i64), Counted)> {
        let key = tables.word(&self.by.key());
        let spot = tables.word("spot");
        let column = |column: MixRowColumn| tables.column(&column);
        let (mixes, keys, values) = (column(MixRowColumn::Mix), column(MixRowColumn::Key), column(MixRowColumn::Value));
        let (ways, amounts) = (column(MixRowColumn::CapacityType), column(self.unit.column()));
        let rows = (0..mixes.len()).filter(|row| Some(keys[*row]) == key);
        let mut all: Vec<((i64, i64), Counted)> = Vec::new();
        for row in rows {
            let place = (mixes[row], values[row]);
            let at = all.binary_search_by(|(other, _)| other.cmp(&place)).unwrap_or_else(|at| {
                all.insert(at, (place, Counted::default()));
                at
            });
            let counted = &mut all[at].1;
            let kind = if Some(ways[row]) == spot { &mut counted.spot } else { &mut counted.on_demand };
            *kind = (*kind + amounts[row].clamp(0, LARGEST)).min(LARGEST);
        }
        all
    }

    /// What the kind of a node that is settled but for its kind ranks dearer: nothing while the share is
    /// within its tolerance with it. First what the other kind would do better, in parts of the node, so
    /// that however large the cluster is the better kind wins; then what neither can help, in parts of
    /// the whole, so that of two plans the one nearer to the share wins.
    fn penalty(&self, around: Counted, units: i64, is_spot: bool, scale: i64) -> i64 {
        let kinds = self.kinds(around, units);
        let (own, least) = (kinds.of(is_spot), kinds.least());
        let total = (around.spot + around.on_demand + units).max(1);
        // Excess is in hundredths of a unit.
        let parts = (own - least) * MILLION / (100 * units.max(1)) + least * MILLION / (100 * total);
        scale * parts / (MILLION / WRONG)
    }

    /// What a row ranks while the packer is guided: the kind that most of the pending pods shall have is
    /// left as it is.
    fn guide(&self, around: Counted, one_pod: i64, units: i64, is_spot: bool, before: i64) -> i64 {
        let pending = self.pending_pods.max(1).saturating_mul(one_pod).min(LARGEST);
        let kinds = self.kinds(around, pending);
        let rank = if kinds.of(is_spot) > kinds.least() { before * MINOR } else { before };
        if !self.target.is_mixed() || self.unit == Unit::Nodes {
            return rank;
        }
        let total = around.spot + around.on_demand + pending;
        let large = (units.min(total) - self.target.largest(total)).max(0);
        rank + rank * (TOO_LARGE - 1) * (large * 1000 / total) / 1000
    }

    fn kinds(&self, around: Counted, units: i64) -> Kinds {
        self.target.kinds(around.spot, around.on_demand, units)
    }
}

/// The columns of the candidates, as whole columns.
struct View<'t> {
    mix: &'t [i64],
    exists: &'t [i64],
    way: &'t [i64],
    spot: Option<i64>,
    on_demand: &'t [i64],
    rank: &'t [i64],
    holds: &'t [i64],
    group: Vec<i64>,
    /// What one pod counts, by row.
    one_pod: Vec<i64>,
    unit: Unit,
}

impl<'t> View<'t> {
    fn of(policy: &SpotShare, tables: &'t Tables) -> Self {
        let column = |column: CandidateColumn| tables.column(&column);
        let of_asker = |values: &AskerColumn| {
            let values = tables.column(values);
            let value = |asker: &i64| usize::try_from(*asker).ok().and_then(|asker| values.get(asker)).copied().unwrap_or(0);
            column(CandidateColumn::Asker).iter().map(value).collect::<Vec<i64>>()
        };
        let holds = column(CandidateColumn::HoldsPods);
        Self {
            mix: column(CandidateColumn::Mix),
            exists: column(CandidateColumn::Exists),
            way: column(CandidateColumn::CapacityType),
            spot: tables.word("spot"),
            on_demand: column(CandidateColumn::OnDemandMicros),
            rank: column(CandidateColumn::RankMicros),
            holds,
            group: match &policy.by {
                By::NodePool => column(CandidateColumn::NodePool).to_vec(),
                By::Label(key) => of_asker(&AskerColumn::Label(key.clone())),
            },
            one_pod: match policy.unit {
                Unit::Pods | Unit::Nodes => vec![1; holds.len()],
                Unit::Cpu => of_asker(&AskerColumn::CpuMilli).into_iter().map(|cpu| cpu.clamp(1, MILLION)).collect(),
            },
            unit: policy.unit,
        }
    }

    fn rows(&self) -> usize {
        self.rank.len()
    }

    fn exists(&self, row: usize) -> bool {
        self.exists[row] != 0
    }

    fn spot(&self, row: usize) -> bool {
        Some(self.way[row]) == self.spot
    }

    fn one_pod(&self, row: usize) -> i64 {
        self.one_pod[row]
    }

    /// What the node counts.
    fn units(&self, row: usize) -> i64 {
        match self.unit {
            Unit::Pods | Unit::Cpu => self.holds[row].clamp(1, LARGEST).saturating_mul(self.one_pod[row]).min(LARGEST),
            Unit::Nodes => 1,
        }
    }

    /// What the node's pods cost on demand.
    fn scale(&self, row: usize) -> i64 {
        let price = if self.on_demand[row] > 0 { self.on_demand[row] } else { self.rank[row] };
        price.clamp(1, MOST)
    }

    /// Whether these are the offerings of one node whose pods are settled: then all hold the same. When
    /// the packer is guided each holds what would fit on it.
    fn is_settled(&self) -> bool {
        let mut new = (0..self.rows()).filter(|row| !self.exists(*row)).map(|row| self.holds[row]);
        new.next().is_none_or(|first| new.all(|other| other == first))
    }
}

whittle_sdk::export!(SpotShare);
