//! The numbers under which Karpenter remembers what a NodePool or EC2NodeClass looked like when a node was
//! launched from it (`karpenter.sh/nodepool-hash`, `karpenter.k8s.aws/ec2nodeclass-hash`), bit for bit, so
//! that taking over a cluster drifts nothing.
//!
//! What must not enter: what is done about a hash that differs.

mod node_class;
mod node_pool;
mod structure;

pub use node_class::{AMI_FAMILY_CUSTOM, ami_family, node_class_hash};
pub use node_pool::node_pool_hash;

/// Annotation of NodePools and NodeClaims: the pool's hash.
pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Annotation beside it: how the hash was made.
pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// How [`node_pool_hash`] is made.
pub const NODE_POOL_VERSION: &str = "v3";
/// Annotation of EC2NodeClasses and NodeClaims: the class's hash.
pub const NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Annotation beside it: how the hash was made.
pub const NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// How [`node_class_hash`] is made.
pub const NODE_CLASS_VERSION: &str = "v6";
