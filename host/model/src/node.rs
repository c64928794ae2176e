//! Nodes of the cluster.

use serde::{Deserialize, Serialize};

use crate::{Labels, Resources, Taint, Timestamp};

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `aws:///<zone>/<instance id>`; empty until the kubelet says it.
    pub provider_id: String,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// What it has.
    pub capacity: Resources,
    /// What pods can use.
    pub allocatable: Resources,
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// Its conditions, `Ready` among them, in the order of their names.
    pub conditions: Vec<NodeCondition>,
    /// `spec.unschedulable`: cordoned.
    pub cordoned: bool,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// A condition of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCondition {
    /// Such as `Ready` or `StorageReady`.
    pub name: String,
    /// Whether it holds; `None` is unknown.
    pub holds: Option<bool>,
    /// Since when.
    pub since: Timestamp,
}
