//! What the engine is told. Everything a plan reads enters here, so that a journal replays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    CapacityBuffer, CapacityType, Catalog, DaemonSet, Labels, LimitRange, Micros, Node, NodeClaim, NodeClass, NodeOverlay, NodePool,
    OfferingKey, Pod, PodDisruptionBudget, PodKey, Resources, Settings, StorageClass, Timestamp, Volume, VolumeAttachment, VolumeClaim,
    VolumeLimits,
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
    /// A PersistentVolumeClaim is as given.
    VolumeClaim(Box<VolumeClaim>),
    /// A PersistentVolumeClaim is gone.
    VolumeClaimGone(PodKey),
    /// A PersistentVolume is as given.
    Volume(Box<Volume>),
    /// A PersistentVolume is gone.
    VolumeGone(String),
    /// A StorageClass is as given.
    StorageClass(Box<StorageClass>),
    /// A StorageClass is gone.
    StorageClassGone(String),
    /// A node may hold so many volumes.
    VolumeLimits(Box<VolumeLimits>),
    /// The volume limits of a node are gone.
    VolumeLimitsGone(String),
    /// A node holds a volume.
    VolumeAttachment(Box<VolumeAttachment>),
    /// A node let go of a volume: the attachment's name.
    VolumeAttachmentGone(String),
    /// A PodDisruptionBudget is as given.
    PodDisruptionBudget(Box<PodDisruptionBudget>),
    /// A PodDisruptionBudget is gone.
    PodDisruptionBudgetGone(PodKey),
    /// A LimitRange is as given.
    LimitRange(Box<LimitRange>),
    /// A LimitRange is gone.
    LimitRangeGone(PodKey),
    /// A NodeOverlay is as given.
    NodeOverlay(Box<NodeOverlay>),
    /// A NodeOverlay is gone.
    NodeOverlayGone(String),
    /// A capacity buffer is as given, its template and size found out.
    CapacityBuffer(Box<CapacityBuffer>),
    /// A capacity buffer is gone.
    CapacityBufferGone(PodKey),
    /// What an action came to.
    Outcome(Box<Outcome>),
    /// All instances that carry the cluster's tag, as of one reading of the whole list.
    Instances(Vec<Instance>),
    /// AWS says that an instance will not stay.
    Interrupted {
        /// `aws:///<zone>/<instance id>`; the zone may be empty where the message does not name it.
        provider_id: String,
        /// What AWS says.
        what: Interruption,
    },
    /// What AWS has for a claim no longer is what its EC2NodeClass asks for, or is again.
    ProviderDrift {
        /// The claim's name.
        claim: String,
        /// `AMIDrift`, `SubnetDrift`, `SecurityGroupDrift`, `CapacityReservationDrift`, `PlacementGroupDrift`; `None`
        /// when nothing differs.
        reason: Option<String>,
    },
    /// A policy's module was loaded, or another took its place: pods that wait are planned for again.
    PolicyLoaded {
        /// Name of the ScoringPolicy.
        name: String,
        /// `sha256:` and the hash of the module.
        digest: String,
    },
    /// An object could not be read. Set aside never means absent: a pod keeps its node and its room, the nodes of
    /// a claim or pool stay, and nothing is collected as garbage while something of its kind cannot be read.
    SetAside {
        /// What it is.
        kind: ObjectKind,
        /// Its name; namespace and name, with a slash between, where the kind lives in namespaces.
        name: String,
        /// Of a pod or claim: its node, if that could be read.
        node: Option<String>,
        /// Why, with the field.
        why: String,
    },
}

/// Kinds of objects that a plan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// Pod.
    Pod,
    /// Node.
    Node,
    /// NodeClaim.
    NodeClaim,
    /// NodePool.
    NodePool,
    /// EC2NodeClass.
    NodeClass,
    /// DaemonSet.
    DaemonSet,
    /// PersistentVolumeClaim.
    VolumeClaim,
    /// PersistentVolume.
    Volume,
    /// StorageClass.
    StorageClass,
    /// PodDisruptionBudget.
    PodDisruptionBudget,
    /// NodeOverlay.
    NodeOverlay,
}

/// An instance that carries the cluster's tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// `aws:///<zone>/<instance id>`.
    pub provider_id: String,
    /// When it was launched.
    pub launched: Timestamp,
    /// The launch group it was bought for, by its tag; `None` when it has none.
    pub group: Option<String>,
    /// The claim it is tagged with, which happens once its node is registered.
    pub claim: Option<String>,
    /// False once it is shutting down.
    pub running: bool,
}

/// What AWS says of an instance that will not stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Interruption {
    /// Spot capacity is taken back in two minutes.
    SpotInterrupted,
    /// Spot capacity is more likely than before to be taken back.
    RebalanceRecommendation,
    /// It stops or has stopped.
    InstanceStopped,
    /// It ends or has ended.
    InstanceTerminated,
    /// Maintenance or retirement is scheduled.
    ScheduledChange,
    /// Its capacity reservation is taken back.
    CapacityReservationInterrupted,
    /// Its own status check has failed for two minutes.
    InstanceStatus,
    /// The status check of its host has failed for two minutes.
    SystemStatus,
    /// A scheduled event stands in its status.
    EventStatus,
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
    /// The capacity reservation it was launched into.
    #[serde(default)]
    pub reservation: Option<String>,
    /// Its price of an hour.
    pub price: Micros,
    /// What it has.
    pub capacity: Resources,
    /// What pods can use of it.
    pub allocatable: Resources,
    /// The machine image it booted from; empty when unknown.
    pub image: String,
    /// Offerings that answered that they are sold out before this one was bought.
    pub sold_out: Vec<OfferingKey>,
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
