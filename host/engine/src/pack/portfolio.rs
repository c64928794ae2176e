//! The portfolio: every member packs each part of the problem, the cheapest packing is taken.

use std::collections::BTreeMap;

use whittle_model::Micros;

use super::bound::{self, Bound, Duals, Guide};
use super::columns::{self, Columns};
use super::fill::{Filler, Work};
use super::part::{self, Part};
use super::{Packing, Pattern, Problem, duals, exact, repair};

/// Elementary operations of a step; a step is about a tenth of a microsecond.
const STEP: u64 = 16;
/// Operations that any part may take, and those for the place of one item more.
const A_PART: u64 = 3_000_000;
const AN_ITEM: u64 = 100_000;
/// Nobody looks for less than this share of the bound.
const ENOUGH: f64 = 1.0005;
/// Rounds of pricing before the first dive, and within dives.
const PROVABLE: u64 = 300;
const FEW_CLASSES: usize = 40;
const LESSONS: usize = 12;
const ROUNDS: usize = 40;
const DIVE_ROUNDS: usize = 3;

/// The answer of the portfolio.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The packing with the fewest unplaced items, then the lowest rank.
    pub packing: Packing,
    /// Who made it: `greedy` (the yardstick), `duals`, or `columns` (patterns: generated, or all of
    /// them when the items are few).
    pub method: &'static str,
    /// What no packing can cost less than.
    pub bound: Bound,
}

/// Packs for the lowest rank. `greedy` is the yardstick: a valid packing of the same problem that
/// the answer is never worse than. `steps` is the only budget, about a tenth of a microsecond
/// each; with none the greedy is the answer.
#[must_use]
pub fn solve(problem: &Problem, greedy: &Packing, steps: u64) -> Solution {
    let (parts, unplaced) = part::split(problem);
    let (mut bound, guides) = bound::of_parts(&parts);
    if steps == 0 {
        return Solution { packing: greedy.clone(), method: "greedy", bound };
    }
    let yardsticks = yardsticks(&parts, problem, greedy);
    let size = |part: &Part| (part.classes.len() * part.kinds.len()) as f64;
    let total: f64 = parts.iter().map(size).sum();
    let mut packing = Packing { patterns: Vec::new(), unplaced };
    let mut method = "duals";
    for (((part, guide), duals), start) in parts.iter().zip(&guides).zip(&mut bound.duals).zip(yardsticks) {
        let share = (steps.saturating_mul(STEP) as f64 * size(part) / total) as u64;
        let items: u64 = part.count.iter().map(|n| u64::from(*n)).sum();
        let work = Work(share.min(A_PART.saturating_add(items.saturating_mul(AN_ITEM))));
        let mut run = Run { part, guide, duals, best: None, by_columns: false };
        run.members(&start, work);
        if run.by_columns {
            method = "columns";
        }
        let (_, patterns) = run.best.unwrap_or_default();
        packing.patterns.extend(patterns.into_iter().map(|p| global(part, p)));
    }
    let measure = |p: &Packing| (std::cmp::Reverse(placed(p)), p.rank(problem));
    bound.rank = bound.duals.iter().map(|d| d.rank).sum();
    if measure(greedy) <= measure(&packing) {
        return Solution { packing: greedy.clone(), method: "greedy", bound };
    }
    Solution { packing, method, bound }
}

/// Items that have a bin.
fn placed(packing: &Packing) -> u64 {
    packing.patterns.iter().map(|p| u64::from(p.times) * p.items.iter().map(|(_, n)| u64::from(*n)).sum::<u64>()).sum()
}

/// The members at work on one part.
struct Run<'a> {
    part: &'a Part,
    guide: &'a Guide,
    duals: &'a mut Duals,
    best: Option<(i64, Vec<Pattern>)>,
    by_columns: bool,
}

