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
    /// Its time will soon be over, and policies want it exchanged before.
    Expired,
    /// EC2 advises to leave it, and policies want that followed.
    Rebalance,
}

impl Reason {
    /// Those that disruption budgets know.
    pub(crate) const BUDGETED: [Self; 3] = [Self::Empty, Self::Underutilized, Self::Drifted];
    /// Those for which a node goes only when policies ask for it, the most urgent first.
    pub(crate) const ADVICE: [Self; 2] = [Self::Rebalance, Self::Expired];

    /// Whether nothing but a policy asks for such a move: Karpenter makes none.
    pub(crate) const fn is_advice(self) -> bool {
        matches!(self, Self::Expired | Self::Rebalance)
    }

    /// The reason by which budgets know it: they cannot name advice, which is followed by an exchange like that of drift.
    pub(super) const fn budgeted(self) -> Self {
        match self {
            Self::Drifted | Self::Expired | Self::Rebalance => Self::Drifted,
            Self::Empty => Self::Empty,
            Self::Underutilized => Self::Underutilized,
        }
    }

    /// Its name in budgets and conditions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Underutilized => "Underutilized",
            Self::Drifted => "Drifted",
            Self::Expired => "Expired",
            Self::Rebalance => "Rebalance",
        }
    }

    /// The kind of move, for policies.
    pub(crate) const fn kind(self) -> MoveKind {
        match self {
            Self::Empty => MoveKind::Empty,
            Self::Underutilized => MoveKind::Underutilized,
            Self::Drifted => MoveKind::Drifted,
            Self::Expired => MoveKind::Expired,
            Self::Rebalance => MoveKind::Rebalance,
        }
    }
}
