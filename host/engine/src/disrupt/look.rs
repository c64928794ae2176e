//! One look at the world: which nodes may go now, which moves there are, which of them policies and budgets allow, and why
//! the other nodes stay.
//!
//! What must not enter: what is remembered between looks, moves under way.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::scorer::{MoveVerdict, ScorerFailure};
use whittle_model::{Scorer, Timestamp};

use super::budgets::{self, Budgets};
use super::candidates::{self, Candidate};
use super::churn::Churn;
use super::exact::{self, Exact};
use super::fences::Fences;
use super::moves::Move;
use super::reason::Reason;
use super::search::Ways;
use super::{DECLINED_FOR, Disrupt, balanced, drift, payback, search};
use crate::expiry;
use crate::judging;
use crate::report::Step;
use crate::world::World;

/// One look at the world.
pub(super) struct Look<'w> {
    pub(super) world: &'w World,
    pub(super) now: Timestamp,
    pub(super) candidates: Vec<Candidate>,
    pub(super) budgets: Budgets,
    /// When the first protection of a pod is over.
    protected_until: Option<Timestamp>,
    /// When policies that ask for it may first have another node exchanged before its time is over.
    pub(super) nears_its_end: Option<Timestamp>,
    /// When the first move pays that was found and does not yet.
    pays_from: Option<Timestamp>,
    pub(super) said: Said,
}

/// What a look has to say.
#[derive(Default)]
pub(super) struct Said {
    pub(super) steps: Vec<Step>,
    pub(super) failures: Vec<ScorerFailure>,
    /// Claims whose moves policies are against: they are asked again, but not at once.
    pub(super) vetoed: BTreeMap<String, String>,
    /// Why other claims stay where they are.
    hints: BTreeMap<String, String>,
    /// Claims for which policies did not want advice followed, with their veto if there was one.
    pub(super) let_be: BTreeMap<(Reason, String), Option<String>>,
}

impl<'w> Look<'w> {
    pub(super) fn new(world: &'w World, memory: &Disrupt, now: Timestamp) -> Self {
        let mut fences = Fences::new(world, now);
        let mut candidates = candidates::all(world, &mut fences, now);
        if !world.settings.disruption.one_by_one {
            for candidate in &mut candidates {
                candidate.came_from = memory.churn.came_from(&candidate.claim, now);
                let claim = world.claims.get(&candidate.claim);
                candidate.lasts = claim.map_or(candidate.lasts, |claim| payback::lasts(world, &memory.churn, claim, now));
            }
        }
        let mut budgets = Budgets::new(world, now);
        if let Some(left) = memory.soak.left(world, now) {
            budgets.slowly(left, &memory.soak.why(world));
        }
        Self { world, now, candidates, budgets, protected_until: fences.next, nears_its_end: None, pays_from: None, said: Said::default() }
    }

    pub(super) fn by_claim(&self) -> BTreeMap<&str, &Candidate> {
        self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect()
    }

    /// Whether a node may go for a reason, budgets aside.
    pub(super) fn eligible(&self, candidate: &Candidate, reason: Reason) -> bool {
        let Some(pool) = self.world.pools.get(&candidate.pool) else { return false };
        let free = candidate.blocked.is_none();
        match reason {
            Reason::Empty => free && candidate.empty && candidate.consolidatable,
            Reason::Underutilized => {
                let priced = candidate.price.0 > 0 && candidate.offering.is_some();
                free && !candidate.empty && candidate.consolidatable && priced && pool.disruption.policy != "WhenEmpty"
            }
            Reason::Drifted => {
                let drifted = self.world.claims.get(&candidate.claim).is_some_and(|claim| claim.status.drifted.is_some());
                drifted && (free || candidate.eventual)
            }
            Reason::Expired => {
                let claim = self.world.claims.get(&candidate.claim);
                free && claim.and_then(|claim| expiry::nears_its_end(self.world, claim)).is_some_and(|at| at <= self.now)
            }
            Reason::Rebalance => free && self.world.advised.contains_key(&candidate.claim),
        }
    }

