//! Column generation: the pattern program (a row a class, a column a filled bin), with bins found
//! by pricing, made whole by diving: what the program wants entire is bought, then what it wants
//! most, and what is left is programmed again.

use std::collections::BTreeSet;

use super::Pattern;
use super::bound::Guide;
use super::duals;
use super::fill::{Filler, Work};
use super::knapsack;
use super::part::{self, Part};
use super::pricing::{self, Offer};
use super::simplex::Simplex;

/// Programs of more rows than this are not tried.
pub(super) const MOST_CLASSES: usize = 150;
/// Bins added in one round of pricing.
const A_ROUND: usize = 24;
/// Kinds that are priced at all: those whose capacity is worth most for their rank.
const KINDS: usize = 48;
/// Kinds priced in one round.
const KINDS_A_ROUND: usize = 16;
/// Kinds tried around each class to begin with, and bins kept of them.
const SEED_KINDS: usize = 12;
const SEEDS: usize = 3;
/// Rounds of exact pricing, and nodes of its search for each kind.
const PROOFS: usize = 40;
const NODES: u64 = 3_000;
/// Offers that are worth exchanging items of.
const EXCHANGED: usize = 6;

/// The pattern program of a part and its bins so far.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    part: &'a Part,
    guide: &'a Guide,
    lp: Simplex,
    unit: f64,
    bins: Vec<(usize, Vec<(u32, u32)>)>,
    known: BTreeSet<Vec<(u32, u32)>>,
    filler: Filler<'a>,
    seen: u64,
    /// Kinds with the last gain each had, the next to be priced first.
    kinds: Vec<(f64, usize)>,
}

impl<'a> Columns<'a> {
    /// The program with these bins to begin with. `guide` is what the items are worth by size.
    pub fn new(part: &'a Part, guide: &'a Guide, start: &[Pattern]) -> Self {
        let rhs = sides(&part.count);
        let unit = part.rank.iter().max().map_or(1.0, |r| (*r as f64).max(1.0));
        let mut this = Self {
            part,
            guide,
            lp: Simplex::new(rhs),
            unit,
            bins: Vec::new(),
            known: BTreeSet::new(),
            filler: Filler::new(part, guide),
            seen: 0,
            kinds: promising(guide),
        };
        for pattern in start {
            this.add(pattern.kind as usize, pattern.items.clone());
        }
        this
    }

    /// Adds good bins around each class, so that the first values are not far off.
    pub fn seed(&mut self, work: &mut Work) {
        let kinds: Vec<usize> = self.kinds.iter().take(SEED_KINDS).map(|(_, k)| *k).collect();
        for c in 0..self.part.count.len() {
            let offers = pricing::around(&mut self.filler, self.part, &kinds, c, &self.part.count, &self.guide.values);
            for offer in offers.into_iter().take(SEEDS) {
                self.add(offer.kind, offer.items);
            }
            self.charge(work);
            if work.done() {
                break;
            }
        }
    }

    /// Adds a bin, in the cheapest kind that holds its content. `false` when it is known.
    fn add(&mut self, kind: usize, items: Vec<(u32, u32)>) -> bool {
        if self.known.contains(&items) {
            return false;
        }
        let kind = self.part.cheapest(&items).unwrap_or(kind);
        let column: Vec<(u32, f64)> = items.iter().map(|&(c, n)| (c, f64::from(n))).collect();
        self.lp.add(self.part.rank[kind] as f64 / self.unit, &column);
        self.known.insert(items.clone());
        self.bins.push((kind, items));
        true
    }

    /// What an item of each class is worth now, in micros.
    pub fn values(&self) -> Vec<f64> {
        self.lp.duals().iter().map(|y| y * self.unit).collect()
    }

    /// Charges what was done since the last time.
    fn charge(&mut self, work: &mut Work) {
        let now = self.filler.work + self.lp.work / 8;
        work.spend(now - self.seen);
        self.seen = now;
    }

    /// Prices and programs until nothing is gained, at most `rounds` times. `false` when the
    /// program fails.
    pub fn generate(&mut self, left: &[u32], rounds: usize, work: &mut Work) -> bool {
        self.lp.set_rhs(&sides(left));
        for round in 0..=rounds {
            if !self.lp.solve(20 * left.len() + 1000) {
                return false;
            }
            self.charge(work);
            if round == rounds || work.done() || !self.round(left) {
                break;
            }
        }
        true
    }

