//! Which claim each planned pod is meant for, readable from both sides.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::PodKey;

/// Pods by claim and claims by pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assigned {
    claims: BTreeMap<PodKey, String>,
    pods: BTreeMap<String, BTreeSet<PodKey>>,
}

impl Assigned {
    /// The claim a pod is meant for.
    pub(crate) fn claim(&self, pod: &PodKey) -> Option<&String> {
        self.claims.get(pod)
    }

    /// The pods meant for a claim, in order.
    pub(crate) fn pods(&self, claim: &str) -> impl Iterator<Item = &PodKey> {
        self.pods.get(claim).into_iter().flatten()
    }

    /// Means a pod for a claim, and for no other.
    pub(crate) fn set(&mut self, pod: PodKey, claim: &str) {
        self.clear(&pod);
        self.pods.entry(claim.to_owned()).or_default().insert(pod.clone());
        self.claims.insert(pod, claim.to_owned());
    }

    /// Means a pod for no claim.
    pub(crate) fn clear(&mut self, pod: &PodKey) {
        let Some(claim) = self.claims.remove(pod) else { return };
        if let Some(pods) = self.pods.get_mut(&claim) {
            pods.remove(pod);
            if pods.is_empty() {
                self.pods.remove(&claim);
            }
        }
    }

    /// A claim is gone: its pods are free.
    pub(crate) fn clear_claim(&mut self, claim: &str) {
        for pod in self.pods.remove(claim).into_iter().flatten() {
            self.claims.remove(&pod);
        }
    }

    /// All pairs, by pod.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PodKey, &String)> {
        self.claims.iter()
    }
}
