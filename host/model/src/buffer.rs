//! Capacity buffers: room that is kept free for pods to come.

use serde::{Deserialize, Serialize};

use crate::{Pod, PodKey};

/// A CapacityBuffer whose template and size are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityBuffer {
    /// Namespace and name.
    pub key: PodKey,
    /// What one pod of it would ask for.
    pub template: Pod,
    /// How many such pods there is to be room for.
    pub count: u32,
}

impl CapacityBuffer {
    /// How many pods to keep room for, as Karpenter counts: the larger of `replicas` and of `percentage` of what the
    /// buffer is for (its `scale`), rounded up; no more than `most`, which limits leave, and as much as that
    /// when there is neither.
    #[must_use]
    pub fn size(replicas: Option<u32>, percentage: Option<u32>, scale: u32, most: Option<u32>) -> u32 {
        let share = percentage.map_or(0, |percent| u64::from(percent).saturating_mul(u64::from(scale)).div_ceil(100));
        let wanted = replicas.unwrap_or(0).max(u32::try_from(share).unwrap_or(u32::MAX));
        let wanted = if replicas.is_none() && percentage.is_none() { most.unwrap_or(0) } else { wanted };
        most.map_or(wanted, |most| wanted.min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_number_and_share_within_limits() {
        for (replicas, percentage, scale, most, size) in [
            (Some(3), None, 0, None, 3),
            (None, Some(10), 25, None, 3),
            (None, Some(1), 5, None, 1),
            (None, Some(10), 0, None, 0),
            (None, Some(0), 5, None, 0),
            (Some(2), Some(50), 10, None, 5),
            (Some(9), Some(50), 10, Some(4), 4),
            (None, None, 0, Some(6), 6),
            (None, None, 0, None, 0),
            (None, Some(u32::MAX), u32::MAX, None, u32::MAX),
        ] {
            assert_eq!(
                CapacityBuffer::size(replicas, percentage, scale, most),
                size,
                "{replicas:?} {percentage:?} of {scale} within {most:?}"
            );
        }
    }
}
