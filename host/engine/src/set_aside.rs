//! Objects that could not be read. Set aside never means absent: what hangs on such an object stays as it is
//! until it can be read or is gone.
//!
//! What must not enter: reading, and what to do about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whittle_model::{Event, NodeClaim, ObjectKind, keys};

use crate::world::World;

/// By kind and name: the node it hangs on, if that could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetAside(BTreeMap<ObjectKind, BTreeMap<String, Option<String>>>);

impl SetAside {
    /// Whether nothing of this kind is set aside.
    pub(crate) fn none(&self, kind: ObjectKind) -> bool {
        self.0.get(&kind).is_none_or(BTreeMap::is_empty)
    }

    fn holds(&self, kind: ObjectKind, name: &str) -> bool {
        self.0.get(&kind).is_some_and(|names| names.contains_key(name))
    }

    fn pins(&self, node: &str) -> bool {
        self.0.values().flat_map(BTreeMap::values).any(|pinned| pinned.as_deref() == Some(node))
    }
}

impl World {
    /// Notes that an object could not be read.
    pub(crate) fn set_aside(&mut self, kind: ObjectKind, name: &str, node: Option<&str>) {
        self.aside.0.entry(kind).or_default().insert(name.to_owned(), node.map(str::to_owned));
    }

    /// An object that was set aside can be read, or is gone. Says whether that is so.
    pub(crate) fn read(&mut self, event: &Event) -> bool {
        if self.aside.0.is_empty() {
            return false;
        }
        let (kind, name) = match event {
            Event::Pod(pod) => (ObjectKind::Pod, pod.key.to_string()),
            Event::PodGone(key) => (ObjectKind::Pod, key.to_string()),
            Event::Node(node) => (ObjectKind::Node, node.name.clone()),
            Event::NodeGone(name) => (ObjectKind::Node, name.clone()),
            Event::Claim(claim) => (ObjectKind::NodeClaim, claim.name.clone()),
            Event::ClaimGone(name) => (ObjectKind::NodeClaim, name.clone()),
            Event::NodePool(pool) => (ObjectKind::NodePool, pool.name.clone()),
            Event::NodePoolGone(name) => (ObjectKind::NodePool, name.clone()),
            Event::NodeClass(class) => (ObjectKind::NodeClass, class.name.clone()),
            Event::NodeClassGone(name) => (ObjectKind::NodeClass, name.clone()),
            Event::DaemonSet(set) => (ObjectKind::DaemonSet, set.key.to_string()),
            Event::DaemonSetGone(key) => (ObjectKind::DaemonSet, key.to_string()),
            Event::VolumeClaim(claim) => (ObjectKind::VolumeClaim, claim.key.to_string()),
            Event::VolumeClaimGone(key) => (ObjectKind::VolumeClaim, key.to_string()),
            Event::Volume(volume) => (ObjectKind::Volume, volume.name.clone()),
            Event::VolumeGone(name) => (ObjectKind::Volume, name.clone()),
            Event::StorageClass(class) => (ObjectKind::StorageClass, class.name.clone()),
            Event::StorageClassGone(name) => (ObjectKind::StorageClass, name.clone()),
            Event::PodDisruptionBudget(budget) => (ObjectKind::PodDisruptionBudget, budget.key.to_string()),
            Event::PodDisruptionBudgetGone(key) => (ObjectKind::PodDisruptionBudget, key.to_string()),
            Event::NodeOverlay(overlay) => (ObjectKind::NodeOverlay, overlay.name.clone()),
            Event::NodeOverlayGone(name) => (ObjectKind::NodeOverlay, name.clone()),
            Event::Settings(_)
            | Event::Catalog(_)
            | Event::Price(..)
            | Event::Synced
            | Event::Namespace(..)
            | Event::NamespaceGone(_)
            | Event::VolumeLimits(_)
            | Event::VolumeLimitsGone(_)
            | Event::VolumeAttachment(_)
            | Event::VolumeAttachmentGone(_)
            | Event::LimitRange(_)
            | Event::LimitRangeGone(_)
            | Event::CapacityBuffer(_)
            | Event::CapacityBufferGone(_)
            | Event::Outcome(_)
            | Event::Instances(_)
            | Event::Interrupted { .. }
            | Event::ProviderDrift { .. }
            | Event::PolicyLoaded { .. }
            | Event::SetAside { .. } => return false,
        };
        let Some(names) = self.aside.0.get_mut(&kind) else { return false };
        let Some(node) = names.remove(&name) else { return false };
        if names.is_empty() {
            self.aside.0.remove(&kind);
        }
        let node = node.as_ref().and_then(|name| self.nodes.get(name));
        self.touched.extend(node.and_then(|node| self.claim_by_provider.get(&node.provider_id)).cloned());
        if kind == ObjectKind::Node {
            self.touched.extend(self.going.iter().cloned()); // its claim may have waited for it
        }
        true
    }

    /// Whether the node of a claim is there and could never be read: it must not be taken for one that is gone.
    pub(crate) fn hides_node(&self, claim: &NodeClaim) -> bool {
        let node = &claim.status.node;
        !node.is_empty() && self.aside.holds(ObjectKind::Node, node) && !self.nodes.contains_key(node)
    }

    /// Whether a node must stay and takes no further pods, because something on it could not be read.
    pub(crate) fn pinned(&self, node: &str) -> bool {
        !self.aside.0.is_empty() && (self.aside.holds(ObjectKind::Node, node) || self.aside.pins(node))
    }

    /// Whether a pool could not be read when it changed last: nothing is bought from it and nothing of it goes.
    pub(crate) fn frozen(&self, pool: &str) -> bool {
        self.aside.holds(ObjectKind::NodePool, pool)
    }

    /// Whether there are claims that could never be read, and fewer nodes that no claim stands for than such claims: of one
    /// at least nothing is known, and it may be any pool's.
    pub(crate) fn unaccounted(&self) -> bool {
        let aside = self.aside.0.get(&ObjectKind::NodeClaim);
        let unknown = aside.map_or(0, |names| names.keys().filter(|name| !self.claims.contains_key(*name)).count());
        unknown > 0 && {
            let ours = self.nodes.values().filter(|node| node.labels.contains_key(keys::NODE_POOL));
            ours.filter(|node| self.claim_of(node).is_none()).count() < unknown
        }
    }

    /// Whether the node of a claim may be one that could never be read, as nothing else is known of it.
    pub(crate) fn may_hide_node(&self, claim: &NodeClaim) -> bool {
        let hidden = || self.aside.0.get(&ObjectKind::Node).is_some_and(|names| names.keys().any(|name| !self.nodes.contains_key(name)));
        !claim.status.provider_id.is_empty() && self.node_of(claim).is_none() && hidden()
    }

    /// Whether a claim must stay because it, its pool or something on its node could not be read.
    pub(crate) fn stays(&self, claim: &NodeClaim) -> bool {
        self.aside.holds(ObjectKind::NodeClaim, &claim.name)
            || self.frozen(&claim.node_pool)
            || self.node_of(claim).is_some_and(|node| self.pinned(&node.name))
    }
}
