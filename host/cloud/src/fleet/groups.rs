//! What is remembered of launch groups: which call comes next, and which instances have an owner.
//!
//! What must not enter: calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use whittle_model::{Duration, Timestamp};

/// Claims are given up long before this.
const REMEMBERED: Duration = Duration::minutes(60);

/// A launch group. Its lock is held while anything is bought for it.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Counts the calls that were answered: a part of the client token.
    pub(crate) attempt: u32,
    /// Provider ids that were given to a claim.
    pub(crate) dealt: BTreeSet<String>,
}

/// The launch groups of the last hour.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Mutex<BTreeMap<String, (Timestamp, Shared)>>,
}

/// Locked across calls.
type Shared = Arc<tokio::sync::Mutex<Group>>;

impl Groups {
    pub(crate) fn of(&self, name: &str, now: Timestamp) -> Shared {
        // Whoever panicked left whole groups behind.
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|_, (used, group)| now.since(*used) < REMEMBERED || Arc::strong_count(group) > 1);
        let (used, group) = groups.entry(name.to_owned()).or_default();
        *used = now.max(*used);
        group.clone()
    }
}
