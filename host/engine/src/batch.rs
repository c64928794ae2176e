//! The batch window: planning waits until pods stop arriving, but not for ever.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, PodKey, Settings, Timestamp};

/// As Karpenter looks at a pending pod again: by then kube-scheduler has had its chance.
const DOUBT_AFTER: Duration = Duration::seconds(10);

/// A window that opens with the first reason to plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Batch {
    open: Option<(Timestamp, Timestamp)>,
    uids: BTreeSet<String>,
    /// Pods with room on a node in use that kube-scheduler has not bound.
    doubted: BTreeSet<PodKey>,
    /// When they are planned for again.
    again: Option<Timestamp>,
    /// When policies are asked again that left pods without a place.
    #[serde(default)]
    judged: Option<Timestamp>,
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

    /// Pods have room on a node in use. If they are not bound soon, others have taken it.
    pub(crate) fn doubt(&mut self, pods: impl Iterator<Item = PodKey>, now: Timestamp) {
        self.doubted.extend(pods);
        if !self.doubted.is_empty() && self.again.is_none() {
            self.again = Some(now.plus(DOUBT_AFTER));
        }
    }

    /// Policies left pods without a place: they are asked again then, unless something happens before.
    pub(crate) fn ask_again(&mut self, at: Option<Timestamp>) {
        self.judged = at;
    }

    /// When policies are asked again although nothing happened.
    pub(crate) const fn asked_again(&self) -> Option<Timestamp> {
        self.judged
    }

    /// A pod is bound or gone.
    pub(crate) fn trust(&mut self, pod: &PodKey) {
        if self.doubted.remove(pod) && self.doubted.is_empty() {
            self.again = None;
        }
    }

    /// When the next plan is due.
    pub(crate) fn closes(&self, settings: &Settings) -> Option<Timestamp> {
        let window = self.open.map(|(first, last)| last.plus(settings.batch_idle).min(first.plus(settings.batch_max)));
        window.into_iter().chain(self.again).min()
    }

    /// Shuts the window if it is time; true when a plan is due.
    pub(crate) fn shut(&mut self, settings: &Settings, now: Timestamp) -> bool {
        let due = self.closes(settings).into_iter().chain(self.judged).any(|at| at <= now);
        if due {
            self.open = None;
            self.uids.clear();
            self.again = None;
            self.judged = None;
            self.doubted.clear();
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

    #[test]
    fn policies_that_leave_pods_out_are_asked_again() {
        let settings = Settings::default();
        let mut batch = Batch::default();
        batch.ask_again(Some(Timestamp(60_000)));
        assert_eq!((batch.closes(&settings), batch.asked_again()), (None, Some(Timestamp(60_000))));
        assert!(!batch.shut(&settings, Timestamp(59_999)) && batch.shut(&settings, Timestamp(60_000)));
        assert_eq!(batch, Batch::default());
    }

    #[test]
    fn pods_that_are_not_bound_where_they_have_room_are_planned_again_after_ten_seconds() {
        let settings = Settings::default();
        let pods = ["a", "b"].map(|name| PodKey::new("default", name));
        let mut batch = Batch::default();
        batch.doubt(pods.iter().cloned(), Timestamp(0));
        batch.doubt(pods.iter().cloned(), Timestamp(5000));
        batch.trust(&pods[0]);
        assert_eq!(batch.closes(&settings), Some(Timestamp(10_000)));
        assert!(!batch.shut(&settings, Timestamp(9_999)));
        assert!(batch.shut(&settings, Timestamp(10_000)));
        assert_eq!(batch, Batch::default());
        batch.doubt(pods.iter().cloned(), Timestamp(20_000));
        pods.iter().for_each(|pod| batch.trust(pod));
        assert_eq!(batch, Batch::default(), "all are bound");
    }
}
