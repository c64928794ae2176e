//! The port through which prices and moves are judged. The native default takes prices as they
//! are listed; WebAssembly policies answer through the same port, in whole tables.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::policy::{Judging, Pricing, RoundFacts, Wants, Words};
use crate::{Micros, Timestamp};

/// What a candidate is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Choice minimises `rank`; bills, budgets and bounds count `cost`. Both an hour.
    Priced {
        /// What choice minimises.
        rank: Micros,
        /// What the bill will say.
        cost: Micros,
    },
    /// It must not be bought; [`Scorer::reason`] tells why.
    Vetoed(u32),
}

/// What a move is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveVerdict {
    /// Higher goes first.
    Score(i64),
    /// It must not be made; [`Scorer::reason`] tells why.
    Vetoed(u32),
}

/// A chain that could not answer. What it answered before in the same round is discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("scoring policy {policy}: {why}")]
pub struct ScorerFailure {
    /// The policy's name.
    pub policy: String,
    /// The chain it stands in.
    pub chain: String,
    /// What went wrong.
    pub why: String,
    /// Whether its owner would rather have nothing bought or moved than go on without it. When not,
    /// the scorer has left it out by now, and the round is to be made again.
    pub closed: bool,
}

/// What a policy did in a round.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// The policy's name.
    pub policy: String,
    /// The chain it stood in.
    pub chain: String,
    /// How often it was called.
    pub calls: u64,
    /// How many rows it judged.
    pub rows: u64,
    /// What its calls used of their fuel; 0 when it runs natively.
    pub fuel: u64,
    /// A hash of all it answered.
    pub answers: u64,
    /// Rows whose rank it changed.
    pub ranked: u64,
    /// Rows whose cost it changed.
    pub priced: u64,
    /// Rows it vetoed, by reason.
    pub vetoes: Vec<(String, u64)>,
    /// What went wrong with it, if something did.
    pub failure: Option<String>,
}

/// Judges candidates and moves, chain by chain, in whole tables. A pure function of what it is
/// given. A chain is named by the text of a NodePool's annotation; empty when it has none.
pub trait Scorer {
    /// What the policies of a chain are to be given at `now`; `None` when list prices decide.
    ///
    /// # Errors
    /// When a policy of the chain cannot be asked and its owner said `Closed`.
    fn chain(&mut self, chain: &str, now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure>;

    /// Begins a round: time and facts of the cluster, columns as in [`Wants::round`].
    ///
    /// # Errors
    /// When a policy fails.
    fn open(&mut self, chain: &str, words: &Words, facts: &RoundFacts) -> Result<(), ScorerFailure>;

    /// Prices every row of table `candidates`, in order.
    ///
    /// # Errors
    /// When a policy fails.
    fn price(&mut self, chain: &str, words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure>;

    /// Scores every row of table `moves`, in order.
    ///
    /// # Errors
    /// When a policy fails.
    fn judge(&mut self, chain: &str, words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure>;

    /// The text of a veto's reason, naming the policy.
    fn reason(&self, number: u32) -> String;

    /// Ends the round and tells what each policy did in it.
    fn close(&mut self) -> Vec<PolicyRecord>;
}

/// The native default: no chain asks for anything, so rank and cost are the list price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListPrice;

impl Scorer for ListPrice {
    fn chain(&mut self, _chain: &str, _now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        Ok(None)
    }

    fn open(&mut self, _chain: &str, _words: &Words, _facts: &RoundFacts) -> Result<(), ScorerFailure> {
        Ok(())
    }

    fn price(&mut self, _chain: &str, _words: &Words, _tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        Ok(Vec::new())
    }

    fn judge(&mut self, _chain: &str, _words: &Words, _tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        Ok(Vec::new())
    }

    fn reason(&self, _number: u32) -> String {
        String::new()
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        Vec::new()
    }
}
