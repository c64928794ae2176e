//! The nouns of Whittle: pods, nodes, claims, pools, instance types, requirements, money, and the
//! events and actions that cross the engine's border.
//!
//! What must not enter: async, clocks, randomness, logging, Kubernetes or AWS client types,
//! decisions. A type here says what *is*; what to *do* lives in the engine.

pub mod action;
pub mod catalog;
pub mod claim;
pub mod daemon_set;
pub mod ec2_node_class;
pub mod event;
pub mod keys;
pub mod money;
pub mod node;
pub mod node_class;
pub mod node_pool;
pub mod pod;
pub mod policy;
pub mod quantity;
pub mod requirement;
pub mod requirements;
pub mod resources;
pub mod scorer;
pub mod selector;
pub mod settings;
pub mod taint;
pub mod time;

pub use action::Action;
pub use catalog::{CapacityType, Catalog, InstanceType, Offering, OfferingKey};
pub use claim::{ClaimStatus, NodeClaim};
pub use daemon_set::DaemonSet;
pub use event::{Event, Instance, Interruption, LaunchFailure, Launched, ObjectKind, Outcome};
pub use money::Micros;
pub use node::Node;
pub use node_class::{NodeClass, Subnet};
pub use node_pool::{Disruption, DisruptionBudget, Limits, NodePool, Template};
pub use pod::{Affinity, AntiAffinityTerm, Owner, Pod, PodKey, PodPhase};
pub use quantity::{Quantity, QuantityError};
pub use requirement::{Operator, Requirement, RequirementError};
pub use requirements::{Incompatible, Requirements};
pub use resources::Resources;
pub use scorer::{ListPrice, PolicyRecord, Scorer, ScorerFailure};
pub use selector::{LabelSelector, SelectorOperator, SelectorRequirement};
pub use settings::{Cluster, Nomination, Packing, Settings};
pub use taint::{Effect, Taint, Toleration};
pub use time::{Duration, Timestamp};

/// Labels or annotations of an object, ordered by key.
pub type Labels = std::collections::BTreeMap<String, String>;
