//! DaemonSets: what every node they match must have room for.

use serde::{Deserialize, Serialize};

use crate::pod::{ContainerRequests, effective_requests};
use crate::{Pod, PodKey, Resources};

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSet {
    /// Its name.
    pub key: PodKey,
    /// A pod as its template makes it.
    pub template: Pod,
    /// What its containers ask for, one by one; `None` when only the sum is known.
    pub containers: Option<TemplateRequests>,
}

/// What the containers of a pod template ask for: a container that says nothing of a resource may be given a default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TemplateRequests {
    /// Init containers and sidecars, in order.
    pub init: Vec<ContainerRequests>,
    /// Containers.
    pub containers: Vec<Resources>,
    /// Pod-level requests.
    pub pod: Resources,
    /// What its RuntimeClass adds.
    pub overhead: Resources,
}

impl TemplateRequests {
    /// What kube-scheduler reserves for a pod of this template once every container that says nothing of a resource asks
    /// for its default.
    #[must_use]
    pub fn requests(&self, defaults: &Resources) -> Resources {
        let filled = |asked: &Resources| {
            let mut all = asked.clone();
            for (name, amount) in defaults.iter().filter(|(name, _)| asked.get(name) == 0) {
                all.set(name, amount);
            }
            all
        };
        let init: Vec<ContainerRequests> =
            self.init.iter().map(|one| ContainerRequests { requests: filled(&one.requests), sidecar: one.sidecar }).collect();
        let containers: Vec<Resources> = self.containers.iter().map(filled).collect();
        effective_requests(&init, &containers, &self.pod, &self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{CPU, MEMORY, PODS};

    #[test]
    fn defaults_fill_what_each_container_leaves_open() {
        let asks = TemplateRequests {
            init: vec![ContainerRequests { requests: Resources::default(), sidecar: true }],
            containers: vec![Resources::of(&[(CPU, 300)]), Resources::of(&[(MEMORY, 70)])],
            ..TemplateRequests::default()
        };
        for (defaults, cpu, memory) in [
            (Resources::default(), 300, 70),
            (Resources::of(&[(CPU, 500)]), 500 + 300 + 500, 70),
            (Resources::of(&[(CPU, 500), (MEMORY, 10)]), 1300, 10 + 10 + 70),
        ] {
            let all = asks.requests(&defaults);
            assert_eq!((all.get(CPU), all.get(MEMORY), all.get(PODS)), (cpu, memory, 1), "{defaults:?}");
        }
    }
}
