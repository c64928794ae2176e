//! The last word on moves: each is planned in full in the world without its nodes, one after the other, so that what is
//! begun together also works together.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{NodeClaim, OfferingKey, Packing, PodKey, Scorer, Timestamp};

use super::candidates::{Candidate, consolidatable_at};
use super::hypothesis::Hypothesis;
use super::moves::{Move, trim};
use super::payback;
use super::reason::Reason;
use super::search::{share, worth_it};
use crate::plan::{Plan, PlannedNode};
use crate::world::World;

/// Moves on trial.
pub(super) struct Exact<'a> {
    world: &'a World,
    candidates: &'a BTreeMap<&'a str, &'a Candidate>,
    hypothesis: Hypothesis,
    scorer: &'a mut dyn Scorer,
    now: Timestamp,
}

impl<'a> Exact<'a> {
    /// Trials in a world in which nodes of `closed` take no moved pods.
    pub(super) fn new(
        world: &'a World,
        candidates: &'a BTreeMap<&'a str, &'a Candidate>,
        closed: &BTreeSet<&str>,
        scorer: &'a mut dyn Scorer,
        now: Timestamp,
    ) -> Self {
        let hypothesis = Hypothesis::new(world, closed, scorer, now);
        Self { world, candidates, hypothesis, scorer, now }
    }

    fn of(&self, what: &Move) -> Vec<&'a Candidate> {
        what.claims.iter().filter_map(|claim| self.candidates.get(claim.as_str()).copied()).collect()
    }

    /// Leaves these offerings alone when something is bought.
    pub(super) fn avoid(&mut self, offerings: impl Iterator<Item = OfferingKey>) {
        self.hypothesis.sell_out(offerings, self.now);
    }

    /// A move with all that is bought for it, whatever that costs.
    ///
    /// # Errors
    /// Says what is in its way.
    pub(super) fn replace(&mut self, what: Move) -> Result<Move, String> {
        let set = self.of(&what);
        let pool = what.pools.first().and_then(|pool| self.world.pools.get(pool)).filter(|pool| pool.replicas.is_some());
        if let Some(pool) = pool {
            let bought = self.hypothesis.bare(&pool.name, self.scorer, self.now)?;
            return Ok(what.buying(vec![bought]));
        }
        let (plan, undo) = self.hypothesis.without(&set, self.world.settings.packing, self.scorer, self.now);
        // Such a node does not stay for room that nobody uses yet.
        if let Some(why) = homeless(&plan, |pod| !self.world.buffers.holds(pod)) {
            self.hypothesis.undo(undo);
            return Err(why);
        }
        let bought: Vec<&NodeClaim> = plan.nodes.iter().map(|node| &node.claim).collect();
        self.hypothesis.keep(&plan, &bought);
        Ok(what.buying(plan.nodes))
    }

    /// The moves that save money all together, and the others with what is against them.
    pub(super) fn saving(&mut self, moves: Vec<Move>) -> (Vec<Move>, Vec<(Move, String)>) {
        let (deletes, exchanges): (Vec<Move>, Vec<Move>) = moves.into_iter().partition(|what| what.replacements.is_empty());
        let (mut held, mut rejected) = (Vec::new(), Vec::new());
        self.deletes(deletes, &mut held, &mut rejected);
        for what in exchanges {
            match self.exchange(what.clone()) {
                Ok(what) => held.push(what),
                Err(why) => rejected.push((what, why)),
            }
        }
        (held, rejected)
    }

    /// Deletes that work together: all, or the halves on their own.
    fn deletes(&mut self, mut moves: Vec<Move>, held: &mut Vec<Move>, rejected: &mut Vec<(Move, String)>) {
        if moves.is_empty() {
            return;
        }
        let set: Vec<&Candidate> = moves.iter().flat_map(|what| self.of(what)).collect();
        let (plan, undo) = self.hypothesis.without(&set, self.world.settings.packing, self.scorer, self.now);
        let against = homeless(&plan, |_| true).or_else(|| plan.nodes.first().map(|_| "its pods do not fit elsewhere".to_owned()));
        let Some(why) = against else {
            self.hypothesis.keep(&plan, &[]);
            held.append(&mut moves);
            return;
        };
        self.hypothesis.undo(undo);
        if moves.len() == 1 {
            rejected.extend(moves.pop().map(|what| (what, why)));
            return;
        }
        let rest = moves.split_off(moves.len() / 2);
        self.deletes(moves, held, rejected);
        self.deletes(rest, held, rejected);
    }

    /// What the nodes of a set can be exchanged for, one node at most, when nothing else is done.
    ///
    /// # Errors
    /// Says what is in its way.
    pub(super) fn alone(&mut self, set: &[&Candidate]) -> Result<Move, String> {
        let what = Move::of(Reason::Underutilized, set, self.now);
        let (plan, undo) = self.hypothesis.without(set, Packing::Greedy, self.scorer, self.now);
        let bought = self.bought(&what, set, &plan);
        self.hypothesis.undo(undo);
        Ok(what.buying(bought?))
    }

    fn exchange(&mut self, what: Move) -> Result<Move, String> {
        let set = self.of(&what);
        // As Karpenter: what has to be one node is packed as one; cheaper ones instead of it are a move of their own kind.
        let packing = if what.reshapes { self.world.settings.packing } else { Packing::Greedy };
        let (plan, undo) = self.hypothesis.without(&set, packing, self.scorer, self.now);
        match self.bought(&what, &set, &plan) {
            Ok(nodes) => {
                let bought: Vec<&NodeClaim> = nodes.iter().map(|node| &node.claim).collect();
                self.hypothesis.keep(&plan, &bought);
                let plain = Move { found: what.found, reshapes: what.reshapes, ..Move::of(what.reason, &set, self.now) };
                Ok(plain.buying(nodes))
            }
            Err(why) => {
                self.hypothesis.undo(undo);
                Err(why)
            }
        }
    }

    fn bought(&self, what: &Move, set: &[&Candidate], plan: &Plan) -> Result<Vec<PlannedNode>, String> {
        if let Some(why) = homeless(plan, |_| true) {
            return Err(why);
        }
        let worth = set.iter().map(|c| c.price).sum();
        let saves = worth - plan.nodes.iter().map(|node| node.list).sum();
        if !payback::pays(set, saves) {
            return Err(payback::why(set, saves));
        }
        match &plan.nodes[..] {
            [] => Ok(Vec::new()),
            [only] => Ok(vec![trim(self.world, set, only.clone(), worth, !what.reshapes, self.now)?]),
            several if what.reshapes => {
                let cost = several.iter().map(|node| node.list).sum();
                if !worth_it(self.world, worth, cost) {
                    return Err("it no longer saves enough".to_owned());
                }
                share(self.world, set, several.to_vec(), worth, self.now)
            }
            several => Err(format!("{} nodes would be needed", several.len())),
        }
    }
}

