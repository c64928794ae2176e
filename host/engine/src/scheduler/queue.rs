//! The order in which waiting pods are scheduled.

use std::cmp::Reverse;

use whittle_model::{Pod, Timestamp};

/// Sorts waiting pods, each with the time it entered the queue, as the plugin PrioritySort does:
/// higher priority first, then who entered first. What is equal in both goes by creation, then by
/// name.
pub fn queue_order(waiting: &mut [(&Pod, Timestamp)]) {
    waiting.sort_by(|(a, a_entered), (b, b_entered)| {
        let rank = |pod: &Pod, entered: Timestamp| (Reverse(pod.priority), entered, pod.created);
        rank(a, *a_entered).cmp(&rank(b, *b_entered)).then_with(|| a.key.cmp(&b.key))
    });
}
