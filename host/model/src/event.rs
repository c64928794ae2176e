//! What the engine is told. Everything a plan reads enters here, so that a journal replays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    CapacityType, Catalog, DaemonSet, Labels, Micros, Node, NodeClaim, NodeClass, NodePool, OfferingKey, Pod, PodKey, Resources, Settings,
};

/// Something that happened, in the order the doors saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Settings at start, or changed.
    Settings(Settings),
    /// What a NodeClass can buy, new or changed.
    Catalog(Arc<Catalog>),
    /// One price changed.
    Price(OfferingKey, Micros),
    /// The first lists of every kind are in: planning may begin.
    Synced,
    /// A pod is as given.
    Pod(Box<Pod>),
    /// A pod is gone.
    PodGone(PodKey),
    /// A node is as given.
    Node(Box<Node>),
    /// A node is gone.
    NodeGone(String),
    /// A claim is as given.
    Claim(Box<NodeClaim>),
    /// A claim is gone.
    ClaimGone(String),
    /// A pool is as given.
    NodePool(Box<NodePool>),
    /// A pool is gone.
    NodePoolGone(String),
    /// A node class is as given.
    NodeClass(NodeClass),
    /// A node class is gone.
    NodeClassGone(String),
    /// A DaemonSet is as given.
    DaemonSet(Box<DaemonSet>),
    /// A DaemonSet is gone.
    DaemonSetGone(PodKey),
    /// A namespace is as given: its name and labels.
    Namespace(String, Labels),
    /// A namespace is gone.
    NamespaceGone(String),
    /// What an action came to.
    Outcome(Box<Outcome>),
}

/// What an action came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// An instance was bought for a claim.
    Launched(Launched),
    /// No instance could be bought for the claim.
    LaunchFailed {
        /// The claim's name.
        claim: String,
        /// Why.
        failure: LaunchFailure,
    },
    /// The instance of a claim does not exist (any more).
    InstanceGone {
        /// The claim's name.
        claim: String,
    },
}

/// An instance that was bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The claim's name.
    pub claim: String,
    /// `aws:///<zone>/<instance id>`.
    pub provider_id: String,
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// Its price of an hour.
    pub price: Micros,
    /// What it has.
    pub capacity: Resources,
    /// What pods can use of it.
    pub allocatable: Resources,
}

/// Why no instance was bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchFailure {
    /// Everything the claim allows is sold out; these were tried.
    InsufficientCapacity(Vec<OfferingKey>),
    /// The node class may not be launched from.
    NodeClassNotReady(String),
    /// Something else: reason and message. It is tried again until the launch times out.
    Other(String, String),
}
