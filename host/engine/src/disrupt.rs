//! Moves of nodes by our own will: empty ones go, drifted ones are exchanged, and those whose pods run cheaper elsewhere.
//! Candidates, budgets, the search, the second look before a move is begun, and the moves under way.
//!
//! What must not enter: how a claim that is deleted goes (`removal`), forced removals, which ask nobody.

mod balanced;
mod budgets;
mod candidates;
mod commands;
mod cron;
mod drift;
mod exact;
mod fences;
mod hypothesis;
pub(crate) mod moves;
pub(crate) mod reason;
mod rest;
mod search;
mod standing;
pub(crate) mod weights;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::scorer::{MoveVerdict, ScorerFailure};
use whittle_model::{Duration, Event, NodeClaim, Scorer, Timestamp};

use crate::judging;
use crate::ledger::Order;
use crate::report::{MoveStage, Step};
use crate::round::Round;
use crate::world::World;
use budgets::Budgets;
use candidates::Candidate;
use commands::{Command, Standing};
use exact::Exact;
use fences::Fences;
use moves::Move;
use reason::Reason;
use rest::Rests;

/// How long a node whose move was vetoed or did not hold rests: verdicts change with the hour, not with the second.
const DECLINED_FOR: Duration = Duration::minutes(1);

/// So many drifted nodes are exchanged in one look at most; the others have their turn with the next.
const DRIFT_A_LOOK: usize = 25;

/// What is remembered between looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disrupt {
    /// Moves under way.
    commands: Vec<Command>,
    /// Moves that were found and are looked at again before they are begun.
    proposals: Vec<Move>,
    /// Whether anything happened since the last look.
    changed: bool,
    /// When the last look was.
    last: Option<Timestamp>,
    /// When the rest of a node is over, as `consolidateAfter` asks for.
    rested: Option<Timestamp>,
    /// When something else may be different although nothing happens.
    next: Option<Timestamp>,
    /// Claims whose move was declined, and until when they rest.
    declined: BTreeMap<String, Timestamp>,
    /// Pools whose moves failed.
    rests: Rests,
    /// What was said last of a claim or pool that stays.
    told: BTreeMap<String, String>,
}

impl Disrupt {
    /// Notes that something happened.
    pub(crate) fn note(&mut self, event: &Event) {
        self.changed |= !matches!(event, Event::Synced | Event::Instances(_));
        if let Event::ClaimGone(name) = event {
            self.declined.remove(name);
            self.told.remove(name);
        }
    }

