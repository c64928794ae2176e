//! NodeClaim, `karpenter.sh/v1`.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::Taint,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, ObjectMeta, Time},
    },
};
use serde::{Deserialize, Serialize};

use super::{NodeClassRef, Requirement};

/// A node that is to be, or is: written before an instance is launched, gone when the instance is terminated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaim {
    /// Always `karpenter.sh/v1`.
    pub api_version: String,
    /// Always `NodeClaim`.
    pub kind: String,
    /// Name, labels, annotations.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::metadata"))]
    pub metadata: ObjectMeta,
    /// What is wanted of the node; never changes.
    pub spec: NodeClaimSpec,
    /// What was bought, and how far it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeClaimStatus>,
}

/// What a claim wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints that the node keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::taints"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that a DaemonSet or controller removes while the node starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::taints"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// Which instance types, zones and capacity types may be bought for it, at most 100; all must hold.
    pub requirements: Vec<Requirement>,
    /// What the pods planned for it ask for, with the DaemonSets of every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequests>,
    /// The EC2NodeClass that says what the node is made of.
    pub node_class_ref: NodeClassRef,
    /// How long a drain may take before what is left is deleted: a duration such as `1h30m`. For ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<String>,
    /// How long the node lives before it is drained: a duration such as `720h`, which is the default, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<String>,
}

/// Requests of a claim.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequests {
    /// Amounts by resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    pub requests: Option<BTreeMap<String, Quantity>>,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The node's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// `aws:///<zone>/<instance id>`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The machine image, such as `ami-0abc`.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// What the instance has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// What pods can use of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// When a pod last came or left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::time"))]
    pub last_pod_event_time: Option<Time>,
    /// `Launched`, `Registered`, `Initialized`, `Ready` and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::conditions"))]
    pub conditions: Option<Vec<Condition>>,
}
