//! What pods and nodes refer to: storage, LimitRanges, NodeOverlays, budgets.

use std::collections::BTreeMap;

use whittle_model::{Event, LimitRange, NodeOverlay, PodKey, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeLimits};

use super::Reality;
use crate::scenario::{Budget, Fact};

/// These objects as the API server has them.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) volume_claims: BTreeMap<PodKey, VolumeClaim>,
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) storage_classes: BTreeMap<String, StorageClass>,
    pub(crate) volume_limits: BTreeMap<String, VolumeLimits>,
    pub(crate) attachments: BTreeMap<String, VolumeAttachment>,
    pub(crate) limit_ranges: BTreeMap<PodKey, LimitRange>,
    pub(crate) overlays: BTreeMap<String, NodeOverlay>,
    pub(crate) budgets: BTreeMap<PodKey, Budget>,
}

impl Facts {
    /// What a controller reads of them when it starts.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        let classes = self.storage_classes.values().cloned().map(|one| Event::StorageClass(Box::new(one)));
        let volumes = self.volumes.values().cloned().map(|one| Event::Volume(Box::new(one)));
        let claims = self.volume_claims.values().cloned().map(|one| Event::VolumeClaim(Box::new(one)));
        let limits = self.volume_limits.values().cloned().map(|one| Event::VolumeLimits(Box::new(one)));
        let attachments = self.attachments.values().cloned().map(|one| Event::VolumeAttachment(Box::new(one)));
        let ranges = self.limit_ranges.values().cloned().map(|one| Event::LimitRange(Box::new(one)));
        let overlays = self.overlays.values().cloned().map(|one| Event::NodeOverlay(Box::new(one)));
        classes.chain(volumes).chain(claims).chain(limits).chain(attachments).chain(ranges).chain(overlays)
    }
}

impl Reality {
    /// Creates or replaces one.
    pub(super) fn put_fact(&mut self, fact: Fact) {
        let facts = &mut self.api.facts;
        let event = match fact {
            Fact::VolumeClaim(one) => {
                facts.volume_claims.insert(one.key.clone(), one.clone());
                Event::VolumeClaim(Box::new(one))
            }
            Fact::Volume(one) => {
                facts.volumes.insert(one.name.clone(), one.clone());
                Event::Volume(Box::new(one))
            }
            Fact::StorageClass(one) => {
                facts.storage_classes.insert(one.name.clone(), one.clone());
                Event::StorageClass(Box::new(one))
            }
            Fact::VolumeLimits(one) => {
                facts.volume_limits.insert(one.node.clone(), one.clone());
                Event::VolumeLimits(Box::new(one))
            }
            Fact::VolumeAttachment(one) => {
                facts.attachments.insert(one.name.clone(), one.clone());
                Event::VolumeAttachment(Box::new(one))
            }
            Fact::LimitRange(one) => {
                facts.limit_ranges.insert(one.key.clone(), one.clone());
                Event::LimitRange(Box::new(one))
            }
            Fact::NodeOverlay(one) => {
                facts.overlays.insert(one.name.clone(), one.clone());
                Event::NodeOverlay(Box::new(one))
            }
        };
        self.tell(event);
    }
}
