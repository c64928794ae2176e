//! Capacity buffers, each brought together with what it is for: what the engine is told of it, and what is said of it.
//! What must not enter: whether there is room, requests.

use std::collections::BTreeMap;

use whittle_model::{BufferSource, CapacityBuffer, Event, PodKey};

use crate::api;
use crate::live::{BufferBase, capacity_buffer};
use crate::write::{BufferFound, FoundBase};

/// Buffers, and what they can be for.
#[derive(Debug, Default)]
pub struct Buffers {
    objects: BTreeMap<PodKey, api::CapacityBuffer>,
    /// By namespace, kind and name.
    bases: BTreeMap<(String, BufferSource), Result<BufferBase, String>>,
    /// What was found of those that are kept here.
    found: BTreeMap<PodKey, BufferFound>,
    /// What the engine knows.
    told: BTreeMap<PodKey, CapacityBuffer>,
}

impl Buffers {
    /// A buffer is as given; what the engine is to hear of it.
    pub fn put(&mut self, object: api::CapacityBuffer) -> Option<Event> {
        let meta = &object.metadata;
        let key = PodKey::new(meta.namespace.as_deref().unwrap_or("default"), meta.name.as_deref().unwrap_or_default());
        self.objects.insert(key.clone(), object);
        self.look(&key)
    }

    /// A buffer is gone; what the engine is to hear of it.
    pub fn gone(&mut self, key: &PodKey) -> Option<Event> {
        self.objects.remove(key);
        self.look(key)
    }

    /// Something that buffers can be for is as given, cannot be read, or is gone; what the engine is to hear of them.
    pub fn base(&mut self, namespace: &str, of: &BufferSource, base: Option<Result<BufferBase, String>>) -> Vec<Event> {
        let key = (namespace.to_owned(), of.clone());
        match base {
            Some(base) => drop(self.bases.insert(key, base)),
            None => drop(self.bases.remove(&key)),
        }
        let here: Vec<PodKey> = self.objects.keys().filter(|key| key.namespace == namespace).cloned().collect();
        here.iter().filter_map(|key| self.look(key)).collect()
    }

    /// The buffers that are kept here, with what was found of each; not whether there is room.
    pub fn found(&self) -> impl Iterator<Item = (&PodKey, &api::CapacityBuffer, &BufferFound)> {
        self.found.iter().filter_map(|(key, found)| Some((key, self.objects.get(key)?, found)))
    }

    fn look(&mut self, key: &PodKey) -> Option<Event> {
        let found = self.objects.get(key).filter(|object| object.spec.active()).map(|object| self.find(object));
        let (found, filled) = found.map_or((None, None), |(found, filled)| (Some(found), filled));
        match found {
            Some(found) => drop(self.found.insert(key.clone(), found)),
            None => drop(self.found.remove(key)),
        }
        let Some(filled) = filled else {
            return self.told.remove(key).map(|told| Event::CapacityBufferGone(told.key));
        };
        if self.told.get(key) == Some(&filled) {
            return None;
        }
        self.told.insert(key.clone(), filled.clone());
        Some(Event::CapacityBuffer(Box::new(filled)))
    }

    fn find(&self, written: &api::CapacityBuffer) -> (BufferFound, Option<CapacityBuffer>) {
        let spec = match capacity_buffer(written) {
            Ok(object) => object.spec,
            Err(why) => return (BufferFound::Failed(why), None),
        };
        let base = match (self.bases.get(&(spec.key.namespace.clone(), spec.of.clone())), &spec.of) {
            (Some(Ok(base)), _) => base,
            (Some(Err(why)), of) => return (BufferFound::Failed(format!("{of} cannot be read: {why}")), None),
            (None, of @ BufferSource::PodTemplate(_)) => return (BufferFound::NoPodTemplate(of.to_string()), None),
            (None, of @ BufferSource::Scalable(..)) => return (BufferFound::NoScalable(of.to_string()), None),
        };
        let template = match &spec.of {
            BufferSource::PodTemplate(name) => Some(FoundBase { name: name.clone(), generation: base.generation }),
            BufferSource::Scalable(..) => None,
        };
        match spec.filled(&base.template, base.scale) {
            Ok(filled) => (BufferFound::Resolved { base: template, count: filled.count, standing: None }, Some(filled)),
            Err(why) => (BufferFound::Failed(why), None),
        }
    }
}
