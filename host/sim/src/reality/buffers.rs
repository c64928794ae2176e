//! Capacity buffers, brought together with what they are for as the controller's door does it on a cluster.
//!
//! What must not enter: whether there is room.

use std::collections::BTreeMap;

use whittle_model::{BufferSource, BufferSpec, CapacityBuffer, Event, Pod, PodKey, ScalableKind};

use super::Reality;
use crate::scenario::WorkloadKind;

/// Buffers and PodTemplates.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    specs: BTreeMap<PodKey, BufferSpec>,
    templates: BTreeMap<PodKey, Pod>,
    /// What the controller knows.
    told: BTreeMap<PodKey, CapacityBuffer>,
}

impl Buffers {
    /// What a controller that starts finds out.
    pub(super) fn lists(&self) -> impl Iterator<Item = Event> {
        self.told.values().cloned().map(|buffer| Event::CapacityBuffer(Box::new(buffer)))
    }

    pub(super) fn put(&mut self, spec: BufferSpec) {
        self.specs.insert(spec.key.clone(), spec);
    }

    pub(super) fn put_template(&mut self, template: Pod) {
        self.templates.insert(template.key.clone(), template);
    }

    /// Whether there was one to drop.
    pub(super) fn drop(&mut self, key: &PodKey) -> bool {
        self.specs.remove(key).is_some()
    }

    pub(super) fn drop_namespace(&mut self, name: &str) {
        self.specs.retain(|key, _| key.namespace != name);
        self.templates.retain(|key, _| key.namespace != name);
    }
}

impl Reality {
    /// Tells what has become of buffers since what they are for has changed.
    pub(super) fn look_at_buffers(&mut self) {
        let filled = self.buffers.specs.values().filter_map(|spec| Some((spec.key.clone(), self.filled(spec)?)));
        let filled: BTreeMap<PodKey, CapacityBuffer> = filled.collect();
        let before = std::mem::replace(&mut self.buffers.told, filled.clone());
        for key in before.keys().filter(|key| !filled.contains_key(key)) {
            self.tell(Event::CapacityBufferGone(key.clone()));
        }
        for (key, buffer) in filled {
            if before.get(&key) != Some(&buffer) {
                self.tell(Event::CapacityBuffer(Box::new(buffer)));
            }
        }
    }

    /// `None` while what a buffer is for is not there.
    fn filled(&self, spec: &BufferSpec) -> Option<CapacityBuffer> {
        let key = |name: &str| PodKey::new(&spec.key.namespace, name);
        let (template, scale) = match &spec.of {
            BufferSource::PodTemplate(name) => (self.buffers.templates.get(&key(name))?, None),
            BufferSource::Scalable(kind, name) => {
                let kind = match kind {
                    ScalableKind::Deployment => WorkloadKind::Deployment,
                    ScalableKind::StatefulSet => WorkloadKind::StatefulSet,
                    ScalableKind::ReplicaSet => WorkloadKind::ReplicaSet,
                };
                let workload = self.workloads.get(&(kind, key(name)))?.workload();
                (&workload.template, Some(workload.replicas))
            }
        };
        // Who reads the manifests has said so if it is too large.
        spec.filled(template, scale).ok()
    }
}
