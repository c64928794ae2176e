//! The door to Kubernetes: API types, manifests, and their conversion into the model's nouns.
//! Kubernetes types stop here.
//!
//! What must not enter: AWS clients, Wasm, the engine, decisions. What cannot be converted is told
//! with its place, never dropped.

pub mod api;
pub mod convert;
mod from;
pub mod manifest;
pub mod yaml;

pub use from::{
    DisruptionBudgetObject, Kubelet, ModuleSource, NamespaceObject, NodeClassObject, PolicyMode, PolicyStance, PriorityClassObject,
    ScoringPolicyObject, Workload, WorkloadKind,
};
pub use manifest::{Fault, Located, ManifestError, Object, Problem, Strictness, link, not_acted_on, read};
