//! The search for moves that save money: nodes whose pods fit elsewhere, nodes that one cheaper node can stand in for,
//! and sets of badly shaped nodes that are bought anew for less. All moves of one search are independent: each is made of
//! nodes that no other touches, and of room that no other uses.
//!
//! What must not enter: budgets beyond how many nodes are worth finding, the report.

mod whole;

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::scorer::ScorerFailure;
use whittle_model::{Micros, PodKey, Requirements, Scorer, Timestamp};

use super::budgets::Budgets;
use super::candidates::Candidate;
use super::moves::{Cut, Move, cut, narrow, trim};
use super::payback;
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

/// So many sets that might pay are bought anew in vain at most: those that follow have less to gain.
const IN_VAIN: usize = 12;
/// So many exchanges are found in one look at most: each is planned in full before it is begun, and what is bought for it
/// starts at once. The others have their turn with the next look.
const EXCHANGES_A_LOOK: usize = 64;
/// And fewer where more is for sale than this for each of them, down to some: planning one takes longer there.
const OFFERS_AN_EXCHANGE: usize = 8_000;
const FEWEST_EXCHANGES: usize = 4;

/// A search under way.
pub(super) struct Search<'a> {
    world: &'a World,
    now: Timestamp,
    study: Study<'a>,
    /// All that may be moved, in the order in which they are tried.
    all: Vec<&'a Candidate>,
    /// Those that no move was found for yet.
    rest: Vec<&'a Candidate>,
    most: Most<'a>,
    /// Claims that move alone or not at all.
    apart: &'a BTreeSet<String>,
    found: Vec<Move>,
    /// Why single nodes cannot be replaced, where its owner can do something about it.
    hints: BTreeMap<String, String>,
    /// When the first move pays that does not yet.
    pays_from: Option<Timestamp>,
}

/// What one search found: each way is a list of moves that go well together, in the order in which they are to be made.
/// The first way is the best one.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) ways: Vec<Vec<Move>>,
    /// Why single nodes cannot be replaced.
    pub(super) hints: BTreeMap<String, String>,
    /// When the first move pays that does not yet.
    pub(super) pays_from: Option<Timestamp>,
}

/// How many nodes one move may take, of each pool and of all: no move is larger than the budgets.
#[derive(Debug, Default)]
struct Most<'a> {
    of_pool: BTreeMap<&'a str, usize>,
    of_all: usize,
}

impl<'a> Most<'a> {
    fn new(candidates: &'a [Candidate], budgets: &Budgets) -> Self {
        let pools: BTreeSet<&str> = candidates.iter().map(|c| c.pool.as_str()).collect();
        let of_pool = pools.into_iter().map(|pool| (pool, budgets.left(pool, Reason::Underutilized))).collect();
        Self { of_pool, of_all: budgets.over_all(Reason::Underutilized) }
    }

    fn of(&self, pool: &str) -> usize {
        self.of_pool.get(pool).copied().unwrap_or(0)
    }

    /// As many of a line, in its order, as one move may take.
    fn within(&self, line: impl Iterator<Item = &'a Candidate>, most: usize) -> Vec<&'a Candidate> {
        let mut taken: BTreeMap<&'a str, usize> = BTreeMap::new();
        let mut within = Vec::new();
        for candidate in line {
            let taken = taken.entry(&candidate.pool).or_default();
            *taken += 1;
            if *taken <= self.of(&candidate.pool) {
                within.push(candidate);
            }
            if within.len() >= most.min(self.of_all) {
                break;
            }
        }
        within
    }
}

/// A move that was found, and what it takes of the study.
struct Trial {
    found: Move,
    mark: usize,
    bought: Option<Priced>,
}

/// What came of buying anew for a set of nodes.
enum Anew {
    Better,
    NoBetter,
    /// It was clear without trying that it would not pay.
    Hopeless,
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
) -> Result<Ways, ScorerFailure> {
    let most = Most::new(candidates, budgets);
    let mut all: Vec<&Candidate> = candidates.iter().filter(|c| most.of(&c.pool) > 0).collect();
    if all.is_empty() {
        return Ok(Ways::default());
    }
    all.sort_by(|a, b| a.by_ratio(b));
    let content: BTreeMap<&str, &[PodKey]> = all.iter().map(|c| (c.node.as_str(), &c.pods[..])).collect();
    let study = Study::new(world, &content, order, scorer, now)?;
    let rest = all.clone();
    let mut search = Search { world, now, study, all, rest, most, apart, found: Vec::new(), hints: BTreeMap::new(), pays_from: None };
    if reshapes(world) {
        search.study.appraise(&nodes(&search.all));
    }
    search.one_after_the_other()?;
    let first = std::mem::take(&mut search.found);
    let mut ways = Vec::new();
    if reshapes(world) {
        ways.extend(search.as_a_whole(&first)?);
    }
    ways.push(first);
    Ok(Ways { ways, hints: search.hints, pays_from: search.pays_from })
}

fn nodes<'a>(of: &[&'a Candidate]) -> Vec<&'a str> {
    of.iter().map(|c| c.node.as_str()).collect()
}