    /// One round of pricing. `false` when it found nothing new.
    fn round(&mut self, left: &[u32]) -> bool {
        let values = self.values();
        let mut from = 0;
        while from < self.kinds.len() {
            let to = self.kinds.len().min(from + KINDS_A_ROUND);
            let kinds: Vec<usize> = self.kinds[from..to].iter().map(|(_, k)| *k).collect();
            let offers = pricing::price(self.part, &mut self.filler, &kinds, left, &values, &self.guide.values);
            let gain = |k: usize| offers.iter().find(|o| o.kind == k).map_or(0.0, |o| o.gain);
            self.kinds[from..to].iter_mut().for_each(|slot| slot.0 = gain(slot.1));
            let mut better: Vec<Offer> = Vec::new();
            for offer in offers.iter().take(EXCHANGED) {
                better.push(pricing::exchange(self.part, &mut self.filler, offer, left, &values, &self.guide.values));
            }
            let mut added = 0;
            for offer in better.into_iter().chain(offers).filter(|o| o.gain > 1.0 + 1e-6) {
                if added < A_ROUND && self.add(offer.kind, offer.items) {
                    added += 1;
                }
            }
            if added > 0 {
                // What was just priced goes behind those whose turn it is, the best of it first.
                self.kinds[..to].sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                return true;
            }
            from = to;
        }
        self.kinds.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        false
    }

    /// A lower bound on the rank of the part and values that prove it, from exact pricing; bins
    /// that pricing had missed are added. `sizes` are the values of the aggregate bound.
    pub fn prove(&mut self, sizes: &[f64], work: &mut Work) -> (i64, Vec<f64>) {
        let mut proved = (0, Vec::new());
        for _ in 0..PROOFS {
            let values = self.values();
            let Some(order) = knapsack::order(&values, sizes) else { break };
            let mut scale = 1.0f64;
            let mut missed = 0;
            for k in 0..self.part.kinds.len() {
                let rank = self.part.rank[k] as f64;
                let mut nodes = NODES.min(work.0 / 4);
                let before = nodes;
                let most = knapsack::most(self.part, k, self.guide.promise[k] * rank, &values, sizes, &order, &mut nodes);
                work.spend(4 * (before - nodes) + order.len() as u64);
                scale = scale.min(rank / most.worth.max(rank));
                if let Some(items) = most.items {
                    missed += usize::from(self.add(k, items));
                }
            }
            let total: f64 = values.iter().zip(&self.part.count).map(|(v, n)| v * f64::from(*n)).sum();
            let rank = (total * scale * (1.0 - 1e-9)) as i64;
            if rank > proved.0 {
                proved = (rank, values.iter().map(|v| v * scale).collect());
            }
            if missed == 0 || work.done() || !self.lp.solve(20 * self.part.count.len() + 1000) {
                break;
            }
            self.charge(work);
        }
        proved
    }

    /// Packs `left` whole. Where the program wants no bin entire for the first time, the one it
    /// wants most but `skip` is bought. `None` when the program fails.
    pub fn dive(&mut self, left: &[u32], rounds: usize, skip: usize, work: &mut Work) -> Option<Vec<Pattern>> {
        let mut left = left.to_vec();
        let mut out: Vec<Pattern> = Vec::new();
        let mut best: Option<(i64, Vec<Pattern>)> = None;
        let mut spent = 0i64;
        let mut skip = skip;
        while left.iter().any(|n| *n > 0) {
            if !self.generate(&left, rounds, work) {
                break;
            }
            let last = work.done();
            let fixed = self.fix(&left, &mut skip);
            let few = self.lp.solution().len() <= 12;
            if few || last || fixed.is_empty() {
                let mut some = Work(work.0.min(400_000));
                let before = some.0;
                let values = self.blended();
                let rest = duals::pack(&mut self.filler, &left, &values, duals::BY_SIZE, &mut some);
                work.spend(before - some.0);
                self.seen = self.filler.work + self.lp.work / 8;
                let total = spent + rank(self.part, &rest);
                if best.as_ref().is_none_or(|(b, _)| total < *b) {
                    best = Some((total, out.iter().cloned().chain(rest).collect()));
                }
            }
            if last || fixed.is_empty() {
                break;
            }
            for pattern in fixed {
                for &(c, n) in &pattern.items {
                    left[c as usize] -= n * pattern.times;
                }
                spent += self.part.rank[pattern.kind as usize] * i64::from(pattern.times);
                out.push(pattern);
            }
        }
        if left.iter().all(|n| *n == 0) && best.as_ref().is_none_or(|(b, _)| spent < *b) {
            best = Some((spent, out));
        }
        best.map(|(_, patterns)| patterns)
    }

