//! What a ScoringPolicy says of itself: which module serves, what that says, and how its calls went.
//!
//! What must not enter: requests, modules.

use serde_json::{Value, json};
use whittle_model::Timestamp;

use super::conditions::{Conditions, READY, Standing};
use super::patch::{Fields, ObjectPatch};
use crate::api;

/// How a policy's module stands.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyFound {
    /// `None` when it serves; otherwise the reason in one word, and in words.
    pub not_ready: Option<(String, String)>,
    /// `sha256:` and the hash of the module that serves; empty when none does.
    pub digest: String,
    /// What the module says of itself.
    pub manifest: Option<Value>,
    /// How its calls went.
    pub counts: PolicyCounts,
}

/// How the calls of a policy went, since the controller started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyCounts {
    /// How often it was called.
    pub calls: i64,
    /// Fuel its calls used.
    pub fuel: i64,
    /// How often it failed.
    pub failures: i64,
    /// How often it would have decided otherwise, when it is only observed.
    pub disagreement: i64,
}

/// What has to change in a ScoringPolicy; `None` when nothing has.
#[must_use]
pub fn scoring_policy_patch(live: &api::ScoringPolicy, found: &PolicyFound, now: Timestamp) -> Option<ObjectPatch> {
    let was = live.status.clone().unwrap_or_default();
    let mut status = Fields::default();
    status.text("digest", &found.digest, was.digest.as_ref());
    if let Some(manifest) = found.manifest.as_ref().filter(|manifest| was.manifest.as_ref() != Some(*manifest)) {
        status.set("manifest", manifest.clone());
    }
    let counts = found.counts;
    for (key, count, have) in [
        ("calls", counts.calls, was.calls),
        ("fuel", counts.fuel, was.fuel),
        ("failures", counts.failures, was.failures),
        ("disagreement", counts.disagreement, was.disagreement),
    ] {
        if have.unwrap_or(0) != count {
            status.set(key, json!(count));
        }
    }
    let meta = &live.metadata;
    let mut conditions = Conditions::new(was.conditions.as_ref(), meta.generation, meta.creation_timestamp.as_ref(), now);
    let ready = match &found.not_ready {
        None => Standing::holds(READY),
        Some((reason, message)) => Standing::fails(READY, reason, message),
    };
    conditions.set(&ready, None);
    if let Some(changed) = conditions.changed(was.conditions.as_ref()) {
        status.set("conditions", json!(changed));
    }
    ObjectPatch { object: None, status: status.under("status") }.unless_empty()
}
