//! The port through which prices and moves are judged. The native default takes prices as they
//! are listed; WebAssembly policies answer through the same port.

use crate::{Micros, OfferingKey, PodKey};

/// One offering to be priced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The pool that would own the node.
    pub node_pool: &'a str,
    /// What would be bought.
    pub offering: OfferingKey,
    /// List price of an hour; for spot today's price.
    pub list: Micros,
}

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
    /// It must not be bought, for the reason of this index.
    Vetoed(u32),
}

/// One move that would change the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// `empty`, and with later versions `underutilized`, `drifted`, `expired`, `rebalance`.
    pub kind: &'static str,
    /// The nodes that would go.
    pub nodes: Vec<String>,
    /// The pods that would have to move.
    pub pods: Vec<PodKey>,
    /// What it saves of the bill, an hour.
    pub savings: Micros,
}

/// What a move is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveVerdict {
    /// Higher goes first.
    Score(i64),
    /// It must not be made, for the reason of this index.
    Vetoed(u32),
}

/// A scorer that could not answer. Its answers are discarded and the plan is made without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scoring policy {policy} failed: {why}")]
pub struct ScorerFailure {
    /// The policy's name.
    pub policy: String,
    /// What went wrong.
    pub why: String,
}

/// Judges candidates and moves, in whole batches. A pure function of what it is given.
pub trait Scorer {
    /// Prices every candidate, in order.
    ///
    /// # Errors
    /// When the scorer cannot answer; the caller goes on without it.
    fn price_candidates(&mut self, candidates: &[Candidate<'_>]) -> Result<Vec<Verdict>, ScorerFailure>;

    /// Scores every move, in order.
    ///
    /// # Errors
    /// When the scorer cannot answer; the caller goes on without it.
    fn score_moves(&mut self, moves: &[Move]) -> Result<Vec<MoveVerdict>, ScorerFailure>;

    /// The text of a veto's reason.
    fn reason(&self, index: u32) -> String;
}

/// The native default: rank and cost are the list price, and the move that saves most goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListPrice;

impl Scorer for ListPrice {
    fn price_candidates(&mut self, candidates: &[Candidate<'_>]) -> Result<Vec<Verdict>, ScorerFailure> {
        Ok(candidates.iter().map(|c| Verdict::Priced { rank: c.list, cost: c.list }).collect())
    }

    fn score_moves(&mut self, moves: &[Move]) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        Ok(moves.iter().map(|m| MoveVerdict::Score(m.savings.0)).collect())
    }

    fn reason(&self, _index: u32) -> String {
        String::new()
    }
}
