//! The API types that users write and Whittle keeps: Karpenter's `karpenter.sh/v1` and
//! `karpenter.k8s.aws/v1`, its own `whittle.sh/v1alpha1`, and the Cluster Autoscaler's CapacityBuffer. The kinds of
//! Kubernetes itself come from `k8s-openapi`.
//!
//! A type here has the shape of the wire and no more: rules stand with the conversion, meaning in the
//! model. Texts that the schema limits to a few words stay texts, so that a wrong word can be
//! answered with the right one.

mod capacity_buffer;
mod ec2_node_class;
mod node_claim;
mod node_overlay;
mod node_pool;
mod scoring_policy;

pub use capacity_buffer::{ACTIVE, CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, PodTemplateRef, ScalableRef};
pub use ec2_node_class::{
    Ami, AmiSelectorTerm, BlockDevice, BlockDeviceMapping, CapacityReservation, CapacityReservationSelectorTerm, ConnectionTracking,
    CpuOptions, EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus, FoundSubnet, MetadataOptions, NetworkInterface, PlacementGroupSelector,
    SecurityGroup, SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use node_claim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequests};
pub use node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus, OverlayRequirement};
pub use node_pool::{
    Budget, Disruption, NodeClassRef, NodePool, NodePoolSpec, NodePoolStatus, Requirement, Template, TemplateMetadata, TemplateSpec,
};
pub use scoring_policy::{
    PolicyConfigMap, PolicyFile, PolicyLimits, PolicyModule, PolicyOci, PolicyOnFailure, ScoringPolicy, ScoringPolicySpec,
    ScoringPolicyStatus,
};

/// Group and version of NodePool and NodeClaim.
pub const KARPENTER: &str = "karpenter.sh/v1";
/// Group of EC2NodeClass.
pub const AWS_GROUP: &str = "karpenter.k8s.aws";
/// Group and version of EC2NodeClass.
pub const AWS: &str = "karpenter.k8s.aws/v1";
/// Group and version of ScoringPolicy.
pub const WHITTLE: &str = "whittle.sh/v1alpha1";
/// Kind that a nodeClassRef must name.
pub const NODE_CLASS_KIND: &str = "EC2NodeClass";
