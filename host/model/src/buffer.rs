//! Capacity buffers: room that is kept free for pods to come.

use serde::{Deserialize, Serialize};

use crate::resources::PODS;
use crate::{Pod, PodKey};

/// So many pods one buffer stands for at most: each is planned for like any other, and a slip of the pen must not buy a
/// data centre.
pub const MOST: u32 = 10_000;

/// A CapacityBuffer as it is written, before anybody has looked at what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferSpec {
    /// Namespace and name.
    pub key: PodKey,
    /// What its pods are like.
    pub of: BufferSource,
    /// How many pods to keep room for.
    pub replicas: Option<u32>,
    /// The same as a share of the pods of what it is for, in percent.
    pub percentage: Option<u32>,
    /// What all of its pods together may ask for, in the model's units.
    pub limits: Vec<(String, i64)>,
}

/// The object that a buffer takes its template from; it stands in the buffer's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BufferSource {
    /// A PodTemplate of this name.
    PodTemplate(String),
    /// A workload of this kind and name, which also has a number of pods.
    Scalable(ScalableKind, String),
}

/// The kinds whose pods can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScalableKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
}

impl ScalableKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::ReplicaSet];

    /// As Kubernetes spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
        }
    }
}

impl std::fmt::Display for BufferSource {
    /// `PodTemplate web` or `Deployment web`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PodTemplate(name) => write!(f, "PodTemplate {name}"),
            Self::Scalable(kind, name) => write!(f, "{} {name}", kind.name()),
        }
    }
}

impl BufferSpec {
    /// The buffer with `template`, where its source has `scale` pods; `None` for a PodTemplate, which has none.
    ///
    /// # Errors
    /// Says so when it stands for too many pods.
    pub fn filled(&self, template: &Pod, scale: Option<u32>) -> Result<CapacityBuffer, String> {
        let percentage = self.percentage.filter(|_| scale.is_some());
        let count = CapacityBuffer::size(self.replicas, percentage, scale.unwrap_or(0), self.within_limits(template));
        if count > MOST {
            return Err(format!("it stands for {count} pods, and {MOST} is the most; lower replicas, percentage or limits"));
        }
        Ok(CapacityBuffer { key: self.key.clone(), template: template.clone(), count })
    }

    /// How many pods the limits leave room for; `None` when they limit nothing that a pod asks for.
    fn within_limits(&self, template: &Pod) -> Option<u32> {
        // That a node holds a number of pods is no request of theirs.
        let limits = self.limits.iter().filter(|(name, _)| name != PODS);
        let pods = limits.filter_map(|(name, limit)| limit.checked_div(template.requests.get(name)));
        pods.min().map(|pods| u32::try_from(pods).unwrap_or(u32::MAX))
    }
}

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
    use crate::Resources;

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

    #[test]
    fn a_size_is_found_from_what_the_buffer_is_for() {
        let spec = |replicas, percentage, limits: &[(&str, i64)]| BufferSpec {
            key: PodKey::new("default", "spare"),
            of: BufferSource::Scalable(ScalableKind::Deployment, "web".to_owned()),
            replicas,
            percentage,
            limits: limits.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect(),
        };
        let requests = Resources::of(&[("cpu", 1500), ("memory", 100), ("pods", 1)]);
        let template = Pod { requests, ..Pod::default() };
        for (spec, scale, size) in [
            (spec(Some(3), None, &[]), None, Ok(3)),
            (spec(None, Some(20), &[]), Some(10), Ok(2)),
            (spec(Some(1), Some(20), &[]), None, Ok(1)),
            (spec(None, None, &[("cpu", 4000)]), None, Ok(2)),
            (spec(None, None, &[("cpu", 4000), ("memory", 100)]), None, Ok(1)),
            (spec(Some(9), None, &[("cpu", 1499)]), None, Ok(0)),
            (spec(Some(9), None, &[("nvidia.com/gpu", 1), ("pods", 2)]), None, Ok(9)),
            (spec(None, None, &[("nvidia.com/gpu", 1)]), None, Ok(0)),
            (spec(Some(MOST), None, &[]), None, Ok(MOST)),
            (spec(None, Some(200_000), &[]), Some(10), Err("20000 pods, and 10000 is the most")),
        ] {
            let filled = spec.filled(&template, scale).map(|buffer| buffer.count);
            match size {
                Ok(size) => assert_eq!(filled, Ok(size), "{spec:?} {scale:?}"),
                Err(part) => assert!(filled.is_err_and(|why| why.contains(part)), "{spec:?}"),
            }
        }
    }
}
