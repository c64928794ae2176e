//! The nouns of Whittle: pods, nodes, claims, pools, instance types, requirements, money, and the
//! events and actions that cross the engine's border.
//!
//! What must not enter: async, clocks, randomness, logging, Kubernetes or AWS client types,
//! decisions. A type here says what *is*; what to *do* lives in the engine.

pub mod action;
pub mod buffer;
pub mod catalog;
pub mod claim;
pub mod daemon_set;
pub mod disruption_budget;
pub mod ec2_node_class;
pub mod event;
pub mod go_duration;
pub mod keys;
pub mod limit_range;
pub mod money;
pub mod node;
pub mod node_class;
pub mod node_pool;
pub mod overlay;
pub mod pod;
pub mod policy;
pub mod provider_drift;
pub mod quantity;
pub mod requirement;
pub mod requirements;
pub mod resources;
pub mod scorer;
pub mod selector;
pub mod settings;
pub mod storage;
pub mod taint;
pub mod time;

pub use action::Action;
pub use buffer::{BufferSource, BufferSpec, CapacityBuffer, ScalableKind};
pub use catalog::{CapacityType, Catalog, Held, InstanceType, Offering, OfferingKey, Reservation};
pub use claim::{ClaimStatus, ListedOffer, Milestone, NodeClaim};
pub use daemon_set::{DaemonSet, TemplateRequests};
pub use disruption_budget::PodDisruptionBudget;
pub use event::{Event, Instance, Interruption, LaunchFailure, Launched, ObjectKind, Outcome};
pub use limit_range::LimitRange;
pub use money::Micros;
pub use node::{Node, NodeCondition};
pub use node_class::{NodeClass, Subnet, roughly};
pub use node_pool::{Disruption, DisruptionBudget, Limits, NodePool, Template};
pub use overlay::{NodeOverlay, PriceChange};
pub use pod::{Affinity, HostPort, Owner, Pod, PodAffinityTerm, PodKey, PodPhase, PodVolume, Preferences, Protocol, TopologySpread};
pub use provider_drift::{ComesTo, Provided, provider_drift};
pub use quantity::{Quantity, QuantityError};
pub use requirement::{Operator, Requirement, RequirementError};
pub use requirements::{Incompatible, Requirements};
pub use resources::Resources;
pub use scorer::{ListPrice, PolicyRecord, Scorer, ScorerFailure};
pub use selector::{LabelSelector, SelectorOperator, SelectorRequirement};
pub use settings::{Cluster, DisruptionSettings, Features, Nomination, Packing, Settings};
pub use storage::{StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeClaimPhase, VolumeLimits};
pub use taint::{Effect, Taint, Toleration};
pub use time::{Duration, Timestamp};

/// Labels or annotations of an object, ordered by key.
pub type Labels = std::collections::BTreeMap<String, String>;
