//! EC2NodeClass, `karpenter.k8s.aws/v1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::{Deserialize, Serialize};

pub use whittle_model::ec2_node_class::{
    Ami, AmiSelectorTerm, BlockDevice, BlockDeviceMapping, CapacityReservation, CapacityReservationSelectorTerm, ConnectionTracking,
    CpuOptions, Ec2NodeClassSpec as EC2NodeClassSpec, FoundSubnet, MetadataOptions, NetworkInterface, PlacementGroupSelector,
    SecurityGroup, SecurityGroupSelectorTerm, SubnetSelectorTerm,
};

/// What instances are made of: image, network, disks, kubelet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClass {
    /// Always `karpenter.k8s.aws/v1`.
    pub api_version: String,
    /// Always `EC2NodeClass`.
    pub kind: String,
    /// Name, labels, annotations.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::metadata"))]
    pub metadata: ObjectMeta,
    /// What nodes are made of, and how it is found.
    pub spec: EC2NodeClassSpec,
    /// What was found in AWS, and whether nodes can be launched from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<EC2NodeClassStatus>,
}

/// What was found for an EC2NodeClass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// The subnets that were found, those with most free addresses first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnets: Option<Vec<FoundSubnet>>,
    /// The security groups that were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The machine images that were found, and the instance types each is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amis: Option<Vec<Ami>>,
    /// The capacity reservations that were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservations: Option<Vec<CapacityReservation>>,
    /// The instance profile that nodes get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// `SubnetsReady`, `AMIsReady`, `ValidationSucceeded`, `Ready` and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::shapes::conditions"))]
    pub conditions: Option<Vec<Condition>>,
}
