//! One round of the engine: what it may change, and what it says.

use whittle_model::{Action, Timestamp};

use crate::ledger::Ledger;
use crate::report::{ClaimStep, Report, Step};
use crate::world::World;

/// The state of a round under way.
pub(crate) struct Round<'e> {
    pub(crate) world: &'e mut World,
    pub(crate) ledger: &'e mut Ledger,
    pub(crate) now: Timestamp,
    pub(crate) actions: &'e mut Vec<Action>,
    pub(crate) report: &'e mut Report,
}

impl Round<'_> {
    /// Orders something.
    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Says what happened to a claim.
    pub(crate) fn step(&mut self, claim: &str, what: ClaimStep) {
        self.report.steps.push(Step::Claim { claim: claim.to_owned(), what });
    }
}
