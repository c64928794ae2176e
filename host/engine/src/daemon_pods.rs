//! Running pods of each DaemonSet: the newest shows what admission makes of its template.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{PodKey, Timestamp};

/// Pods by set: when they were made, and their names in its namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct DaemonPods(BTreeMap<PodKey, BTreeSet<(Timestamp, String)>>);

impl DaemonPods {
    /// Takes in a running pod of a set.
    pub(crate) fn insert(&mut self, set: PodKey, created: Timestamp, name: &str) {
        self.0.entry(set).or_default().insert((created, name.to_owned()));
    }

    /// Forgets a pod of a set.
    pub(crate) fn remove(&mut self, set: &PodKey, created: Timestamp, name: &str) {
        if let Some(running) = self.0.get_mut(set) {
            running.remove(&(created, name.to_owned()));
            if running.is_empty() {
                self.0.remove(set);
            }
        }
    }

    /// The newest running pod of a set.
    pub(crate) fn newest(&self, set: &PodKey) -> Option<PodKey> {
        let (_, name) = self.0.get(set)?.last()?;
        Some(PodKey::new(&set.namespace, name))
    }
}
