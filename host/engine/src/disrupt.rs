//! Moves of nodes by our own will: empty ones go, drifted ones are exchanged, and those whose pods run cheaper elsewhere.
//! Candidates, budgets, the search, the second look before a move is begun, and the moves under way.
//!
//! What must not enter: how a claim that is deleted goes (`removal`), forced removals, which ask nobody.

mod balanced;
mod budgets;
mod candidates;
pub(crate) mod churn;
mod commands;
mod cron;
mod drift;
mod exact;
mod exchanges;
mod fences;
mod hypothesis;
mod look;
pub(crate) mod moves;
mod one_by_one;
mod payback;
pub(crate) mod reason;
mod rest;
mod search;
mod soak;
mod standing;
pub(crate) mod weights;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{Action, Duration, Event, NodeClaim, Outcome, Scorer, Timestamp, keys};

use crate::ledger::Order;
use crate::lifecycle;
use crate::report::{MoveStage, Step};
use crate::round::Round;
use crate::world::World;
use churn::Churn;
use commands::{Command, Standing};
use look::{Look, Said};
use moves::Move;
use reason::Reason;
use rest::Rests;
use soak::Soak;

/// How long a node whose move was vetoed or did not hold rests: verdicts change with the hour, not with the second.
const DECLINED_FOR: Duration = Duration::minutes(1);

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
    /// When it is to be said of nodes that they may go, which is put off while others are on their way.
    unsaid: Option<Timestamp>,
    /// Claims whose nodes every look found empty, and since when: once that is long enough for a second look, they need
    /// not wait for it again when a budget lets them go.
    empty: BTreeMap<String, Timestamp>,
    /// Claims whose move was declined, and until when they rest.
    declined: BTreeMap<String, Timestamp>,
    /// Claims for which policies did not want advice followed, and until when they are not asked again.
    #[serde(default)]
    let_be: BTreeMap<Reason, BTreeMap<String, Timestamp>>,
    /// Pools whose moves failed.
    rests: Rests,
    /// Who was moved lately, and off what.
    churn: Churn,
    /// What changed its mind lately.
    soak: Soak,
    /// What was said last of a claim or pool that stays.
    told: BTreeMap<String, String>,
}

impl Disrupt {
    /// Notes that something happened, before `world` knows of it.
    pub(crate) fn note(&mut self, world: &World, event: &Event, now: Timestamp) {
        self.changed |= !matches!(event, Event::Synced | Event::Instances(_));
        self.soak.note(world, event, now);
        self.recall(world, event, now);
        if let Event::ClaimGone(name) = event {
            self.declined.remove(name);
            self.told.remove(name);
            Reason::ADVICE.iter().for_each(|reason| drop(self.told.remove(&advice_on(name, *reason))));
            self.churn.forget(name);
        }
        if let Event::Outcome(outcome) = event
            && let Outcome::Launched(bought) = &**outcome
            && let Some(claim) = world.claims.get(&bought.claim)
            && !self.churn.knows(&bought.claim)
            && claim.status.launched.is_none()
            && self.churn.regretted(&claim.node_pool, &bought.instance_type, now)
        {
            self.rests.failed(std::slice::from_ref(&claim.node_pool), now);
        }
    }

    /// Takes up what an earlier life noted on claims.
    fn recall(&mut self, world: &World, event: &Event, now: Timestamp) {
        if let Event::Claim(claim) = event {
            self.churn.recall(claim);
        }
        let others = || world.claims.values().any(|claim| claim.status.launched.is_some());
        if matches!(event, Event::Synced) && !world.synced && !world.settings.disruption.one_by_one && others() {
            let recent = now.plus(Duration(-world.settings.disruption.soak.0));
            self.soak.take_over(self.churn.since(recent), now);
        }
    }

