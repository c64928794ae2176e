//! What a run costs besides money: pods put off their nodes, and pods that wait for one. Kept as it happens.

use std::collections::BTreeMap;

use whittle_model::{PodKey, Timestamp};

/// The toll so far.
#[derive(Debug, Default)]
pub(crate) struct Toll {
    /// Pods that the engine had go from their node.
    pub(crate) evictions: u64,
    /// Pods without a node, since when.
    since: BTreeMap<PodKey, Timestamp>,
    /// Milliseconds that pods waited which wait no more.
    waited: i64,
}

impl Toll {
    /// A pod is there and has no node.
    pub(super) fn waits(&mut self, pod: &PodKey, now: Timestamp) {
        self.since.entry(pod.clone()).or_insert(now);
    }

    /// A pod has a node, or is gone.
    pub(super) fn waits_no_more(&mut self, pod: &PodKey, now: Timestamp) {
        if let Some(since) = self.since.remove(pod) {
            self.waited += now.since(since).0;
        }
    }

    /// How long pods have waited in all, in milliseconds.
    pub(crate) fn waited(&self, now: Timestamp) -> i64 {
        self.waited + self.since.values().map(|since| now.since(*since).0).sum::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once_for_each_pod() {
        let (mut toll, pod) = (Toll::default(), |name: &str| PodKey::new("default", name));
        toll.waits(&pod("a"), Timestamp(1_000));
        toll.waits(&pod("a"), Timestamp(2_000));
        toll.waits(&pod("b"), Timestamp(2_000));
        assert_eq!(toll.waited(Timestamp(3_000)), 3_000);
        toll.waits_no_more(&pod("a"), Timestamp(4_000));
        toll.waits_no_more(&pod("a"), Timestamp(9_000));
        assert_eq!(toll.waited(Timestamp(5_000)), 6_000);
    }
}