impl Run<'_> {
    /// Takes a packing when it is the cheapest so far.
    fn offer(&mut self, patterns: Vec<Pattern>, by_columns: bool) {
        let rank = columns::rank(self.part, &patterns);
        if self.best.as_ref().is_none_or(|(best, _)| rank < *best) {
            self.best = Some((rank, patterns));
            self.by_columns = by_columns;
        }
    }

    fn good_enough(&self) -> bool {
        self.best.as_ref().is_some_and(|(rank, _)| *rank as f64 <= self.duals.rank.0 as f64 * ENOUGH)
    }

    /// All packings of few items; else the greedy with learned values, then column generation, then repair.
    fn members(&mut self, start: &[Pattern], mut work: Work) {
        let mut seeds = start.to_vec();
        if !start.is_empty() {
            self.offer(start.to_vec(), false);
        }
        if let Some(patterns) = exact::pack(self.part) {
            self.duals.rank = Micros(columns::rank(self.part, &patterns));
            self.offer(patterns, true);
            return;
        }
        self.greedy(&mut seeds, &mut work);
        if self.worth_columns() && !self.good_enough() && !work.done() {
            self.columns(&seeds, &mut work);
        }
        if let Some((_, patterns)) = self.best.clone().filter(|_| !self.good_enough() && !work.done()) {
            let repaired = repair::repair(self.part, self.guide, patterns, &mut work);
            let by_columns = self.by_columns;
            self.offer(repaired, by_columns);
        }
    }

    /// Whether column generation has a chance: few classes, or so many bins that the program
    /// wants most of them entire.
    fn worth_columns(&self) -> bool {
        let bins: u64 = self.best.iter().flat_map(|(_, patterns)| patterns).map(|p| u64::from(p.times)).sum();
        let classes = self.part.classes.len();
        classes <= FEW_CLASSES || (classes <= columns::MOST_CLASSES && bins >= classes as u64)
    }

    fn items(&self) -> u64 {
        self.part.count.iter().map(|n| u64::from(*n)).sum()
    }

    /// The greedy, again and again, with values that learn which classes end in poor bins.
    fn greedy(&mut self, seeds: &mut Vec<Pattern>, work: &mut Work) {
        let reserve = work.0 / 5 * 3;
        let mut values = self.guide.values.clone();
        let mut filler = Filler::new(self.part, self.guide);
        for round in 0..LESSONS {
            let rules = if round == 1 { duals::BY_SIZE } else { duals::BY_WORTH };
            let mut share = Work((work.0 - reserve) / 2);
            let before = share.0;
            let patterns = duals::pack(&mut filler, &self.part.count, &values, rules, &mut share);
            work.spend(before - share.0);
            if round != 1 {
                duals::learn(self.part, &self.guide.values, &mut values, &patterns, 1.0 / (1.5 + round as f64 / 2.0));
            }
            if self.part.classes.len() <= columns::MOST_CLASSES {
                seeds.extend(patterns.iter().cloned());
            }
            self.offer(patterns, false);
            if self.good_enough() || work.0 <= reserve + reserve / 20 {
                break;
            }
        }
    }

    /// Dives from different first choices while there is work left.
    fn columns(&mut self, seeds: &[Pattern], work: &mut Work) {
        let mut program = Columns::new(self.part, self.guide, seeds);
        let mut share = Work(work.0 / 2);
        let before = share.0;
        program.seed(&mut share);
        let whole = program.generate(&self.part.count, ROUNDS, &mut share);
        work.spend(before - share.0);
        if !whole {
            return;
        }
        if self.items() <= PROVABLE {
            let (rank, values) = program.prove(&self.duals.values, work);
            if Micros(rank) > self.duals.rank {
                self.duals.rank = Micros(rank);
                self.duals.values = values;
            }
        }
        let reserve = work.0 / 4;
        for skip in 0..64 {
            if work.0 <= reserve || self.good_enough() {
                break;
            }
            let mut share = Work(work.0 - reserve);
            let before = share.0;
            let Some(patterns) = program.dive(&self.part.count, DIVE_ROUNDS, skip, &mut share) else { break };
            work.spend(before - share.0);
            self.offer(patterns, true);
        }
    }
}

/// The given packing by part, each bin in the cheapest kind that holds its content; empty where
/// it does not place all items.
fn yardsticks(parts: &[Part], problem: &Problem, greedy: &Packing) -> Vec<Vec<Pattern>> {
    let mut place: Vec<Option<(usize, u32)>> = vec![None; problem.classes.len()];
    for (at, part) in parts.iter().enumerate() {
        for (local, &c) in part.classes.iter().enumerate() {
            place[c as usize] = Some((at, part::index(local)));
        }
    }
    let spot = |c: u32| place.get(c as usize).copied().flatten();
    let mut merged: Vec<BTreeMap<Vec<(u32, u32)>, u32>> = vec![BTreeMap::new(); parts.len()];
    for pattern in &greedy.patterns {
        let Some((at, _)) = pattern.items.first().and_then(|&(c, _)| spot(c)) else { continue };
        let mut items: Vec<(u32, u32)> = pattern.items.iter().filter_map(|&(c, n)| spot(c).map(|(_, local)| (local, n))).collect();
        items.sort_unstable();
        *merged[at].entry(items).or_default() += pattern.times;
    }
    let mut out = Vec::with_capacity(parts.len());
    for (part, bins) in parts.iter().zip(merged) {
        let mut count = vec![0u32; part.classes.len()];
        let mut patterns = Vec::with_capacity(bins.len());
        for (items, times) in bins {
            items.iter().for_each(|&(c, n)| count[c as usize] += n * times);
            let Some(kind) = part.cheapest(&items) else { break };
            patterns.push(Pattern { kind: part::index(kind), items, times });
        }
        out.push(if count == part.count { patterns } else { Vec::new() });
    }
    out
}

/// A pattern of a part with the problem's indices.
fn global(part: &Part, pattern: Pattern) -> Pattern {
    let mut items: Vec<(u32, u32)> = pattern.items.iter().map(|&(c, n)| (part.classes[c as usize], n)).collect();
    items.sort_unstable();
    Pattern { kind: part.kinds[pattern.kind as usize], items, times: pattern.times }
}
