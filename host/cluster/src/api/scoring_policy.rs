//! ScoringPolicy, `whittle.sh/v1alpha1`.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, ObjectMeta},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A policy that prices what could be bought and scores what could be moved. NodePools name those they obey, in
/// order, in the annotation `whittle.sh/policy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScoringPolicy {
    /// Always `whittle.sh/v1alpha1`.
    pub api_version: String,
    /// Always `ScoringPolicy`.
    pub kind: String,
    /// Name, labels, annotations.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::metadata"))]
    pub metadata: ObjectMeta,
    /// Which module it is, and how it is asked.
    pub spec: ScoringPolicySpec,
    /// Whether it is loaded, and what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ScoringPolicyStatus>,
}

/// Which module a policy is, and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScoringPolicySpec {
    /// Where its WebAssembly component comes from: exactly one of these.
    pub module: PolicyModule,
    /// Its configuration: any JSON that the module's schema takes; `{}` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// `Enforce`: its answers count. `Observe`: it is asked beside the real decision, and what it would have changed is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What happens while it cannot answer, because it failed or is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<PolicyOnFailure>,
    /// What it may use in one plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PolicyLimits>,
}

/// Where a component comes from: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyModule {
    /// The name of one that is shipped, such as `spot-share`; `whittle policy list` shows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<String>,
    /// A key of a ConfigMap in the controller's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<PolicyConfigMap>,
    /// An artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<PolicyOci>,
    /// A file that the controller can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PolicyFile>,
}

/// A key of a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyConfigMap {
    /// The ConfigMap.
    pub name: String,
    /// The key below `binaryData`.
    pub key: String,
}

/// An artifact in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyOci {
    /// Registry, repository and tag.
    pub image: String,
    /// `sha256:` and the digest that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The Secret to pull it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyFile {
    /// Its path; in a simulation relative to the manifest.
    pub path: String,
}

/// What happens without a policy that failed, by hook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyOnFailure {
    /// `Ignore` (when absent) or `Closed`: whether anything is bought without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<String>,
    /// `Ignore` or `Closed` (when absent): whether anything is moved without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<String>,
}

/// What a policy may use in one plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimits {
    /// How much it may compute, about 1 an instruction; 50000000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<i64>,
    /// How much memory it may have, at most `1Gi`; `64Mi` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::quantity"))]
    pub memory: Option<Quantity>,
}

/// What became of a policy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScoringPolicyStatus {
    /// `Ready`, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::conditions"))]
    pub conditions: Option<Vec<Condition>>,
    /// `sha256:` and the hash of the module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the module says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// How often it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<i64>,
    /// What its calls used of their fuel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<i64>,
    /// How often it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    /// When observed: how often it would have decided otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<i64>,
}