    /// Claims that moves under way take away.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = &String> {
        self.commands.iter().flat_map(|command| &command.what.claims)
    }

    /// When to look again, at the earliest; and whether that is sure to matter.
    pub(crate) fn deadline(&self, world: &World) -> Option<(Timestamp, bool)> {
        let settings = &world.settings.disruption;
        let given_up = self.commands.iter().filter(|c| !c.what.replacements.is_empty()).map(Command::ends).min();
        let earliest = self.last.map_or(Timestamp(i64::MIN), |last| last.plus(settings.every));
        let look = match self.proposals.iter().map(|p| p.found.plus(settings.validation)).min() {
            Some(due) => Some(due),
            None if self.changed && !world.claims.is_empty() => Some(earliest),
            None => None,
        };
        let rested = self.rested.filter(|_| self.proposals.is_empty()).map(|at| at.max(earliest));
        let sure = look.into_iter().chain(given_up).chain(rested).min().map(|at| (at, true));
        let turn = self.next.filter(|_| self.proposals.is_empty()).map(|at| (at.max(earliest), false));
        [sure, turn].into_iter().flatten().min_by_key(|(at, sure)| (*at, !sure))
    }

    /// Takes moves under way further, looks for others when it is time, and begins those that hold.
    pub(crate) fn advance(&mut self, round: &mut Round<'_>, names: &BTreeSet<String>, scorer: &mut dyn Scorer) {
        think_over(round, &self.commands, names);
        commands::heal(round, &self.commands, names);
        self.proceed(round);
        let due = self.deadline(round.world).is_some_and(|(at, _)| at <= round.now);
        if !due {
            return;
        }
        standing::refresh(round);
        self.declined.retain(|_, until| *until > round.now);
        let proposals = std::mem::take(&mut self.proposals);
        let begun = if proposals.is_empty() { self.look(round, scorer) } else { self.look_again(round, proposals, scorer) };
        // What was begun changes the world for what comes next.
        self.changed |= begun;
        round.report.policies.extend(scorer.close());
    }

    /// Takes moves under way further.
    fn proceed(&mut self, round: &mut Round<'_>) {
        let mut waiting = Vec::new();
        for mut command in std::mem::take(&mut self.commands) {
            match commands::advance(round, &mut command) {
                Standing::Waits => waiting.push(command),
                Standing::Done => {
                    self.changed = true;
                    self.rests.worked(&command.what.pools);
                }
                Standing::Failed => {
                    self.changed = true;
                    self.rests.failed(&command.what.pools, round.now);
                }
            }
        }
        self.commands = waiting;
    }

    fn begin(&mut self, round: &mut Round<'_>, what: Move) {
        self.commands.extend(commands::begin(round, what));
    }

    /// What an observer remembers of a look: nothing was begun.
    pub(crate) fn observed(self) -> Self {
        Self { commands: Vec::new(), ..self }
    }

    /// Looks for moves. Says whether any was begun.
    fn look(&mut self, round: &mut Round<'_>, scorer: &mut dyn Scorer) -> bool {
        (self.changed, self.last) = (false, Some(round.now));
        let mut look = Look::new(round.world, round.now);
        let drifted = look.drifted(self, scorer);
        if !drifted.is_empty() {
            let Look { said, .. } = look;
            self.heard(round, said);
            drifted.into_iter().for_each(|what| self.begin(round, what));
            return true;
        }
        let mut found = look.empty(self, scorer);
        let saving = look.saving(self, &found, scorer);
        found.extend(saving);
        look.explain(self);
        (self.rested, self.next) = (look.rested(), look.next(self));
        let Look { said, .. } = look;
        self.heard(round, said);
        for what in &found {
            round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::Found))));
        }
        self.proposals = found;
        if round.world.settings.disruption.validation == Duration(0) {
            let proposals = std::mem::take(&mut self.proposals);
            return self.look_again(round, proposals, scorer);
        }
        false
    }

    fn heard(&mut self, round: &mut Round<'_>, said: Said) {
        round.report.steps.extend(said.steps);
        round.report.failures.extend(said.failures);
        self.declined.extend(said.vetoed.into_keys().map(|claim| (claim, round.now.plus(DECLINED_FOR))));
    }

    /// Begins the moves that still hold. Says whether any was.
    fn look_again(&mut self, round: &mut Round<'_>, proposals: Vec<Move>, scorer: &mut dyn Scorer) -> bool {
        (self.changed, self.last) = (true, Some(round.now));
        let mut look = Look::new(round.world, round.now);
        let (held, rejected) = look.again(proposals, scorer);
        let Look { said, .. } = look;
        self.heard(round, said);
        for (what, why) in rejected {
            for claim in &what.claims {
                self.declined.insert(claim.clone(), round.now.plus(DECLINED_FOR));
            }
            round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::Rejected(why)))));
        }
        let any = !held.is_empty();
        held.into_iter().for_each(|what| self.begin(round, what));
        any
    }
}

/// A removal that was ordered and lost is thought over again: the node may be in use by now.
fn think_over(round: &mut Round<'_>, commands: &[Command], names: &BTreeSet<String>) {
    for name in names {
        let lost = round.ledger.outstanding(name, Order::Delete, name) && !round.ledger.under_way(name, Order::Delete, name, round.now);
        let ours = commands.iter().any(|command| command.what.claims.contains(name));
        let alive = round.world.claims.get(name).is_some_and(|claim| !claim.deleting);
        if lost && alive && !ours && !round.ledger.condemned.contains_key(name) {
            round.world.leaving.remove(name);
            round.ledger.done(name, Order::Delete, name);
        }
    }
}

/// One look at the world.
struct Look<'w> {
    world: &'w World,
    now: Timestamp,
    candidates: Vec<Candidate>,
    budgets: Budgets,
    /// When the first protection of a pod is over.
    protected_until: Option<Timestamp>,
    said: Said,
}

/// What a look has to say.
#[derive(Default)]
struct Said {
    steps: Vec<Step>,
    failures: Vec<ScorerFailure>,
    /// Claims whose moves policies are against: they are asked again, but not at once.
    vetoed: BTreeMap<String, String>,
    /// Why other claims stay where they are.
    hints: BTreeMap<String, String>,
}

