//! The search for moves that save money: nodes whose pods fit elsewhere, nodes that one cheaper node can stand in for,
//! and sets of badly shaped nodes that are bought anew for less. All moves of one search are independent: each is made of
//! nodes that no other touches, and of room that no other uses.
//!
//! What must not enter: budgets beyond how many nodes are worth finding, the report.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::scorer::ScorerFailure;
use whittle_model::{Micros, PodKey, Scorer, Timestamp};

use super::budgets::Budgets;
use super::candidates::Candidate;
use super::moves::{Move, trim};
use super::reason::Reason;
use crate::plan::PlannedNode;
use crate::plan::finish::Priced;
use crate::plan::study::{Left, Study};
use crate::world::World;

/// As Karpenter: so many nodes at most are replaced by one.
pub(super) const MOST_TO_ONE: usize = 100;
/// So many are bought anew together at most: a move that waits for its slowest replacement must not grow without bound.
const CHUNK: usize = 32;
/// Steps of improvement for each node of such a set.
const STEPS_A_NODE: u64 = 2_000;

/// A search under way.
pub(super) struct Search<'a> {
    world: &'a World,
    now: Timestamp,
    study: Study<'a>,
    /// Those that may still be moved, in the order in which they are tried.
    rest: Vec<&'a Candidate>,
    /// How many more nodes of each pool are worth finding.
    quota: BTreeMap<&'a str, usize>,
    /// Claims that move alone or not at all.
    apart: &'a BTreeSet<String>,
    found: Vec<Move>,
    /// Why single nodes cannot be replaced, where its owner can do something about it.
    pub(super) hints: BTreeMap<String, String>,
}

/// A move that was found, and what it takes of the study.
struct Trial {
    found: Move,
    mark: usize,
    bought: Option<Priced>,
}

