//! When the first lists of all kinds are in, and what is waited for until then.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How often it is said what is waited for: often enough to be found in a short log, rare enough not to fill it.
const COMPLAINT: Duration = Duration::from_secs(60);

/// The kinds whose first list is not in yet, with the last trouble of each.
pub(super) struct Gate {
    waiting: Mutex<BTreeMap<&'static str, String>>,
}

impl Gate {
    pub fn new(kinds: impl Iterator<Item = &'static str>) -> Self {
        Self { waiting: Mutex::new(kinds.map(|kind| (kind, "no answer yet".to_owned())).collect()) }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why a kind is not in, if it is waited for.
    pub fn note(&self, kind: &str, why: &str) {
        if let Some(said) = self.waiting().get_mut(kind) {
            why.clone_into(said);
        }
    }

    /// A kind is in. True when it was the last one.
    pub fn pass(&self, kind: &str) -> bool {
        let mut waiting = self.waiting();
        waiting.remove(kind).is_some() && waiting.is_empty()
    }

    /// Says each minute what is waited for; never ends.
    pub async fn complain(&self) {
        loop {
            tokio::time::sleep(COMPLAINT).await;
            for (kind, why) in self.waiting().iter() {
                tracing::error!(kind, why, "nothing is planned yet: the first list of this kind is not in");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_kind_opens_the_gate_once() {
        let gate = Gate::new(["Pod", "Node"].into_iter());
        assert!(!gate.pass("Pod") && !gate.pass("Pod"));
        assert!(gate.pass("Node"));
        assert!(!gate.pass("Node"));
    }
}
