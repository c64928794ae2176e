//! The door to Kubernetes: API types, manifests, and their conversion into the model's nouns.
//! Kubernetes types stop here.
//!
//! What must not enter: AWS clients, Wasm, the engine, decisions. What cannot be converted is told
//! with its place, never dropped.

pub mod api;
#[cfg(feature = "client")]
pub mod buffers;
pub mod convert;
#[cfg(feature = "schema")]
pub mod crd;
mod from;
pub mod hash;
#[cfg(feature = "client")]
pub mod live;
pub mod manifest;
#[cfg(feature = "client")]
pub mod write;
pub mod yaml;

pub use from::{
    CapacityBufferObject, DisruptionBudgetObject, Kubelet, ModuleSource, NamespaceObject, NodeClassObject, PolicyMode, PolicyStance,
    PriorityClassObject, ScoringPolicyObject, VolumeClaimTemplate, Workload, WorkloadKind,
};
pub use manifest::{Fault, Located, ManifestError, Object, Problem, Strictness, link, not_acted_on, read, scheduler_config};