impl<'a> Search<'a> {
    /// Whether a candidate is free: its node took no pods of another.
    fn free(&self, candidate: &Candidate) -> bool {
        !self.study.received(&candidate.node)
    }

    /// Whether no further exchange is looked for.
    fn enough(&self) -> bool {
        let offers = self.study.offers().max(1);
        let most = EXCHANGES_A_LOOK.min(EXCHANGES_A_LOOK * OFFERS_AN_EXCHANGE / offers).max(FEWEST_EXCHANGES);
        self.found.iter().filter(|what| !what.replacements.is_empty()).count() >= most
    }

    /// Whether a move is worth its restarts; else it is noted when it will be.
    fn pays(&mut self, which: &[&Candidate], saves: Micros) -> bool {
        let pays = payback::pays(which, saves);
        if !pays {
            if let [only] = which {
                self.hints.insert(only.claim.clone(), payback::why(which, saves));
            }
            self.pays_from = self.pays_from.into_iter().chain(payback::pays_from(which, saves, self.now)).min();
        }
        pays
    }

    fn accept(&mut self, which: &[&'a Candidate], trial: Trial) {
        let Trial { found, mark, bought } = trial;
        bought.iter().for_each(|bought| self.study.spend(bought));
        self.study.keep(&nodes(which), mark);
        let gone: BTreeSet<&str> = which.iter().map(|c| c.claim.as_str()).collect();
        self.rest.retain(|c| !gone.contains(c.claim.as_str()));
        self.found.push(found);
    }

    /// The simple moves first: each node is looked at for itself.
    fn one_after_the_other(&mut self) -> Result<(), ScorerFailure> {
        self.deletes(self.rest.clone());
        self.many_to_one()?;
        self.one_to_one()?;
        if reshapes(self.world) {
            self.reshape(self.rest.clone())?;
        }
        Ok(())
    }

    /// Nodes whose pods all fit on what stays.
    fn deletes(&mut self, line: Vec<&'a Candidate>) {
        for candidate in line {
            if !self.free(candidate) {
                continue;
            }
            if !self.pays(&[candidate], candidate.price) {
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
        while !self.enough() {
            let free = |c: &&Candidate| !self.study.received(&c.node) && !self.apart.contains(&c.claim);
            let line = self.most.within(self.rest.iter().copied().filter(free), MOST_TO_ONE);
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
        Ok(())
    }

    /// Single nodes, the pools in turn.
    fn one_to_one(&mut self) -> Result<(), ScorerFailure> {
        let floor = self.study.floor();
        for candidate in interleaved(&self.rest) {
            if self.enough() {
                break;
            }
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
        let nodes = nodes(which);
        let (left, mark) = self.study.empty(&nodes);
        let plain = Move::of(Reason::Underutilized, which, self.now);
        // No replacement leaves more of what the nodes cost.
        if !self.pays(which, plain.saves) {
            self.study.undo(mark);
            return Ok(None);
        }
        if left.is_empty() {
            return Ok(Some(Trial { found: plain, mark, bought: None }));
        }
        if !self.study.one_may_do(&left, plain.saves) {
            self.study.undo(mark);
            return Ok(None);
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
            Ok(planned) => Some(plain.buying(vec![planned])).filter(|found| self.pays(which, found.saves)),
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
    fn reshape(&mut self, line: Vec<&'a Candidate>) -> Result<(), ScorerFailure> {
        let line: Vec<&Candidate> = line.into_iter().filter(|c| self.free(c)).collect();
        let values = self.study.values(&nodes(&line));
        let mut dear: Vec<(f64, &Candidate)> = line.into_iter().zip(values).filter_map(excess).collect();
        dear.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.claim.cmp(&b.1.claim)));
        let mut dear: &[(f64, &Candidate)] = &dear;
        let mut in_vain = 0;
        while !dear.is_empty() && !self.enough() && in_vain < IN_VAIN {
            let mut size = CHUNK.min(dear.len());
            while size > 0 {
                let may = |c: &&Candidate| self.free(c) && (size == 1 || !self.apart.contains(&c.claim));
                let set = self.most.within(dear[..size].iter().map(|(_, c)| *c).filter(may), CHUNK);
                match self.anew(&set)? {
                    Anew::Better => break,
                    Anew::NoBetter => in_vain += 1,
                    Anew::Hopeless => {}
                }
                size /= 4;
            }
            dear = &dear[size.max(CHUNK.min(dear.len()).min(8))..];
        }
        Ok(())
    }

    /// Buys anew for the pods of a set of nodes, if that saves enough.
    fn anew(&mut self, set: &[&'a Candidate]) -> Result<Anew, ScorerFailure> {
        if set.is_empty() {
            return Ok(Anew::Hopeless);
        }
        let nodes = nodes(set);
        let (left, mark) = self.study.empty(&nodes);
        let plain = Move { reshapes: true, ..Move::of(Reason::Underutilized, set, self.now) };
        let steps = STEPS_A_NODE * u64::try_from(set.len()).unwrap_or(1);
        let may =
            !left.is_empty() && self.pays(set, plain.saves) && self.study.may_cost_less(&left, less_the_trouble(self.world, plain.saves));
        let bought = if may { self.study.buy(&left, Some(steps))? } else { None };
        if let Some(bought) = bought
            && worth_it(self.world, plain.saves, bought.cost)
            && let Ok(planned) = share(self.world, set, self.study.nodes(&nodes, &left, bought.clone()), plain.saves, self.now)
        {
            let found = plain.buying(planned);
            if self.pays(set, found.saves) {
                self.accept(set, Trial { found, mark, bought: Some(bought) });
                return Ok(Anew::Better);
            }
        }
        self.study.undo(mark);
        Ok(if may { Anew::NoBetter } else { Anew::Hopeless })
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
    // Many are of one kind.
    let mut known: BTreeMap<(String, Micros), Vec<(Requirements, Cut)>> = BTreeMap::new();
    let mut trimmed = Vec::with_capacity(planned.len());
    for planned in planned {
        let (claim, cap) = (&planned.claim, Micros(planned.list.0 + spare.max(0)));
        let alike = known.entry((claim.node_class.clone(), cap)).or_default();
        let at = match alike.iter().position(|(requirements, _)| *requirements == claim.requirements) {
            Some(at) => at,
            None => {
                alike.push((claim.requirements.clone(), cut(world, set, claim, cap, false, now)?));
                alike.len() - 1
            }
        };
        trimmed.push(narrow(planned, &alike[at].1, now)?);
    }
    Ok(trimmed)
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

/// What nodes that cost `worth` may be exchanged for at most, if that is to save enough.
pub(super) fn less_the_trouble(world: &World, worth: Micros) -> f64 {
    float(worth) * (1.0 - f64::from(world.settings.disruption.reshape_permille) / 1000.0)
}

/// Prices are far from what a float holds exactly.
pub(super) fn float(price: Micros) -> f64 {
    price.0 as f64
}

/// By how much of its price a node costs more than its pods are worth; `None` when it does not.
fn excess((candidate, value): (&Candidate, f64)) -> Option<(f64, &Candidate)> {
    let price = float(candidate.price);
    (price > value && price > 0.0).then(|| ((price - value) / price, candidate))
}

/// One candidate of each pool after the other.
pub(super) fn interleaved<'a>(all: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut by_pool: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
    all.iter().for_each(|c| by_pool.entry(&c.pool).or_default().push(c));
    let longest = by_pool.values().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| by_pool.values().filter_map(move |of| of.get(turn).copied()).collect::<Vec<_>>()).collect()
}
