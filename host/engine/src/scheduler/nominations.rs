//! Pods that are not bound but have room held on a node.

use std::collections::BTreeMap;

use whittle_model::PodKey;

use super::identity::Identity;

/// The pods nominated to nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Nominations {
    by_pod: BTreeMap<PodKey, u32>,
    by_slot: BTreeMap<u32, Vec<(PodKey, Identity)>>,
}

impl Nominations {
    /// Holds room for a pod that has none held.
    pub fn add(&mut self, pod: &PodKey, slot: u32, identity: Identity) {
        self.by_pod.insert(pod.clone(), slot);
        self.by_slot.entry(slot).or_default().push((pod.clone(), identity));
    }

    /// Lets the room of a pod go; the slot it was on.
    pub fn remove(&mut self, pod: &PodKey) -> Option<u32> {
        let slot = self.by_pod.remove(pod)?;
        if let Some(pods) = self.by_slot.get_mut(&slot) {
            pods.retain(|(other, _)| other != pod);
            if pods.is_empty() {
                self.by_slot.remove(&slot);
            }
        }
        Some(slot)
    }

    /// The slot a pod is nominated to.
    pub fn slot(&self, pod: &PodKey) -> Option<u32> {
        self.by_pod.get(pod).copied()
    }

    /// The other pods nominated to `slot` that a pod of this name and priority must yield to.
    pub fn before(&self, slot: u32, pod: &PodKey, priority: i32) -> impl Iterator<Item = &Identity> {
        let all = self.by_slot.get(&slot).map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |(other, identity)| identity.priority >= priority && other != pod).map(|(_, identity)| identity)
    }
}