    /// Notes on claims that are made what a later life has to know of them: no write is made for it.
    pub(crate) fn sign(&self, world: &World, actions: &mut [Action], now: Timestamp) {
        let mut by: Option<String> = None;
        for action in actions {
            let Action::CreateClaim(claim) = action else { continue };
            let by = by.get_or_insert_with(|| self.soak.fingerprint(world)).clone();
            claim.annotations.insert(keys::JUDGED_BY.to_owned(), by);
            self.churn.note(claim, now);
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
        let sure = look.into_iter().chain(given_up).chain(rested).chain(self.unsaid).min().map(|at| (at, true));
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
        self.soak.hear(round.world, round.now);
        self.unsaid = standing::refresh(round);
        self.declined.retain(|_, until| *until > round.now);
        self.let_be.values_mut().for_each(|of| of.retain(|_, until| *until > round.now));
        let proposals = std::mem::take(&mut self.proposals);
        let begun = if proposals.is_empty() { self.look(round, scorer) } else { self.look_again(round, proposals, scorer) };
        // What was begun changes the world for what comes next.
        self.changed |= begun;
        if begun && round.world.settings.disruption.one_by_one {
            self.last = None; // As Karpenter: the next look follows at once.
        }
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

    /// Whether policies did not want advice followed when they were asked last, a moment ago.
    fn lets_be(&self, reason: Reason, claim: &str) -> bool {
        self.let_be.get(&reason).is_some_and(|of| of.contains_key(claim))
    }

    fn begin(&mut self, round: &mut Round<'_>, what: Move) {
        if what.reason == Reason::Rebalance {
            let left: Vec<_> = what.claims.iter().filter_map(|claim| round.world.claims.get(claim)?.status.offering()).collect();
            lifecycle::sold_out(round, &left);
        }
        let type_of = |claim: &String| round.world.claims.get(claim).map_or("", |claim| &claim.status.instance_type).to_owned();
        let old: Vec<(String, String)> = what.claims.iter().map(|claim| (claim.clone(), type_of(claim))).collect();
        if what.reason == Reason::Underutilized {
            self.soak.moved(old.len());
            let new: Vec<&str> = what.replacements.iter().map(|planned| planned.claim.name.as_str()).collect();
            if new.is_empty() {
                what.pools.iter().zip(&old).for_each(|(pool, (_, of))| self.churn.deleted(pool, of, round.now));
            }
            self.churn.exchanged(&old, &new, round.now);
        }
        self.commands.extend(commands::begin(round, what));
    }

    /// What an observer remembers of a look: nothing was begun.
    pub(crate) fn observed(self) -> Self {
        Self { commands: Vec::new(), ..self }
    }

    /// Looks for moves. Says whether any was begun.
    fn look(&mut self, round: &mut Round<'_>, scorer: &mut dyn Scorer) -> bool {
        (self.changed, self.last) = (false, Some(round.now));
        let mut look = Look::new(round.world, self, round.now);
        self.empty = look.still_empty(&self.empty);
        let one_by_one = round.world.settings.disruption.one_by_one;
        let mut found = if one_by_one { look.empty(self, scorer) } else { Vec::new() };
        let exchanged = if found.is_empty() { look.exchanges(self, scorer) } else { Vec::new() };
        if !exchanged.is_empty() {
            let Look { said, .. } = look;
            self.heard(round, said);
            exchanged.into_iter().for_each(|what| self.begin(round, what));
            return true;
        }
        if !one_by_one {
            found = look.empty(self, scorer);
            let saving = look.saving(self, &found, scorer);
            found.extend(saving);
        } else if found.is_empty() {
            found.extend(look.one(self, scorer));
        }
        look.explain(self);
        (self.rested, self.next) = (look.rested(), look.next(self));
        let Look { said, .. } = look;
        self.heard(round, said);
        for what in &found {
            round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::Found))));
        }
        if round.world.settings.disruption.validation == Duration(0) {
            return self.look_again(round, found, scorer);
        }
        let (proven, proposals): (Vec<Move>, Vec<Move>) = found.into_iter().partition(|what| !one_by_one && self.proven_empty(what, round));
        self.proposals = proposals;
        let any = !proven.is_empty();
        proven.into_iter().for_each(|what| self.begin(round, what));
        any
    }

    /// Whether looks as far apart as a look and its second found these nodes empty, this one among them.
    fn proven_empty(&self, what: &Move, round: &Round<'_>) -> bool {
        let since = |claim| self.empty.get(claim).is_some_and(|at| at.plus(round.world.settings.disruption.validation) <= round.now);
        what.reason == Reason::Empty && what.claims.iter().all(since)
    }

    fn heard(&mut self, round: &mut Round<'_>, said: Said) {
        round.report.steps.extend(said.steps);
        round.report.failures.extend(said.failures);
        self.empty.retain(|claim, _| !said.vetoed.contains_key(claim));
        for ((reason, claim), why) in said.let_be {
            let (key, of) = (advice_on(&claim, reason), self.let_be.entry(reason).or_default());
            of.insert(claim.clone(), round.now.plus(DECLINED_FOR));
            if let Some(why) = why.filter(|why| self.told.get(&key) != Some(why)) {
                self.told.insert(key, why.clone());
                round.report.steps.push(Step::Blocked { claim, why });
            }
        }
        self.declined.extend(said.vetoed.into_keys().map(|claim| (claim, round.now.plus(DECLINED_FOR))));
    }

    /// Begins the moves that still hold. Says whether any was.
    fn look_again(&mut self, round: &mut Round<'_>, proposals: Vec<Move>, scorer: &mut dyn Scorer) -> bool {
        (self.changed, self.last) = (true, Some(round.now));
        let mut look = Look::new(round.world, self, round.now);
        self.empty = look.still_empty(&self.empty);
        let (held, rejected) = look.again(proposals, self, scorer);
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

/// Under what it is noted why advice on a claim was not followed.
fn advice_on(claim: &str, reason: Reason) -> String {
    format!("{claim}/{}", reason.name())
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

/// Whether a node has joined for a claim and may be used.
fn in_use(claim: &NodeClaim) -> bool {
    claim.status.initialized.is_some() && !claim.deleting
}
