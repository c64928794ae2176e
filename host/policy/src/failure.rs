//! How a policy can fail in a round, each way by its name. What must not enter: what is done about it.

use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::limits::Beyond;

/// A call into a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Making the instance; start functions run.
    Start,
    /// `manifest`.
    Manifest,
    /// `configure`.
    Configure,
    /// `open`.
    Open,
    /// `price-candidates`.
    PriceCandidates,
    /// `score-moves`.
    ScoreMoves,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Manifest => "manifest",
            Self::Configure => "configure",
            Self::Open => "open",
            Self::PriceCandidates => "price-candidates",
            Self::ScoreMoves => "score-moves",
        })
    }
}

/// A policy could not answer. Its answers of this plan are discarded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It used up its fuel.
    #[error("{call} ran out of fuel after {fuel}: an endless loop, or more work than limits.fuel allows")]
    OutOfFuel {
        /// During which call.
        call: Call,
        /// What it had.
        fuel: u64,
    },
    /// It asked for more memory than it is granted.
    #[error("{call} asked for {wanted} bytes of memory, limits.memory is {limit}")]
    Memory {
        /// During which call.
        call: Call,
        /// Bytes.
        wanted: u64,
        /// Bytes.
        limit: u64,
    },
    /// It asked for a larger table than any policy is granted.
    #[error("{call} asked for a table of {wanted} elements")]
    Table {
        /// During which call.
        call: Call,
        /// Elements.
        wanted: u64,
    },
    /// It recursed too deeply.
    #[error("{call} overflowed its stack: recursion too deep")]
    StackOverflow {
        /// During which call.
        call: Call,
    },
    /// It trapped: a panic, a division by zero, an access outside its memory.
    #[error("{call} trapped: {what}")]
    Trap {
        /// During which call.
        call: Call,
        /// Which trap.
        what: String,
    },
    /// Its answer could not be read.
    #[error("{call} answered what cannot be read: {what}")]
    Unreadable {
        /// During which call.
        call: Call,
        /// Why.
        what: String,
    },
    /// More instances are alive than there is room for.
    #[error("{call} found no room for another instance: too many chains at once")]
    NoRoom {
        /// During which call.
        call: Call,
    },
    /// It refuses a configuration that it took before.
    #[error("configure refused the configuration it had taken: {0}")]
    Refused(String),
    /// It asks for something else than when it was configured first.
    #[error("configure asked for something else than the first time: it is no pure function")]
    Changed,
    /// It answered another number of values than it was asked for.
    #[error("{call} answered {found} values, {rows} rows of {columns} columns were asked for")]
    WrongSize {
        /// During which call.
        call: Call,
        /// Rows it was given.
        rows: usize,
        /// Columns it declared.
        columns: usize,
        /// As answered.
        found: usize,
    },
    /// It answered a value that cannot be meant.
    #[error("{call} answered {value} for {column} of row {row}, which is absurd: 0 to 10^12 is allowed")]
    Absurd {
        /// During which call.
        call: Call,
        /// The answered column.
        column: String,
        /// The row.
        row: usize,
        /// The value.
        value: i64,
    },
    /// It vetoed for a reason it did not declare.
    #[error("{call} vetoed row {row} for reason {reason}, {known} are declared")]
    UnknownReason {
        /// During which call.
        call: Call,
        /// The row.
        row: usize,
        /// The reason.
        reason: u64,
        /// How many there are.
        known: usize,
    },
}

impl Failure {
    /// A short name for metrics and records: `out-of-fuel`, `trap`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OutOfFuel { .. } => "out-of-fuel",
            Self::Memory { .. } => "memory",
            Self::Table { .. } => "table",
            Self::StackOverflow { .. } => "stack-overflow",
            Self::Trap { .. } => "trap",
            Self::Unreadable { .. } => "unreadable",
            Self::NoRoom { .. } => "no-room",
            Self::Refused(_) => "refused",
            Self::Changed => "changed",
            Self::WrongSize { .. } => "wrong-size",
            Self::Absurd { .. } => "absurd",
            Self::UnknownReason { .. } => "unknown-reason",
        }
    }

    /// What ended a call, by the error wasmtime gave; `fuel` and `limit` are what the call had.
    pub(crate) fn of(call: Call, error: &wasmtime::Error, fuel: u64, limit: u64) -> Self {
        match error.downcast_ref::<Beyond>() {
            Some(Beyond::Memory(wanted)) => return Self::Memory { call, wanted: *wanted, limit },
            Some(Beyond::Table(wanted)) => return Self::Table { call, wanted: *wanted },
            None => {}
        }
        if error.is::<PoolConcurrencyLimitError>() {
            return Self::NoRoom { call };
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => Self::OutOfFuel { call, fuel },
            Some(Trap::StackOverflow) => Self::StackOverflow { call },
            Some(trap) => Self::Trap { call, what: trap.to_string() },
            None => Self::Unreadable { call, what: format!("{error:#}") },
        }
    }
}
