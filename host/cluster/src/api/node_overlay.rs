//! NodeOverlay, `karpenter.sh/v1alpha1`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, ObjectMeta},
};
use serde::{Deserialize, Serialize};

/// Changes what is known of instance types: their price, or further resources that their nodes have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlay {
    /// Always `karpenter.sh/v1alpha1`.
    pub api_version: String,
    /// Always `NodeOverlay`.
    pub kind: String,
    /// Name, labels, annotations.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is changed, and for which instance types.
    pub spec: NodeOverlaySpec,
    /// Whether it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeOverlayStatus>,
}

/// What a NodeOverlay changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// For which instance types, zones, capacity types and NodePools it counts, at most 100; all must hold.
    pub requirements: Vec<OverlayRequirement>,
    /// A price in dollars an hour instead of the listed one; this or `priceAdjustment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// What is added to the listed price: dollars an hour (`+0.5`, `-0.5`) or percent (`+10%`, `-15%`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_adjustment: Option<String>,
    /// Further resources that nodes have, such as `smarter-devices/fuse: 1`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// 1 to 10000; the highest counts where several change the same. 0 when absent; by name among equals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverlayRequirement {
    /// The label, such as `karpenter.k8s.aws/instance-family` or `karpenter.sh/nodepool`.
    pub key: String,
    /// `In` or `NotIn` some values, `Exists` or `DoesNotExist`, or greater (`Gt`, `Gte`) or less (`Lt`, `Lte`) than a number.
    pub operator: String,
    /// What it is compared with: some values for `In` and `NotIn`, one number for `Gt`, `Lt`, `Gte` and `Lte`, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// Whether a NodeOverlay counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayStatus {
    /// `ValidationSucceeded` and `Ready`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::conditions"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
