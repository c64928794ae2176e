//! Why nodes go of their own will.

use serde::{Deserialize, Serialize};
use whittle_model::policy::MoveKind;

/// Why a node goes, as budgets, conditions and reports name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Reason {
    /// It has no pods that would have to move.
    Empty,
    /// Its pods fit elsewhere for less.
    Underutilized,
    /// It is no longer what its pool or class asks for.
    Drifted,
}

impl Reason {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Empty, Self::Underutilized, Self::Drifted];

    /// Its name in budgets and conditions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Underutilized => "Underutilized",
            Self::Drifted => "Drifted",
        }
    }

    /// The kind of move, for policies.
    pub(crate) const fn kind(self) -> MoveKind {
        match self {
            Self::Empty => MoveKind::Empty,
            Self::Underutilized => MoveKind::Underutilized,
            Self::Drifted => MoveKind::Drifted,
        }
    }
}