/// Why pods that count would be left without a place, if some would.
fn homeless(plan: &Plan, counts: impl Fn(&PodKey) -> bool) -> Option<String> {
    let (unplaced, pod) = plan.unplaced.iter().find_map(|unplaced| Some((unplaced, unplaced.pods.iter().find(|pod| counts(pod))?)))?;
    let reasons: Vec<String> = unplaced.reasons.iter().map(|r| format!("{}: {}", r.place, r.why)).collect();
    Some(format!("pod {pod} would have no place ({})", reasons.join("; ")))
}

/// Nodes that take no moved pods because nobody knows yet whether they can.
pub(super) fn unready(world: &World) -> BTreeSet<&str> {
    let starting = world.claims.values().filter(|claim| claim.status.initialized.is_none());
    starting.filter_map(|claim| world.node_of(claim)).map(|node| node.name.as_str()).collect()
}

/// Nodes that take no pods that are moved to save money: those that are starting, those whose own rest is not over, and
/// those of `going` claims.
pub(super) fn shut<'w>(world: &'w World, going: &BTreeSet<&str>, now: Timestamp) -> BTreeSet<&'w str> {
    let mut shut = unready(world);
    for claim in world.claims.values() {
        let Some(node) = world.node_of(claim) else { continue };
        let rests = world.pools.get(&claim.node_pool).and_then(|pool| consolidatable_at(pool, claim)).is_some_and(|at| at > now);
        if rests || going.contains(claim.name.as_str()) {
            shut.insert(&node.name);
        }
    }
    shut
}

/// Nodes that take moved pods, in the order in which they are tried: those that stay anyway, then those that are least
/// worth moving.
pub(super) fn destinations<'w>(world: &'w World, line: &[Candidate], going: &BTreeSet<&str>, now: Timestamp) -> Vec<&'w str> {
    let shut = shut(world, going, now);
    let mut last: Vec<&Candidate> = line.iter().collect();
    last.sort_by(|a, b| b.by_ratio(a));
    let moving: BTreeSet<&str> = last.iter().map(|c| c.node.as_str()).collect();
    let stay = world.nodes.keys().map(String::as_str).filter(|name| !moving.contains(name));
    let known = |c: &&Candidate| world.nodes.get_key_value(c.node.as_str()).map(|(name, _)| name.as_str());
    stay.chain(last.iter().filter_map(known)).filter(|name| !shut.contains(name)).collect()
}
