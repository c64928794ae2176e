//! NodePool, `karpenter.sh/v1`.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::Taint,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, ObjectMeta},
    },
};
use serde::{Deserialize, Serialize};

/// Which nodes may be bought, in which order of pools, up to which limit, and when they may go again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// Always `karpenter.sh/v1`.
    pub api_version: String,
    /// Always `NodePool`.
    pub kind: String,
    /// Name, labels, annotations.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::metadata"))]
    pub metadata: ObjectMeta,
    /// What is wanted of this pool.
    pub spec: NodePoolSpec,
    /// What the pool has, and whether it can be bought from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodePoolStatus>,
}

/// What a NodePool wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What nodes of this pool look like. A change makes the nodes that exist drift, but for one of `requirements` that they still meet.
    pub template: Template,
    /// When nodes may be removed or replaced to save money, and how many at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// The most that nodes of this pool may have together: any resource, and `nodes` for their number. No limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// 1 to 100; pools of a higher weight are bought from first. 0 when absent. Not for static pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// Makes the pool static: it keeps this many nodes whatever pods there are. `limits` may then name `nodes` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
}

/// What nodes of a pool look like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Labels and annotations that every node gets.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// Taints, requirements, class and lifetime of every node.
    pub spec: TemplateSpec,
}

/// Labels and annotations that every node of a pool gets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels, at most 100. Pods may select by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations; `karpenter.sh/do-not-disrupt` here keeps every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The claim that a pool makes for each node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Taints that every node keeps; pods need a toleration for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::taints"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that a DaemonSet or controller removes while the node starts; pods need no toleration for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::taints"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// Which instance types, zones, architectures and capacity types may be bought, at most 100; all must hold.
    pub requirements: Vec<Requirement>,
    /// The EC2NodeClass that says what nodes are made of: image, network, disks.
    pub node_class_ref: NodeClassRef,
    /// How long a drain may take before what is left is deleted, past PodDisruptionBudgets and `do-not-disrupt`:
    /// a duration such as `1h30m`. For ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<String>,
    /// How long a node lives before it is drained: a duration such as `720h`, which is the default, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<String>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label, such as `node.kubernetes.io/instance-type` or `topology.kubernetes.io/zone`.
    pub key: String,
    /// `In` or `NotIn` some values, `Exists` or `DoesNotExist`, or greater (`Gt`, `Gte`) or less (`Lt`, `Lte`) than a number.
    pub operator: String,
    /// What it is compared with: some values for `In` and `NotIn`, one whole number for `Gt`, `Lt`, `Gte` and `Lte`, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// 1 to 50: how many different values must remain to choose from when a node is bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<i64>,
}

/// The name of a node class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// Its API group, without a version: `karpenter.k8s.aws`. Never changes.
    pub group: String,
    /// Its kind: `EC2NodeClass`. Never changes.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// When nodes may go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long no pod may have come or left before a node is looked at: a duration such as `5m`, or `Never`. `0s` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate_after: Option<String>,
    /// Which nodes may go to save money: `WhenEmpty` those without pods, `WhenEmptyOrUnderutilized` (the default)
    /// also those whose pods fit elsewhere for less, `Balanced` those only if it saves enough for the pods that
    /// move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_policy: Option<String>,
    /// How many nodes may go at once, at most 50 entries; of those that count now the strictest decides. One of `nodes: 10%` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<Budget>>,
}

/// How many nodes may go at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// The most nodes of this pool that may be going at once: a count such as `'5'`, or a percentage such as
    /// `10%`, which is the default. `'0'` holds all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// When it begins to count, in UTC: five fields as of cron, or `@daily` and its like. Always when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How long it then counts, in hours and minutes, such as `8h` or `1h30m`; needed beside `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// What it limits: removals because a node is `Empty`, `Underutilized` or `Drifted`; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<String>>,
}

/// What became of a NodePool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What nodes of this pool have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantities"))]
    pub resources: Option<BTreeMap<String, Quantity>>,
    /// How many nodes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// The generation of the node class that was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// `ValidationSucceeded`, `NodeClassReady`, `NodeRegistrationHealthy`, `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::conditions"))]
    pub conditions: Option<Vec<Condition>>,
}
