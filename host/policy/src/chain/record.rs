//! What a chain answers, and the record of what each judge changed. What must not enter: how it was
//! computed.

use std::sync::Arc;

use whittle_model::policy::Hook;

use crate::Failure;
use crate::chain::Mode;

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The answer.
    Answered(T),
    /// Nothing may be bought or moved, because a policy that must be asked cannot be.
    Held {
        /// The policy.
        policy: String,
        /// Why it cannot be asked.
        why: String,
    },
}

/// A row that must not be bought or moved, and by whose word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Veto {
    /// The row.
    pub row: usize,
    /// The policy.
    pub policy: Arc<str>,
    /// Why, with the row's values filled in. Rows with the same text share it.
    pub reason: Arc<str>,
}

/// What one judge did in one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The policy.
    pub policy: String,
    /// Whether its answers count.
    pub mode: Mode,
    /// Fuel of this call.
    pub fuel: u64,
    /// Hash of its answer as it was given.
    pub hash: u64,
    /// Ranks or scores after it; empty when it left them as they were.
    pub values: Vec<i64>,
    /// Costs after it; empty when it left them as they were.
    pub costs: Vec<i64>,
    /// Rows whose rank or score it changed.
    pub ranked: usize,
    /// Rows whose cost it changed.
    pub priced: usize,
    /// How many rows it vetoed.
    pub vetoed: usize,
    /// How it failed; only of those that are observed, a failure of others ends the round.
    pub failure: Option<Failure>,
}

/// Candidates after the chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Priced {
    /// Rank of each row; of a vetoed row the last before the veto.
    pub ranks: Vec<i64>,
    /// Cost of each row.
    pub costs: Vec<i64>,
    /// Vetoed rows, by row and then in the order of the chain.
    pub vetoes: Vec<Veto>,
    /// What each judge did.
    pub steps: Vec<Step>,
}

/// Moves after the chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scored {
    /// Score of each row.
    pub scores: Vec<i64>,
    /// Vetoed rows, by row and then in the order of the chain.
    pub vetoes: Vec<Veto>,
    /// What each judge did.
    pub steps: Vec<Step>,
}

impl Step {
    /// One line for a timeline: `price-book, price-candidates: changed rank or score of 12 rows, cost of 12, vetoed 0`.
    #[must_use]
    pub fn line(&self, hook: Hook) -> String {
        let observed = if self.mode == Mode::Observe { " (observed)" } else { "" };
        match &self.failure {
            Some(failure) => format!("{}{observed} failed: {failure}", self.policy),
            None => format!(
                "{}{observed}, {hook}: changed rank or score of {} rows, cost of {}, vetoed {}",
                self.policy, self.ranked, self.priced, self.vetoed
            ),
        }
    }
}
