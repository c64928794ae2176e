//! Which policies were in force, as plain data. What must not enter: loading and asking them.

use serde::{Deserialize, Serialize};
use whittle_model::Timestamp;

/// All policies of a controller at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Policies {
    /// Names before every chain, divided by commas.
    pub required: String,
    /// The policies, in any order.
    pub policies: Vec<Policy>,
}

/// One policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Name of its ScoringPolicy.
    pub name: String,
    /// Whether its answers count.
    pub mode: PolicyMode,
    /// What happens to purchases without it.
    pub candidates: PolicyStance,
    /// What happens to moves without it.
    pub moves: PolicyStance,
    /// Whether it can be asked.
    pub standing: PolicyStanding,
    /// How often it failed in a row.
    pub failures: u32,
    /// Until when it rests after failures.
    pub rests_until: Option<Timestamp>,
}

/// Whether a policy can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PolicyStanding {
    /// It can.
    Ready {
        /// `sha256:` and the hash of its module, under which the module is kept.
        digest: String,
        /// Its configuration.
        config: serde_json::Value,
        /// Fuel for configuring and opening.
        fuel: u64,
        /// Bytes of memory.
        memory: u64,
    },
    /// It never became ready.
    Missing {
        /// Why.
        why: String,
    },
}

/// Whether a policy's answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyMode {
    /// They do.
    Enforce,
    /// They are recorded beside the real decision.
    Observe,
}

/// What happens without a policy that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyStance {
    /// The chain goes on without it.
    Ignore,
    /// What it would have judged is held back.
    Closed,
}

impl Policies {
    /// Digests of the modules that are needed.
    pub fn digests(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().filter_map(|policy| match &policy.standing {
            PolicyStanding::Ready { digest, .. } => Some(digest.as_str()),
            PolicyStanding::Missing { .. } => None,
        })
    }
}
