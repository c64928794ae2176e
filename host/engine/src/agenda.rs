//! Which claims need a look: those that something happened to, and those whose time has come. A
//! claim that neither concerns costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::Timestamp;

/// When to poll again, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: Timer,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A batch window closes.
    Batch,
    /// An order without effect is given again.
    Retry,
    /// A launch, registration or initialization is overdue.
    Overdue,
    /// A drain goes on, or its time is over.
    Drain,
    /// A move of nodes is looked for, looked at again or given up.
    Move,
    /// A node expires, or stays unhealthy for too long.
    End,
    /// A sold-out offering may be asked for again, and pods are waiting.
    SoldOut,
    /// A move of nodes may be allowed that was not, though nothing happened: a window of a budget, the end of a rest.
    Turn,
    /// A static pool has fewer nodes than it keeps.
    Replicas,
}

/// Times by claim, the earliest first; one for each claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agenda {
    entries: BTreeSet<(Timestamp, Timer, String)>,
    of: BTreeMap<String, (Timestamp, Timer)>,
}

impl Agenda {
    /// Sets or clears when a claim must be looked at next.
    pub(crate) fn set(&mut self, claim: &str, when: Option<(Timestamp, Timer)>) {
        if self.of.get(claim) == when.as_ref() {
            return;
        }
        if let Some((at, why)) = self.of.remove(claim) {
            self.entries.remove(&(at, why, claim.to_owned()));
        }
        if let Some((at, why)) = when {
            self.of.insert(claim.to_owned(), (at, why));
            self.entries.insert((at, why, claim.to_owned()));
        }
    }

    /// Forgets claims that are not kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.entries.retain(|(_, _, claim)| keep(claim));
        self.of.retain(|claim, _| keep(claim));
    }

    /// The earliest entry.
    pub(crate) fn next(&self) -> Option<(Timestamp, Timer)> {
        self.entries.first().map(|(at, why, _)| (*at, *why))
    }

    /// Claims whose time has come.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.entries.iter().take_while(move |(at, _, _)| *at <= now).map(|(_, _, claim)| claim.as_str())
    }
}