    /// The program's values, mixed with the guide so that no item is worth nothing.
    fn blended(&self) -> Vec<f64> {
        self.values().iter().zip(&self.guide.values).map(|(v, g)| 0.7 * v + 0.3 * g).collect()
    }

    /// What to buy next: all that the program wants entire, else the bin it wants most.
    fn fix(&mut self, left: &[u32], skip: &mut usize) -> Vec<Pattern> {
        let mut solution = self.lp.solution();
        let mut rest = left.to_vec();
        let mut out = Vec::new();
        for &(j, x) in &solution {
            let times = (x + 1e-4) as u32;
            if times > 0 {
                out.extend(self.buy(j, times, &mut rest));
            }
        }
        if out.is_empty() {
            solution.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let at = std::mem::take(skip).min(solution.len().saturating_sub(1));
            out.extend(solution.get(at).and_then(|&(j, _)| self.buy(j, 1, &mut rest)));
        }
        out
    }

    /// Buys bin `j` up to `times` times from `rest`; room that becomes free is filled.
    fn buy(&mut self, j: usize, times: u32, rest: &mut [u32]) -> Option<Pattern> {
        let (kind, items) = &self.bins[j];
        let whole = items.iter().map(|&(c, n)| rest[c as usize] / n).min().unwrap_or(0).min(times);
        let pattern = if whole > 0 {
            Pattern { kind: part::index(*kind), items: items.clone(), times: whole }
        } else {
            self.filler.start(*kind);
            for &(c, n) in items {
                let n = n.min(rest[c as usize]);
                if n > 0 {
                    self.filler.put(c as usize, n);
                }
            }
            if self.filler.items.is_empty() {
                return None;
            }
            let mut order: Vec<u32> = (0..part::index(rest.len())).filter(|&c| rest[c as usize] > 0).collect();
            order.sort_by(|&a, &b| self.guide.values[b as usize].total_cmp(&self.guide.values[a as usize]).then(a.cmp(&b)));
            self.filler.in_order(&order, rest);
            let mut items = self.filler.items.clone();
            items.sort_unstable();
            let kind = self.part.cheapest(&items).unwrap_or(*kind);
            Pattern { kind: part::index(kind), items, times: 1 }
        };
        for &(c, n) in &pattern.items {
            rest[c as usize] -= n * pattern.times;
        }
        Some(pattern)
    }
}

/// The right-hand side for so many items. Each side is off by a little of its own, so that no
/// basis is degenerate and the simplex does not stall.
fn sides(left: &[u32]) -> Vec<f64> {
    let nudge = |c: usize| 1e-5 * (1.0 + (c * 61 % 97) as f64 / 97.0);
    left.iter().enumerate().map(|(c, n)| if *n > 0 { f64::from(*n) + nudge(c) } else { -nudge(c) }).collect()
}

/// The kinds worth pricing, those whose capacity is worth most for their rank first.
fn promising(guide: &Guide) -> Vec<(f64, usize)> {
    let mut kinds: Vec<(f64, usize)> = guide.promise.iter().copied().zip(0..).collect();
    kinds.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    kinds.truncate(KINDS);
    kinds
}

/// The sum of ranks of patterns of a part.
pub(super) fn rank(part: &Part, patterns: &[Pattern]) -> i64 {
    patterns.iter().fold(0i64, |sum, p| sum.saturating_add(part.rank[p.kind as usize].saturating_mul(i64::from(p.times))))
}