    /// Whether a node is left alone for a while, because its move was declined or moves of its pool failed.
    pub(super) fn resting(&self, memory: &Disrupt, candidate: &Candidate) -> bool {
        let of_pool = !self.world.settings.disruption.one_by_one && memory.rests.rests(&candidate.pool, self.now);
        of_pool || memory.declined.contains_key(&candidate.claim)
    }

    /// The nodes that are empty, each with when it was first seen so. A pod that came and went begins it anew.
    pub(super) fn still_empty(&self, seen: &BTreeMap<String, Timestamp>) -> BTreeMap<String, Timestamp> {
        let empty = self.candidates.iter().filter(|c| self.eligible(c, Reason::Empty));
        let since = |claim: &str| {
            let last = self.world.claims.get(claim).and_then(|known| known.status.last_pod_event);
            seen.get(claim).copied().filter(|at| last.is_none_or(|last| last <= *at)).unwrap_or(self.now)
        };
        empty.map(|c| (c.claim.clone(), since(&c.claim))).collect()
    }

    /// Nodes that are empty, within budgets, those first that save most.
    pub(super) fn empty(&mut self, memory: &Disrupt, scorer: &mut dyn Scorer) -> Vec<Move> {
        let mut line: Vec<&Candidate> = self.candidates.iter().filter(|c| self.eligible(c, Reason::Empty)).collect();
        line.retain(|c| !memory.declined.contains_key(&c.claim));
        line.sort_by(|a, b| a.by_ratio(b));
        let offered: Vec<Move> = line.iter().map(|c| Move::of(Reason::Empty, &[c], self.now)).collect();
        let mut allowed = allowed((self.world, &memory.churn), offered, scorer, self.now, &mut self.said);
        allowed.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        allowed.into_iter().map(|(_, what)| what).filter(|what| self.budgets.take(&what.pools, Reason::Empty)).collect()
    }

    /// Moves that save money, beside `others`.
    pub(super) fn saving(&mut self, memory: &Disrupt, others: &[Move], scorer: &mut dyn Scorer) -> Vec<Move> {
        let taken: BTreeSet<&str> = others.iter().flat_map(|m| m.claims.iter().map(String::as_str)).collect();
        let totals = balanced::Totals::new(self.world);
        let line: Vec<Candidate> = self
            .candidates
            .iter()
            .filter(|c| self.eligible(c, Reason::Underutilized) && totals.could_pass(c))
            .filter(|c| !self.resting(memory, c))
            .cloned()
            .collect();
        if line.iter().all(|c| self.budgets.left(&c.pool, Reason::Underutilized) == 0) {
            return Vec::new();
        }
        let order = exact::destinations(self.world, &line, &taken, self.now);
        for allowed in self.ways(&line, &order, (&totals, &memory.churn), scorer) {
            let mut budgets = self.budgets.clone();
            let found: Vec<Move> = in_order(allowed).into_iter().filter(|what| budgets.take(&what.pools, Reason::Underutilized)).collect();
            if found.is_empty() {
                continue;
            }
            let claims = found.iter().flat_map(|what| &what.claims);
            let going: BTreeSet<&str> = claims.map(String::as_str).chain(taken.iter().copied()).collect();
            let closed = exact::shut(self.world, &going, self.now);
            let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
            let (held, rejected) = Exact::new(self.world, &by_claim, &closed, scorer, self.now).saving(found);
            for (what, why) in rejected {
                what.claims.into_iter().for_each(|claim| drop(self.said.hints.insert(claim, why.clone())));
            }
            if !held.is_empty() {
                for what in &held {
                    self.budgets.take(&what.pools, Reason::Underutilized);
                }
                return held;
            }
        }
        Vec::new()
    }

