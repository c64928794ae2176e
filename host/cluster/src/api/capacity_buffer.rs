//! CapacityBuffer, `autoscaling.x-k8s.io/v1beta1`: the Cluster Autoscaler's kind, whose CRD is installed from there.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, ObjectMeta},
};
use serde::{Deserialize, Serialize};

/// Asks for room to be kept for pods to come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBuffer {
    /// Always `autoscaling.x-k8s.io/v1beta1`.
    pub api_version: String,
    /// Always `CapacityBuffer`.
    pub kind: String,
    /// Name, namespace, labels, annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// For which pods, and how many.
    pub spec: CapacityBufferSpec,
    /// What has become of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CapacityBufferStatus>,
}

/// For which pods room is kept, and how many.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// Who keeps the room, and how; absent it is [`ACTIVE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// A PodTemplate of the same namespace; this or `scalableRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// A workload of the same namespace, whose template and number of pods count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// How many pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How many pods, as a share of those of the workload in percent; the larger of the two counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i32>,
    /// What all these pods together may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, Quantity>>,
}

impl CapacityBufferSpec {
    /// Whether it is kept here; buffers of other strategies are somebody else's.
    #[must_use]
    pub fn active(&self) -> bool {
        self.provisioning_strategy.as_deref().is_none_or(|strategy| strategy == ACTIVE)
    }
}

/// The strategy that is carried out here: nodes are there before the pods are.
pub const ACTIVE: &str = "buffer.x-k8s.io/active-capacity";

/// Names a PodTemplate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PodTemplateRef {
    /// Its name.
    pub name: String,
}

/// Names a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// Its group: `apps`, which is meant when it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// `Deployment`, `StatefulSet` or `ReplicaSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What has become of a CapacityBuffer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The PodTemplate that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// How many pods there is to be room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Generation of the PodTemplate that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// `ReadyForProvisioning` and `Provisioning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The strategy that is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
}