/// Finds moves for `candidates`, which may all be moved; those that are to be kept apart, alone. Nodes of `order` may take
/// their pods.
///
/// # Errors
/// When a policy fails.
pub(super) fn search<'a>(
    world: &'a World,
    candidates: &'a [Candidate],
    order: &[&'a str],
    (budgets, apart): (&Budgets, &'a BTreeSet<String>),
    scorer: &'a mut dyn Scorer,
    now: Timestamp,
) -> Result<(Vec<Move>, BTreeMap<String, String>), ScorerFailure> {
    let mut rest: Vec<&Candidate> = candidates.iter().collect();
    rest.sort_by(|a, b| a.by_ratio(b));
    let mut quota: BTreeMap<&str, usize> = BTreeMap::new();
    for candidate in &rest {
        quota.entry(&candidate.pool).or_insert_with(|| budgets.left(&candidate.pool, Reason::Underutilized));
    }
    rest.retain(|c| quota.get(c.pool.as_str()).is_some_and(|left| *left > 0));
    if rest.is_empty() {
        return Ok((Vec::new(), BTreeMap::new()));
    }
    let content: BTreeMap<&str, &[PodKey]> = rest.iter().map(|c| (c.node.as_str(), &c.pods[..])).collect();
    let study = Study::new(world, &content, order, scorer, now)?;
    let mut search = Search { world, now, study, rest, quota, apart, found: Vec::new(), hints: BTreeMap::new() };
    search.deletes();
    search.many_to_one()?;
    search.one_to_one()?;
    if reshapes(world) {
        search.reshape()?;
    }
    Ok((search.found, search.hints))
}

impl<'a> Search<'a> {
    /// Whether a candidate is free: its node took no pods of another, and its pool has nodes to spare.
    fn free(&self, candidate: &Candidate) -> bool {
        self.quota.get(candidate.pool.as_str()).is_some_and(|left| *left > 0) && !self.study.received(&candidate.node)
    }

    fn accept(&mut self, which: &[&'a Candidate], trial: Trial) {
        let Trial { found, mark, bought } = trial;
        bought.iter().for_each(|bought| self.study.spend(bought));
        let nodes: Vec<&str> = which.iter().map(|c| c.node.as_str()).collect();
        self.study.keep(&nodes, mark);
        for candidate in which {
            if let Some(left) = self.quota.get_mut(candidate.pool.as_str()) {
                *left = left.saturating_sub(1);
            }
        }
        let gone: BTreeSet<&str> = which.iter().map(|c| c.claim.as_str()).collect();
        self.rest.retain(|c| !gone.contains(c.claim.as_str()));
        self.found.push(found);
    }

    /// Nodes whose pods all fit on what stays.
    fn deletes(&mut self) {
        for candidate in self.rest.clone() {
            if !self.free(candidate) {
                continue;
            }
            let (left, mark) = self.study.empty(&[&candidate.node]);
            if left.is_empty() {
                let found = Move::of(Reason::Underutilized, &[candidate], self.now);
                self.accept(&[candidate], Trial { found, mark, bought: None });
            } else {
                self.study.undo(mark);
            }
        }
    }

    /// The longest run of candidates, in their order, that at most one cheaper node can stand in for.
    fn many_to_one(&mut self) -> Result<(), ScorerFailure> {
        loop {
            let mut quota = self.quota.clone();
            let within = |c: &&Candidate| {
                quota.get_mut(c.pool.as_str()).is_some_and(|left| {
                    *left > 0 && {
                        *left -= 1;
                        true
                    }
                })
            };
            let free = |c: &&Candidate| !self.study.received(&c.node) && !self.apart.contains(&c.claim);
            let line: Vec<&Candidate> = self.rest.iter().copied().filter(free).filter(within).take(MOST_TO_ONE).collect();
            let (mut low, mut high) = (2, line.len());
            let mut best: Option<usize> = None;
            while low <= high {
                let middle = low.midpoint(high);
                let works = self.stand_in(&line[..middle])?;
                works.iter().for_each(|trial| self.study.undo(trial.mark));
                if works.is_some() {
                    best = Some(middle);
                    low = middle + 1;
                } else {
                    high = middle - 1;
                }
            }
            let Some(length) = best else { return Ok(()) };
            let Some(trial) = self.stand_in(&line[..length])? else { return Ok(()) };
            self.accept(&line[..length], trial);
        }
    }

    /// Single nodes, the pools in turn.
    fn one_to_one(&mut self) -> Result<(), ScorerFailure> {
        let floor = self.study.floor();
        for candidate in interleaved(&self.rest) {
            if !self.free(candidate) || candidate.price <= floor {
                continue;
            }
            if let Some(trial) = self.stand_in(&[candidate])? {
                let trial = self.finer(candidate, trial)?;
                self.accept(&[candidate], trial);
            }
        }
        Ok(())
    }

    /// What one cheaper node, or none, in the place of `which` comes to. What is placed stands until it is accepted or
    /// undone; without an answer it is undone.
    fn stand_in(&mut self, which: &[&'a Candidate]) -> Result<Option<Trial>, ScorerFailure> {
        let nodes: Vec<&str> = which.iter().map(|c| c.node.as_str()).collect();
        let (left, mark) = self.study.empty(&nodes);
        let plain = Move::of(Reason::Underutilized, which, self.now);
        if left.is_empty() {
            return Ok(Some(Trial { found: plain, mark, bought: None }));
        }
        let one = self.study.buy(&left, None)?.filter(|bought| bought.claims.len() == 1 && bought.cost < plain.saves);
        let found = one.and_then(|bought| Some((self.narrowed(which, &nodes, &left, &bought, plain)?, bought)));
        if found.is_none() {
            self.study.undo(mark);
        }
        Ok(found.map(|(found, bought)| Trial { found, mark, bought: Some(bought) }))
    }

    fn narrowed(&mut self, which: &[&Candidate], nodes: &[&str], left: &Left, bought: &Priced, plain: Move) -> Option<Move> {
        let planned = self.study.nodes(nodes, left, bought.clone()).into_iter().next()?;
        match trim(self.world, which, planned, plain.saves, true, self.now) {
            Ok(planned) => Some(plain.buying(vec![planned])),
            Err(why) => {
                if let [only] = which
                    && (why.contains("spot") || why.contains("within a day"))
                {
                    self.hints.insert(only.claim.clone(), why);
                }
                None
            }
        }
    }

    /// Several nodes in the place of the one that was found, where they cost so much less that it would be exchanged
    /// again.
    fn finer(&mut self, candidate: &'a Candidate, trial: Trial) -> Result<Trial, ScorerFailure> {
        let Some(one) = trial.bought.as_ref().filter(|_| reshapes(self.world)) else { return Ok(trial) };
        let (nodes, set) = ([candidate.node.as_str()], [candidate]);
        let left: Left = one.claims.iter().flat_map(|claim| claim.content.iter().copied()).collect();
        let several = self.study.buy(&left, Some(STEPS_A_NODE))?;
        let Some(several) = several.filter(|bought| bought.claims.len() > 1 && worth_it(self.world, one.cost, bought.cost)) else {
            return Ok(trial);
        };
        let planned = self.study.nodes(&nodes, &left, several.clone());
        match share(self.world, &set, planned, candidate.price, self.now) {
            Err(_) => Ok(trial),
            Ok(planned) => {
                let plain = Move { reshapes: true, ..Move::of(Reason::Underutilized, &set, self.now) };
                Ok(Trial { found: plain.buying(planned), mark: trial.mark, bought: Some(several) })
            }
        }
    }

    /// Sets of nodes that cost more than their pods are worth, bought anew.
    fn reshape(&mut self) -> Result<(), ScorerFailure> {
        let line: Vec<&Candidate> = self.rest.iter().copied().filter(|c| self.free(c)).collect();
        if line.is_empty() {
            return Ok(());
        }
        let nodes: Vec<&str> = line.iter().map(|c| c.node.as_str()).collect();
        let values = self.study.values(&nodes);
        let mut dear: Vec<(f64, &Candidate)> = line.into_iter().zip(values).filter_map(excess).collect();
        dear.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.claim.cmp(&b.1.claim)));
        let mut dear: &[(f64, &Candidate)] = &dear;
        while !dear.is_empty() {
            let mut size = CHUNK.min(dear.len());
            while size > 0 {
                let may = |c: &&Candidate| self.free(c) && (size == 1 || !self.apart.contains(&c.claim));
                let set: Vec<&Candidate> = dear[..size].iter().map(|(_, c)| *c).filter(may).collect();
                if self.anew(&set)? {
                    break;
                }
                size /= 4;
            }
            dear = &dear[size.max(CHUNK.min(dear.len()).min(8))..];
        }
        Ok(())
    }

    /// Buys anew for the pods of a set of nodes, if that saves enough.
    fn anew(&mut self, set: &[&'a Candidate]) -> Result<bool, ScorerFailure> {
        let mut quota = self.quota.clone();
        let within = |c: &&&Candidate| {
            quota.get_mut(c.pool.as_str()).is_some_and(|left| {
                *left > 0 && {
                    *left -= 1;
                    true
                }
            })
        };
        let set: Vec<&Candidate> = set.iter().filter(within).copied().collect();
        if set.is_empty() {
            return Ok(false);
        }
        let nodes: Vec<&str> = set.iter().map(|c| c.node.as_str()).collect();
        let (left, mark) = self.study.empty(&nodes);
        let plain = Move { reshapes: true, ..Move::of(Reason::Underutilized, &set, self.now) };
        let steps = STEPS_A_NODE * u64::try_from(set.len()).unwrap_or(1);
        let bought = if left.is_empty() { None } else { self.study.buy(&left, Some(steps))? };
        if let Some(bought) = bought
            && worth_it(self.world, plain.saves, bought.cost)
            && let Ok(planned) = share(self.world, &set, self.study.nodes(&nodes, &left, bought.clone()), plain.saves, self.now)
        {
            self.accept(&set, Trial { found: plain.buying(planned), mark, bought: Some(bought) });
            return Ok(true);
        }
        self.study.undo(mark);
        Ok(false)
    }
}

/// Trims several replacements: together they cost less than the nodes that go, whichever types are bought.
///
/// # Errors
/// Says why nothing is left of one of them.
pub(super) fn share(
    world: &World,
    set: &[&Candidate],
    planned: Vec<PlannedNode>,
    worth: Micros,
    now: Timestamp,
) -> Result<Vec<PlannedNode>, String> {
    let spent: Micros = planned.iter().map(|p| p.list).sum();
    let spare = (worth - spent).0 / i64::try_from(planned.len().max(1)).unwrap_or(1);
    planned.into_iter().map(|p| trim(world, set, p.clone(), Micros(p.list.0 + spare.max(0)), false, now)).collect()
}

/// Whether nodes are exchanged for several others. Those pay only with each pod on its own node: where nominations are
/// not honoured kube-scheduler mixes them, one is left over, and what is bought for it is exchanged again, for ever.
fn reshapes(world: &World) -> bool {
    world.settings.disruption.reshape && world.settings.nominates()
}

/// Whether an exchange for several nodes saves enough for the trouble.
pub(super) fn worth_it(world: &World, worth: Micros, cost: Micros) -> bool {
    let least = i128::from(worth.0) * i128::from(world.settings.disruption.reshape_permille) / 1000;
    i128::from((worth - cost).0) > least
}

/// By how much of its price a node costs more than its pods are worth; `None` when it does not.
fn excess((candidate, value): (&Candidate, f64)) -> Option<(f64, &Candidate)> {
    let price = f64::from(i32::try_from(candidate.price.0).unwrap_or(i32::MAX));
    (price > value && price > 0.0).then(|| ((price - value) / price, candidate))
}

/// One candidate of each pool after the other.
pub(super) fn interleaved<'a>(all: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut by_pool: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
    all.iter().for_each(|c| by_pool.entry(&c.pool).or_default().push(c));
    let longest = by_pool.values().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| by_pool.values().filter_map(move |of| of.get(turn).copied()).collect::<Vec<_>>()).collect()
}