    /// The moves that save money and that nobody is against, with their scores, the best way first. The nodes of sets that
    /// are refused are tried once more one by one: one of them may have stood in the way of the others.
    fn ways(
        &mut self,
        line: &[Candidate],
        order: &[&'w str],
        (totals, churn): (&balanced::Totals, &Churn),
        scorer: &mut dyn Scorer,
    ) -> Vec<Vec<(i64, Move)>> {
        let by_claim: BTreeMap<&str, &Candidate> = line.iter().map(|c| (c.claim.as_str(), c)).collect();
        let (mut apart, before) = (BTreeSet::new(), self.said.vetoed.clone());
        loop {
            let ways = match search::search(self.world, line, order, (&self.budgets, &apart), scorer, self.now) {
                Ok(Ways { ways, hints, pays_from }) => {
                    (self.said.hints, self.pays_from) = (hints, pays_from);
                    ways
                }
                Err(failure) => {
                    self.said.failures.push(failure);
                    return Vec::new();
                }
            };
            let (mut all, mut sets, mut against) = (Vec::new(), BTreeSet::new(), Vec::new());
            for moves in ways {
                let (fine, unbalanced): (Vec<_>, Vec<_>) = moves.into_iter().partition(|what| totals.objection(what, &by_claim).is_none());
                all.push(allowed((self.world, churn), fine.clone(), scorer, self.now, &mut self.said));
                let vetoed = fine.iter().filter(|what| what.claims.iter().all(|claim| self.said.vetoed.contains_key(claim)));
                let refused = vetoed.chain(&unbalanced).filter(|what| what.claims.len() > 1);
                sets.extend(refused.flat_map(|what| what.claims.iter().cloned()));
                against.extend(unbalanced);
            }
            if apart.is_empty() && !sets.is_empty() {
                self.said.vetoed.clone_from(&before);
                apart = sets;
                continue;
            }
            for what in against {
                let why = totals.objection(&what, &by_claim).unwrap_or_default();
                what.claims.into_iter().for_each(|claim| drop(self.said.hints.insert(claim, why.clone())));
            }
            return all;
        }
    }

    /// The moves of an earlier look that still hold, and the others with what is against them.
    pub(super) fn again(&mut self, proposals: Vec<Move>, memory: &Disrupt, scorer: &mut dyn Scorer) -> (Vec<Move>, Vec<(Move, String)>) {
        let (mut rejected, mut still) = (Vec::new(), Vec::new());
        let totals = balanced::Totals::new(self.world);
        for what in proposals {
            let what = self.emptied(what);
            let by_claim = self.by_claim();
            let fine = |claim: &String| by_claim.get(claim.as_str()).is_some_and(|c| self.eligible(c, what.reason));
            let against = if !what.claims.iter().all(fine) {
                Some("it is in use, or going, by now".to_owned())
            } else if what.reason == Reason::Underutilized {
                totals.objection(&what, &by_claim)
            } else {
                None
            };
            let against = against.or_else(|| (!self.budgets.take(&what.pools, what.reason)).then(|| "budgets are used up".to_owned()));
            match against {
                Some(why) => rejected.push((what, why)),
                None => still.push(what),
            }
        }
        let before: Vec<Move> = still.clone();
        let allowed = allowed((self.world, &memory.churn), still, scorer, self.now, &mut self.said);
        let allowed: Vec<Move> = allowed.into_iter().map(|(_, what)| what).collect();
        let vetoed = before.into_iter().filter(|what| !allowed.contains(what));
        rejected.extend(vetoed.map(|what| (what, "policies are against it by now".to_owned())));
        let (mut held, saving): (Vec<Move>, Vec<Move>) = allowed.into_iter().partition(|what| what.reason == Reason::Empty);
        if !saving.is_empty() {
            let going: BTreeSet<&str> = held.iter().chain(&saving).flat_map(|m| m.claims.iter().map(String::as_str)).collect();
            let closed = exact::shut(self.world, &going, self.now);
            let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
            let (fine, others) = Exact::new(self.world, &by_claim, &closed, scorer, self.now).saving(saving);
            held.extend(fine);
            rejected.extend(others);
        }
        (held, rejected)
    }

    /// A move of nodes whose last pods were leaving when it was found: by now they are empty, and go for that.
    fn emptied(&self, what: Move) -> Move {
        let by_claim = self.by_claim();
        let found: Vec<&Candidate> = what.claims.iter().filter_map(|claim| by_claim.get(claim.as_str()).copied()).collect();
        let empty = found.len() == what.claims.len() && found.iter().all(|c| self.eligible(c, Reason::Empty));
        if what.reason == Reason::Underutilized && empty {
            Move { found: what.found, ..Move::of(Reason::Empty, &found, self.now) }
        } else {
            what
        }
    }

    /// Says why nodes stay that could go, once for each reason.
    pub(super) fn explain(&mut self, memory: &mut Disrupt) {
        let mut stays: BTreeMap<String, String> = std::mem::take(&mut self.said.hints);
        stays.extend(self.said.vetoed.clone());
        for candidate in &self.candidates {
            let drifted = self.world.claims.get(&candidate.claim).is_some_and(|claim| claim.status.drifted.is_some());
            if let Some(why) = candidate.blocked.as_ref().filter(|_| candidate.consolidatable || drifted) {
                stays.insert(candidate.claim.clone(), why.clone());
            }
        }
        for (claim, why) in stays {
            if memory.told.get(&claim) != Some(&why) {
                memory.told.insert(claim.clone(), why.clone());
                self.said.steps.push(Step::Blocked { claim, why });
            }
        }
        for ((pool, reason), why) in &self.budgets.closed {
            let key = format!("{pool}/{}", reason.name());
            if memory.told.get(&key) != Some(why) {
                memory.told.insert(key, why.clone());
                self.said.steps.push(Step::Closed { pool: pool.clone(), why: why.clone() });
            }
        }
    }

    /// When the next node has rested as long as its pool asks for.
    pub(super) fn rested(&self) -> Option<Timestamp> {
        let pools = &self.world.pools;
        let ends = self.world.claims.values().filter_map(|c| candidates::consolidatable_at(pools.get(&c.node_pool)?, c));
        ends.filter(|at| *at > self.now).min()
    }

    /// When something else may be different although nothing happens.
    pub(super) fn next(&self, memory: &Disrupt) -> Option<Timestamp> {
        let world = self.world;
        let turn = budgets::next_turn(world, self.now);
        let sold_out = world.sold_out.values().copied();
        let asked_again = (!self.said.vetoed.is_empty() || !self.said.let_be.is_empty()).then(|| self.now.plus(DECLINED_FOR));
        let declined = memory.declined.values().copied().chain(memory.rests.next(self.now)).chain(asked_again);
        let advice = memory.let_be.values().flat_map(BTreeMap::values).copied().chain(self.nears_its_end).chain(self.pays_from);
        let soaked = memory.soak.ends(world).into_iter().chain(memory.churn.next(self.now));
        let all = turn
            .into_iter()
            .chain(soaked)
            .chain(sold_out)
            .chain(self.protected_until)
            .chain(declined)
            .chain(advice)
            .chain(drift::next(world, self.now));
        all.filter(|at| *at > self.now).min()
    }
}

/// Moves in the order that policies give them; where none has an opinion, as they were found.
pub(super) fn in_order(mut moves: Vec<(i64, Move)>) -> Vec<Move> {
    if moves.iter().any(|(score, what)| *score != what.score()) {
        moves.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    }
    moves.into_iter().map(|(_, what)| what).collect()
}

/// The moves that policies allow, with their scores.
pub(super) fn allowed(
    (world, churn): (&World, &Churn),
    offered: Vec<Move>,
    scorer: &mut dyn Scorer,
    now: Timestamp,
    said: &mut Said,
) -> Vec<(i64, Move)> {
    if offered.is_empty() {
        return Vec::new();
    }
    let verdicts = judging::judge((world, churn), &offered, scorer, now, &mut said.failures);
    let mut allowed = Vec::new();
    for (what, verdict) in offered.into_iter().zip(verdicts) {
        if what.reason.is_advice() && !matches!(verdict, Some(MoveVerdict::Score(1..))) {
            let why = verdict.and_then(|verdict| if let MoveVerdict::Vetoed(why) = verdict { Some(scorer.reason(why)) } else { None });
            said.let_be.extend(what.claims.into_iter().map(|claim| ((what.reason, claim), why.clone())));
            continue;
        }
        match verdict {
            Some(MoveVerdict::Score(score)) => allowed.push((score, what)),
            Some(MoveVerdict::Vetoed(reason)) => {
                let why = scorer.reason(reason);
                said.vetoed.extend(what.claims.into_iter().map(|claim| (claim, why.clone())));
            }
            None => {}
        }
    }
    allowed
}
