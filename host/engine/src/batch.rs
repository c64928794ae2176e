//! The batch window: planning waits until pods stop arriving, but not for ever.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use whittle_model::{Settings, Timestamp};

/// A window that opens with the first reason to plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Batch {
    open: Option<(Timestamp, Timestamp)>,
    uids: BTreeSet<String>,
    /// Whether the last plan left pods without a place: then any new supply is a reason to plan.
    pub(crate) hungry: bool,
}

impl Batch {
    /// A pod wants a place. The same pod again does not lengthen the window.
    pub(crate) fn pod(&mut self, uid: &str, now: Timestamp) {
        if self.uids.insert(uid.to_owned()) {
            self.extend(now);
        }
    }

    /// Something else changed that a plan should see.
    pub(crate) fn change(&mut self, now: Timestamp) {
        if self.open.is_none() {
            self.extend(now);
        }
    }

    fn extend(&mut self, now: Timestamp) {
        self.open = Some((self.open.map_or(now, |(first, _)| first), now));
    }

    /// When the window closes.
    pub(crate) fn closes(&self, settings: &Settings) -> Option<Timestamp> {
        self.open.map(|(first, last)| last.plus(settings.batch_idle).min(first.plus(settings.batch_max)))
    }

    /// Shuts the window if it is time; true when a plan is due.
    pub(crate) fn shut(&mut self, settings: &Settings, now: Timestamp) -> bool {
        let due = self.closes(settings).is_some_and(|at| at <= now);
        if due {
            self.open = None;
            self.uids.clear();
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_closes_after_a_quiet_second_and_after_ten_at_the_latest() {
        let settings = Settings::default();
        let mut batch = Batch::default();
        batch.pod("a", Timestamp(0));
        assert_eq!(batch.closes(&settings), Some(Timestamp(1000)));
        batch.pod("b", Timestamp(900));
        assert_eq!(batch.closes(&settings), Some(Timestamp(1900)));
        batch.pod("b", Timestamp(1500));
        assert_eq!(batch.closes(&settings), Some(Timestamp(1900)), "a known pod does not lengthen the window");
        for n in 2..30 {
            batch.pod(&format!("pod-{n}"), Timestamp(n * 900));
        }
        assert_eq!(batch.closes(&settings), Some(Timestamp(10_000)));
        assert!(!batch.shut(&settings, Timestamp(9_999)));
        assert!(batch.shut(&settings, Timestamp(10_000)));
        assert_eq!(batch.closes(&settings), None);
    }
}
