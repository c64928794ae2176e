//! The search for a move as Karpenter makes it, so that the two can be compared: the longest run of candidates that at
//! most one node can stand in for, else the first single one; and no more than that in one look.
//!
//! What must not enter: any cleverness of our own.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::Scorer;

use super::candidates::Candidate;
use super::exact::{self, Exact};
use super::look::{Look, allowed};
use super::moves::Move;
use super::reason::Reason;
use super::search::{MOST_TO_ONE, interleaved};
use super::{Disrupt, balanced};

impl Look<'_> {
    /// The one move that saves money which Karpenter would find.
    pub(super) fn one(&mut self, memory: &Disrupt, scorer: &mut dyn Scorer) -> Option<Move> {
        let totals = balanced::Totals::new(self.world);
        let mut line: Vec<&Candidate> = self.candidates.iter().filter(|c| self.eligible(c, Reason::Underutilized)).collect();
        line.retain(|c| !self.resting(memory, c) && self.budgets.left(&c.pool, Reason::Underutilized) > 0);
        if line.is_empty() {
            return None;
        }
        line.sort_by(|a, b| a.by_ratio(b));
        let by_claim = self.by_claim();
        let closed = exact::shut(self.world, &BTreeSet::new(), self.now);
        let mut exact = Exact::new(self.world, &by_claim, &closed, scorer, self.now);
        let mut works = |set: &[&Candidate]| exact.alone(set).ok().filter(|what| totals.objection(what, &by_claim).is_none());
        let found = longest(&self.within(&line), &mut works).or_else(|| {
            let singles = interleaved(&line).into_iter().filter(|c| totals.could_pass(c));
            singles.map(|c| works(&[c])).find(Option::is_some).flatten()
        });
        let found = allowed((self.world, &memory.churn), found.into_iter().collect(), scorer, self.now, &mut self.said);
        let (_, what) = found.into_iter().next()?;
        self.budgets.take(&what.pools, Reason::Underutilized).then_some(what)
    }

    /// As many of a line, in its order, as budgets let go together.
    fn within<'c>(&self, line: &[&'c Candidate]) -> Vec<&'c Candidate> {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut within = Vec::new();
        for candidate in line {
            let taken = taken.entry(&candidate.pool).or_default();
            if *taken < self.budgets.left(&candidate.pool, Reason::Underutilized) && within.len() < MOST_TO_ONE {
                *taken += 1;
                within.push(*candidate);
            }
        }
        within
    }
}

/// The move of the longest run, from the first of `line` on and of two at least, that `works`, as bisection finds it.
fn longest(line: &[&Candidate], works: &mut dyn FnMut(&[&Candidate]) -> Option<Move>) -> Option<Move> {
    let (mut low, mut high) = (2, line.len());
    let mut best = None;
    while low <= high {
        let middle = low.midpoint(high);
        if let Some(what) = works(&line[..middle]) {
            best = Some(what);
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    best
}
