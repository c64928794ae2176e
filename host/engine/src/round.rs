//! One round of the engine: what it may change, and what it says.

use whittle_model::{Action, Timestamp};

use crate::ledger::{Ledger, Order};
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
    /// Whether an order that serves a claim may be given now; if so it counts as given.
    pub(crate) fn admit(&mut self, claim: &str, order: Order, object: &str) -> bool {
        self.ledger.admit(claim, order, object, self.now)
    }

    /// Orders something. What is known of a claim is written once for steps that follow each other.
    pub(crate) fn act(&mut self, action: Action) {
        if let Action::UpdateClaim { claim, .. } = &action {
            let recent = self.actions.len().saturating_sub(2);
            let same = |earlier: &Action| matches!(earlier, Action::UpdateClaim { claim: other, .. } if other == claim);
            if let Some(at) = self.actions[recent..].iter().position(same) {
                self.actions.remove(recent + at);
            }
        }
        self.actions.push(action);
    }

    /// Says what happened to a claim.
    pub(crate) fn step(&mut self, claim: &str, what: ClaimStep) {
        self.report.steps.push(Step::Claim { claim: claim.to_owned(), what });
    }
}