impl<'w> Look<'w> {
    fn new(world: &'w World, now: Timestamp) -> Self {
        let mut fences = Fences::new(world, now);
        let candidates = candidates::all(world, &mut fences, now);
        Self { world, now, candidates, budgets: Budgets::new(world, now), protected_until: fences.next, said: Said::default() }
    }

    fn by_claim(&self) -> BTreeMap<&str, &Candidate> {
        self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect()
    }

    /// Whether a node may go for a reason, budgets aside.
    fn eligible(&self, candidate: &Candidate, reason: Reason) -> bool {
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
        }
    }

    /// Moves of drifted nodes that can be begun now: those without pods first, then the longest drifted.
    fn drifted(&mut self, memory: &Disrupt, scorer: &mut dyn Scorer) -> Vec<Move> {
        let since = |c: &Candidate| self.world.claims.get(&c.claim).and_then(|claim| claim.status.drifted.as_ref()).map(|(_, at)| *at);
        let mut line: Vec<&Candidate> = self.candidates.iter().filter(|c| self.eligible(c, Reason::Drifted)).collect();
        line.retain(|c| !memory.declined.contains_key(&c.claim) && !memory.rests.rests(&c.pool, self.now));
        line.sort_by_key(|c| (!c.pods.is_empty(), since(c), c.claim.clone()));
        line.retain(|c| self.budgets.left(&c.pool, Reason::Drifted) > 0);
        line.truncate(DRIFT_A_LOOK);
        if line.is_empty() {
            return Vec::new();
        }
        let offered: Vec<Move> = line.iter().map(|c| Move::of(Reason::Drifted, &[c], self.now)).collect();
        let allowed = allowed(self.world, offered, scorer, self.now, &mut self.said);
        let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
        let closed = exact::unready(self.world);
        let mut exact = Exact::new(self.world, &by_claim, &closed, scorer, self.now);
        let mut begun = Vec::new();
        for (_, what) in allowed {
            if self.budgets.left(&what.pools[0], Reason::Drifted) == 0 {
                continue;
            }
            match exact.drift(what.clone()) {
                Ok(what) => {
                    self.budgets.take(&what.pools, Reason::Drifted);
                    begun.push(what);
                }
                Err(why) => self.said.steps.push(Step::Blocked { claim: what.claims[0].clone(), why }),
            }
        }
        begun
    }

    /// Nodes that are empty, within budgets, those first that save most.
    fn empty(&mut self, memory: &Disrupt, scorer: &mut dyn Scorer) -> Vec<Move> {
        let mut line: Vec<&Candidate> = self.candidates.iter().filter(|c| self.eligible(c, Reason::Empty)).collect();
        line.retain(|c| !memory.declined.contains_key(&c.claim));
        line.sort_by(|a, b| a.by_ratio(b));
        let offered: Vec<Move> = line.iter().map(|c| Move::of(Reason::Empty, &[c], self.now)).collect();
        let mut allowed = allowed(self.world, offered, scorer, self.now, &mut self.said);
        allowed.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        allowed.into_iter().map(|(_, what)| what).filter(|what| self.budgets.take(&what.pools, Reason::Empty)).collect()
    }

    /// Moves that save money, beside `others`.
    fn saving(&mut self, memory: &Disrupt, others: &[Move], scorer: &mut dyn Scorer) -> Vec<Move> {
        let taken: BTreeSet<&str> = others.iter().flat_map(|m| m.claims.iter().map(String::as_str)).collect();
        let totals = balanced::Totals::new(self.world);
        let line: Vec<Candidate> = self
            .candidates
            .iter()
            .filter(|c| self.eligible(c, Reason::Underutilized) && totals.could_pass(c))
            .filter(|c| !memory.declined.contains_key(&c.claim) && !memory.rests.rests(&c.pool, self.now))
            .cloned()
            .collect();
        if line.iter().all(|c| self.budgets.left(&c.pool, Reason::Underutilized) == 0) {
            return Vec::new();
        }
        let order = exact::destinations(self.world, &line, &taken, self.now);
        let found = match search::search(self.world, &line, &order, &self.budgets, scorer, self.now) {
            Ok((found, hints)) => {
                self.said.hints = hints;
                found
            }
            Err(failure) => {
                self.said.failures.push(failure);
                return Vec::new();
            }
        };
        let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
        let (found, unbalanced): (Vec<_>, Vec<_>) = found.into_iter().partition(|what| totals.objection(what, &by_claim).is_none());
        for what in unbalanced {
            let why = totals.objection(&what, &by_claim).unwrap_or_default();
            what.claims.into_iter().for_each(|claim| drop(self.said.hints.insert(claim, why.clone())));
        }
        let mut allowed = allowed(self.world, found, scorer, self.now, &mut self.said);
        allowed.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let budgets = &mut self.budgets;
        let found: Vec<Move> =
            allowed.into_iter().map(|(_, what)| what).filter(|what| budgets.take(&what.pools, Reason::Underutilized)).collect();
        if found.is_empty() {
            return found;
        }
        let closed = exact::shut(self.world, &taken, self.now);
        let mut exact = Exact::new(self.world, &by_claim, &closed, scorer, self.now);
        let (held, rejected) = exact.saving(found);
        for (what, why) in rejected {
            what.claims.into_iter().for_each(|claim| drop(self.said.hints.insert(claim, why.clone())));
        }
        held
    }

    /// The moves of an earlier look that still hold, and the others with what is against them.
    fn again(&mut self, proposals: Vec<Move>, scorer: &mut dyn Scorer) -> (Vec<Move>, Vec<(Move, String)>) {
        let (mut rejected, mut still) = (Vec::new(), Vec::new());
        let totals = balanced::Totals::new(self.world);
        for what in proposals {
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
        let allowed: Vec<Move> = allowed(self.world, still, scorer, self.now, &mut self.said).into_iter().map(|(_, what)| what).collect();
        let vetoed = before.into_iter().filter(|what| !allowed.contains(what));
        rejected.extend(vetoed.map(|what| (what, "policies are against it by now".to_owned())));
        let (mut held, saving): (Vec<Move>, Vec<Move>) = allowed.into_iter().partition(|what| what.reason == Reason::Empty);
        if !saving.is_empty() {
            let taken: BTreeSet<&str> = held.iter().flat_map(|m| m.claims.iter().map(String::as_str)).collect();
            let closed = exact::shut(self.world, &taken, self.now);
            let by_claim: BTreeMap<&str, &Candidate> = self.candidates.iter().map(|c| (c.claim.as_str(), c)).collect();
            let (fine, others) = Exact::new(self.world, &by_claim, &closed, scorer, self.now).saving(saving);
            held.extend(fine);
            rejected.extend(others);
        }
        (held, rejected)
    }

    /// Says why nodes stay that could go, once for each reason.
    fn explain(&mut self, memory: &mut Disrupt) {
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
    fn rested(&self) -> Option<Timestamp> {
        let pools = &self.world.pools;
        let ends = self.world.claims.values().filter_map(|c| candidates::consolidatable_at(pools.get(&c.node_pool)?, c));
        ends.filter(|at| *at > self.now).min()
    }

    /// When something else may be different although nothing happens.
    fn next(&self, memory: &Disrupt) -> Option<Timestamp> {
        let world = self.world;
        let turn = budgets::next_turn(world, self.now);
        let sold_out = world.sold_out.values().copied();
        let asked_again = (!self.said.vetoed.is_empty()).then(|| self.now.plus(DECLINED_FOR));
        let declined = memory.declined.values().copied().chain(memory.rests.next(self.now)).chain(asked_again);
        let all = turn.into_iter().chain(sold_out).chain(self.protected_until).chain(declined).chain(drift::next(world, self.now));
        all.filter(|at| *at > self.now).min()
    }
}

/// The moves that policies allow, with their scores.
fn allowed(world: &World, offered: Vec<Move>, scorer: &mut dyn Scorer, now: Timestamp, said: &mut Said) -> Vec<(i64, Move)> {
    if offered.is_empty() {
        return Vec::new();
    }
    let verdicts = judging::judge(world, &offered, scorer, now, &mut said.failures);
    let mut allowed = Vec::new();
    for (what, verdict) in offered.into_iter().zip(verdicts) {
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

/// Whether a node has joined for a claim and may be used.
fn in_use(claim: &NodeClaim) -> bool {
    claim.status.initialized.is_some() && !claim.deleting
}
