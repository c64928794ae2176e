//! The nouns of scoring policies: tables of integers, their words, and what a policy asks for. What
//! must not enter: WebAssembly, and any decision about what is bought or moved.

mod column;
mod columns;
mod table;
mod wants;

pub use column::{Column, Kind};
pub use columns::{
    AskerColumn, CandidateColumn, MixRowColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, PriceColumn, RoundColumn,
    ScoreColumn,
};
pub use table::{Judging, Pricing, RoundFacts, Table, Words};
pub use wants::{Hook, JudgingWants, MoveKind, PricingWants, Setup, UnknownColumn, Wants};
