//! Nodes that are exchanged whatever that costs: those that have drifted, and those that policies want exchanged before their
//! time is over, or because EC2 advises to leave them.
//!
//! What must not enter: moves that save money, and what is done without asking anybody.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{OfferingKey, Scorer, Timestamp, keys};

use super::Disrupt;
use super::candidates::Candidate;
use super::exact::{self, Exact};
use super::look::{Look, allowed, in_order};
use super::moves::Move;
use super::reason::Reason;
use crate::expiry;
use crate::report::Step;

/// So many nodes are exchanged in one look at most; the others have their turn with the next.
const MOST_A_LOOK: usize = 25;

impl<'w> Look<'w> {
    /// Moves that can be begun now, all for one reason: advice that policies want followed is more urgent than drift.
    pub(super) fn exchanges(&mut self, memory: &Disrupt, scorer: &mut dyn Scorer) -> Vec<Move> {
        if !self.world.settings.disruption.one_by_one {
            for reason in Reason::ADVICE {
                let asked = self.asked_for(reason, scorer);
                if reason == Reason::Expired {
                    let ends = self.world.claims.values().filter(|claim| asked.contains(claim.node_pool.as_str()));
                    let ends = ends.filter_map(|claim| expiry::nears_its_end(self.world, claim));
                    self.nears_its_end = ends.filter(|at| *at > self.now).min();
                }
                let found = self.exchanged(reason, &|candidate| asked.contains(candidate.pool.as_str()), memory, scorer);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        self.exchanged(Reason::Drifted, &|_| true, memory, scorer)
    }

    /// The pools of nodes whose policies want to be asked whether advice is followed.
    fn asked_for(&self, reason: Reason, scorer: &mut dyn Scorer) -> BTreeSet<&'w str> {
        let world = self.world;
        let concerned = world.claims.values().filter(|claim| match reason {
            Reason::Expired => claim.expire_after.is_some(),
            Reason::Rebalance => world.advised.contains_key(&claim.name),
            Reason::Empty | Reason::Underutilized | Reason::Drifted => false,
        });
        let mut asked: BTreeSet<&str> = concerned.map(|claim| claim.node_pool.as_str()).collect();
        let mut known: BTreeMap<&str, bool> = BTreeMap::new();
        asked.retain(|pool| {
            let Some(pool) = world.pools.get(*pool) else { return false };
            let chain = pool.annotations.get(keys::POLICY).map_or("", String::as_str);
            *known.entry(chain).or_insert_with(|| {
                // Why a chain cannot be asked is said where it is needed.
                let wants = scorer.chain(chain, self.now).ok().flatten();
                wants.and_then(|wants| Some(wants.judging.as_ref()?.kinds.contains(&reason.kind()))).unwrap_or(false)
            })
        });
        asked
    }

    /// Since when a node has a reason to go: who has had it for longest goes first, and of nodes that near their end the
    /// one whose end is nearest.
    fn since(&self, candidate: &Candidate, reason: Reason) -> Option<Timestamp> {
        let claim = self.world.claims.get(&candidate.claim)?;
        match reason {
            Reason::Drifted => claim.status.drifted.as_ref().map(|(_, at)| *at),
            Reason::Expired => expiry::expires_at(self.world, claim),
            Reason::Rebalance => self.world.advised.get(&claim.name).copied(),
            Reason::Empty | Reason::Underutilized => None,
        }
    }

    /// Moves for one reason that can be begun now: nodes without pods first, then the longest known.
    fn exchanged(&mut self, reason: Reason, wanted: &dyn Fn(&Candidate) -> bool, memory: &Disrupt, scorer: &mut dyn Scorer) -> Vec<Move> {
        let mut line: Vec<&Candidate> = self.candidates.iter().filter(|c| wanted(c) && self.eligible(c, reason)).collect();
        line.retain(|c| !self.resting(memory, c) && !memory.lets_be(reason, &c.claim));
        line.sort_by_key(|c| (!c.pods.is_empty(), self.since(c, reason), c.claim.clone()));
        line.retain(|c| self.budgets.left(&c.pool, reason) > 0);
        let crowded = line.len() > MOST_A_LOOK;
        let mut line = in_turns(line);
        line.truncate(MOST_A_LOOK);
        if line.is_empty() {
            return Vec::new();
        }
        let offered: Vec<Move> = line.iter().map(|c| Move::of(reason, &[c], self.now)).collect();
        let allowed = in_order(allowed((self.world, &memory.churn), offered, scorer, self.now, &mut self.said));
        if allowed.is_empty() {
            return Vec::new();
        }
        let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
        let closed = exact::unready(self.world);
        let mut exact = Exact::new(self.world, &by_claim, &closed, scorer, self.now);
        if reason == Reason::Rebalance {
            exact.avoid(self.advised_against());
        }
        let mut begun = Vec::new();
        for what in allowed {
            if self.budgets.left(&what.pools[0], reason) == 0 {
                continue;
            }
            match exact.replace(what.clone()) {
                Ok(what) => {
                    self.budgets.take(&what.pools, reason);
                    begun.push(what);
                }
                Err(why) => {
                    let claim = what.claims[0].clone();
                    if crowded || reason.is_advice() {
                        // The others have their turn before it is tried again.
                        self.said.vetoed.insert(claim.clone(), why.clone());
                    }
                    self.said.steps.push(Step::Blocked { claim, why });
                }
            }
        }
        begun
    }

    /// What EC2 would rather have back.
    fn advised_against(&self) -> impl Iterator<Item = OfferingKey> + '_ {
        self.world.advised.keys().filter_map(|claim| self.world.claims.get(claim)?.status.offering())
    }
}

/// The first of each pool, then the second of each: a pool whose nodes cannot go must not keep the others waiting.
fn in_turns(line: Vec<&Candidate>) -> Vec<&Candidate> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut turns: Vec<(usize, &Candidate)> = Vec::with_capacity(line.len());
    for candidate in line {
        let turn = seen.entry(&candidate.pool).or_default();
        turns.push((*turn, candidate));
        *turn += 1;
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, candidate)| candidate).collect()
}
