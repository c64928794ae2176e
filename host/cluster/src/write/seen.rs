//! What the API server last showed of the objects that are written: from answers to writes and, if the watch
//! is told to this door, from there. It saves reading an object before each write.
//!
//! What must not enter: what is done about it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::error::WriteError;
use crate::api;

/// The parts of a Node that are written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct NodeParts {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: NodeSpecParts,
}

/// The part of a Node's spec that is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct NodeSpecParts {
    #[serde(default)]
    pub(super) taints: Option<Vec<Taint>>,
}

/// An object whose metadata is known.
pub(super) trait Shown: Clone + DeserializeOwned {
    fn metadata(&self) -> &ObjectMeta;
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

impl Shown for api::NodeClaim {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Shown for NodeParts {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The latest sights of objects of one kind, by name.
#[derive(Debug)]
pub(super) struct Seen<T>(Mutex<HashMap<String, T>>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Shown> Seen<T> {
    pub(super) fn get(&self, name: &str) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A sight of an object, unless a later one is known.
    pub(super) fn saw(&self, mut object: T) {
        object.metadata_mut().managed_fields = None; // as long as all the rest
        let Some(name) = object.metadata().name.clone() else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&name).is_none_or(|known| !later(known.metadata(), object.metadata())) {
            all.insert(name, object);
        }
    }

    /// As [`Self::saw`], of an answer; it is given back.
    pub(super) fn answered(&self, what: &str, answer: Value) -> Result<T, WriteError> {
        let object: T = serde_json::from_value(answer).map_err(|source| WriteError::Unreadable { what: what.to_owned(), source })?;
        self.saw(object.clone());
        Ok(object)
    }

    pub(super) fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Whether `known` is a later sight of the same object. Resource versions of one kind are numbers that grow
/// (KEP-5504); where they are not, what came last counts.
fn later(known: &ObjectMeta, other: &ObjectMeta) -> bool {
    let number = |meta: &ObjectMeta| meta.resource_version.as_deref().and_then(|v| v.parse::<u64>().ok());
    known.uid == other.uid && matches!((number(known), number(other)), (Some(known), Some(other)) if known > other)
}
