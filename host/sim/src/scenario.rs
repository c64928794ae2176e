//! What a simulation is given: objects in the model's terms, and who reads more of them from files.

use std::sync::Arc;

use whittle_model::{
    BufferSpec, Catalog, ComesTo, DaemonSet, LabelSelector, Labels, LimitRange, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Pod,
    PodKey, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeLimits,
};

/// Kinds of workloads that keep a number of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// Its pods belong to a ReplicaSet named after their template.
    Deployment,
    /// Its pods are numbered and, if ordered, come up one after another.
    StatefulSet,
    /// A ReplicaSet of its own.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// Its pods may end well. A pod runs as long as its template's annotation
    /// `whittle.sh/runs-for` says (such as `5m`), without it until the story ends.
    Job,
}

impl WorkloadKind {
    /// As Kubernetes spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
            Self::Job => "Job",
        }
    }

    /// The kind of the controller that its pods name as their owner.
    #[must_use]
    pub const fn owner_of_pods(self) -> &'static str {
        match self {
            Self::Deployment => "ReplicaSet",
            Self::StatefulSet | Self::ReplicaSet | Self::ReplicationController | Self::Job => self.name(),
        }
    }
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Namespace and name.
    pub key: PodKey,
    /// Pods wanted at a time; of a Job its parallelism.
    pub replicas: u32,
    /// Of a Job: pods that must still end well; `None` for other kinds and for work queues.
    pub completions: Option<u32>,
    /// A pod as its template makes it.
    pub template: Pod,
    /// The pods that are its own, among those whose owner is of the right kind.
    pub selector: LabelSelector,
    /// Of a StatefulSet: whether a pod waits until all before it run (`OrderedReady`).
    pub ordered: bool,
    /// Of a StatefulSet: its claim templates, each with its name and storage class (`None` is the default class).
    pub claims: Vec<(String, Option<String>)>,
}

/// A PodDisruptionBudget. Counts and percentages are as written; with neither, one pod may be away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Namespace and name.
    pub key: PodKey,
    /// The pods meant; `None` is no pod.
    pub selector: Option<LabelSelector>,
    /// Pods that must stay.
    pub min_available: Option<String>,
    /// Pods that may be away.
    pub max_unavailable: Option<String>,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    pub always_allow_unready: bool,
}

/// One object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScenarioObject {
    /// A NodePool.
    NodePool(Box<NodePool>),
    /// A node class, what it can buy, and what it comes to in AWS.
    NodeClass(NodeClass, Arc<Catalog>, ComesTo),
    /// A workload.
    Workload(Box<Workload>),
    /// A DaemonSet.
    DaemonSet(Box<DaemonSet>),
    /// A pod of its own, or one that a controller made earlier.
    Pod(Box<Pod>),
    /// A node that is there already.
    Node(Box<Node>),
    /// A claim that is there already.
    Claim(Box<NodeClaim>),
    /// A namespace and its labels.
    Namespace(String, Labels),
    /// A StorageClass.
    StorageClass(Box<StorageClass>),
    /// A PersistentVolume.
    Volume(Box<Volume>),
    /// A PersistentVolumeClaim.
    VolumeClaim(Box<VolumeClaim>),
    /// How many volumes a node may hold.
    VolumeLimits(Box<VolumeLimits>),
    /// A volume that a node holds.
    VolumeAttachment(Box<VolumeAttachment>),
    /// What containers of a namespace ask for when they say nothing.
    LimitRange(Box<LimitRange>),
    /// A NodeOverlay.
    NodeOverlay(Box<NodeOverlay>),
    /// A CapacityBuffer.
    CapacityBuffer(Box<BufferSpec>),
    /// A PodTemplate, as a pod of its name.
    PodTemplate(Box<Pod>),
    /// A PodDisruptionBudget.
    Budget(Budget),
}

/// Where the facts of a simulation come from, one line each; shown with every result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Given {
    /// Where prices come from.
    pub prices: String,
    /// The region whose price list was used.
    pub price_region: String,
    /// Where spot prices come from.
    pub spot: String,
}

/// The world a simulation starts from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scenario {
    /// What is there before the story begins.
    pub objects: Vec<ScenarioObject>,
    /// Where its facts come from.
    pub given: Given,
}

/// Kinds that a story may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A workload of this kind.
    Workload(WorkloadKind),
    /// A DaemonSet.
    DaemonSet,
    /// A pod.
    Pod,
    /// A node.
    Node,
    /// A claim.
    NodeClaim,
    /// A NodePool.
    NodePool,
    /// An EC2NodeClass.
    NodeClass,
    /// A CapacityBuffer.
    CapacityBuffer,
    /// A namespace, with all that is in it.
    Namespace,
}

impl ObjectKind {
    /// The kind that `kubectl` understands by this word, in any case: singular, plural or short.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "deployment" | "deployments" | "deploy" => Self::Workload(WorkloadKind::Deployment),
            "statefulset" | "statefulsets" | "sts" => Self::Workload(WorkloadKind::StatefulSet),
            "replicaset" | "replicasets" | "rs" => Self::Workload(WorkloadKind::ReplicaSet),
            "replicationcontroller" | "replicationcontrollers" | "rc" => Self::Workload(WorkloadKind::ReplicationController),
            "job" | "jobs" => Self::Workload(WorkloadKind::Job),
            "daemonset" | "daemonsets" | "ds" => Self::DaemonSet,
            "pod" | "pods" | "po" => Self::Pod,
            "node" | "nodes" | "no" => Self::Node,
            "nodeclaim" | "nodeclaims" => Self::NodeClaim,
            "nodepool" | "nodepools" => Self::NodePool,
            "ec2nodeclass" | "ec2nodeclasses" | "ec2nc" | "ec2ncs" => Self::NodeClass,
            "capacitybuffer" | "capacitybuffers" | "cb" => Self::CapacityBuffer,
            "namespace" | "namespaces" | "ns" => Self::Namespace,
            _ => return None,
        })
    }

    /// As Kubernetes spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workload(kind) => kind.name(),
            Self::DaemonSet => "DaemonSet",
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::NodeClaim => "NodeClaim",
            Self::NodePool => "NodePool",
            Self::NodeClass => "EC2NodeClass",
            Self::CapacityBuffer => "CapacityBuffer",
            Self::Namespace => "Namespace",
        }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub const fn namespaced(self) -> bool {
        matches!(self, Self::Workload(_) | Self::DaemonSet | Self::Pod | Self::CapacityBuffer)
    }
}

/// An object that a story names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its kind.
    pub kind: ObjectKind,
    /// Namespace (empty for kinds without) and name.
    pub key: PodKey,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.kind.name().to_ascii_lowercase();
        if self.key.namespace.is_empty() { write!(f, "{kind}/{}", self.key.name) } else { write!(f, "{kind}/{}", self.key) }
    }
}

/// Reads the manifests that a story names. Errors are whole sentences for people.
pub trait Manifests {
    /// The objects of a file, in its order.
    ///
    /// # Errors
    /// When the file or an object in it cannot be read.
    fn load(&mut self, file: &str) -> Result<Vec<ScenarioObject>, String>;

    /// An object read earlier, with the value at `path` replaced.
    ///
    /// # Errors
    /// When there is no such object or path, or the value does not suit it.
    fn set(&mut self, object: &ObjectName, path: &str, value: &str) -> Result<Vec<ScenarioObject>, String>;
}
