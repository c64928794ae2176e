//! Storage as the events said: claims, volumes, classes, limits of nodes and attachments.
//!
//! What must not enter: what a pod may do with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whittle_model::{Event, PodKey, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeLimits};

/// All storage objects, by name.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// PersistentVolumeClaims.
    pub claims: BTreeMap<PodKey, VolumeClaim>,
    /// PersistentVolumes.
    pub volumes: BTreeMap<String, Volume>,
    /// StorageClasses.
    pub classes: BTreeMap<String, StorageClass>,
    /// How many volumes nodes may hold, by node.
    pub limits: BTreeMap<String, VolumeLimits>,
    /// Volumes that nodes hold.
    pub attachments: BTreeMap<String, VolumeAttachment>,
}

/// The objects of a [`Storage`], for a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StorageObjects {
    claims: Vec<VolumeClaim>,
    volumes: Vec<Volume>,
    classes: Vec<StorageClass>,
    limits: Vec<VolumeLimits>,
    attachments: Vec<VolumeAttachment>,
}

impl Storage {
    /// Takes in a storage object; other events are no matter.
    pub fn note(&mut self, event: &Event) {
        if let Event::VolumeClaim(claim) = event {
            self.claims.insert(claim.key.clone(), (**claim).clone());
        } else if let Event::VolumeClaimGone(key) = event {
            self.claims.remove(key);
        } else if let Event::Volume(volume) = event {
            self.volumes.insert(volume.name.clone(), (**volume).clone());
        } else if let Event::VolumeGone(name) = event {
            self.volumes.remove(name);
        } else if let Event::StorageClass(class) = event {
            self.classes.insert(class.name.clone(), (**class).clone());
        } else if let Event::StorageClassGone(name) = event {
            self.classes.remove(name);
        } else if let Event::VolumeLimits(limits) = event {
            self.limits.insert(limits.node.clone(), (**limits).clone());
        } else if let Event::VolumeLimitsGone(node) = event {
            self.limits.remove(node);
        } else if let Event::VolumeAttachment(attachment) = event {
            self.attachments.insert(attachment.name.clone(), (**attachment).clone());
        } else if let Event::VolumeAttachmentGone(name) = event {
            self.attachments.remove(name);
        }
    }

    /// The class that claims without one get.
    #[must_use]
    pub fn default_class(&self) -> Option<&StorageClass> {
        self.classes.values().find(|class| class.default)
    }

    pub(crate) fn objects(&self) -> StorageObjects {
        StorageObjects {
            claims: self.claims.values().cloned().collect(),
            volumes: self.volumes.values().cloned().collect(),
            classes: self.classes.values().cloned().collect(),
            limits: self.limits.values().cloned().collect(),
            attachments: self.attachments.values().cloned().collect(),
        }
    }

    pub(crate) fn of_objects(objects: StorageObjects) -> Self {
        Self {
            claims: objects.claims.into_iter().map(|c| (c.key.clone(), c)).collect(),
            volumes: objects.volumes.into_iter().map(|v| (v.name.clone(), v)).collect(),
            classes: objects.classes.into_iter().map(|c| (c.name.clone(), c)).collect(),
            limits: objects.limits.into_iter().map(|l| (l.node.clone(), l)).collect(),
            attachments: objects.attachments.into_iter().map(|a| (a.name.clone(), a)).collect(),
        }
    }
}
