//! What the engine wants done. Doors carry actions out; what came of them returns as an event.

use serde::{Deserialize, Serialize};

use crate::{ClaimStatus, Labels, NodeClaim, PodKey, Taint};

/// One thing to do. Each may be carried out twice without harm: "already so" is success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Write a new claim.
    CreateClaim(Box<NodeClaim>),
    /// Buy an instance for a claim that the watch has shown.
    Launch {
        /// The claim's name.
        claim: String,
        /// Whether an instance may have been bought for it already, on an order whose answer was lost: instances
        /// that carry its launch group are looked for first.
        adopt: bool,
    },
    /// Write what became of a claim.
    UpdateClaim {
        /// The claim's name.
        claim: String,
        /// Its labels, whole.
        labels: Labels,
        /// Its status, whole.
        status: Box<ClaimStatus>,
    },
    /// Make a node that joined its claim's own: labels, annotations and taints in, the
    /// unregistered taint out.
    RegisterNode {
        /// The node's name.
        node: String,
        /// The claim's name.
        claim: String,
        /// Labels to set.
        labels: Labels,
        /// Taints it has afterwards, whole.
        taints: Vec<Taint>,
    },
    /// Label a node as initialized.
    InitializeNode {
        /// The node's name.
        node: String,
    },
    /// Have kube-scheduler try this node first for the pod, and hold the room
    /// (`status.nominatedNodeName`).
    Nominate {
        /// The pod.
        pod: PodKey,
        /// The node's name.
        node: String,
    },
    /// Set annotations of a claim; those that are not named stay.
    AnnotateClaim {
        /// The claim's name.
        claim: String,
        /// Annotations to set.
        annotations: Labels,
    },
    /// Set labels of a node; those that are not named stay.
    LabelNode {
        /// The node's name.
        node: String,
        /// Labels to set.
        labels: Labels,
    },
    /// Delete a claim.
    DeleteClaim {
        /// The claim's name.
        claim: String,
        /// Why, in one word: `Empty`, `Expired`, `Unhealthy`, `NodeDeleted`, `LaunchTimeout`, `RegistrationTimeout`,
        /// `InitializationTimeout`, `InsufficientCapacity`, `NodeClassNotReady`, `InstanceGone`, `GarbageCollected`, or
        /// the name of an interruption.
        reason: String,
    },
    /// Keep new pods and new connections off a node that is going: taint `karpenter.sh/disrupted:NoSchedule`, label
    /// `node.kubernetes.io/exclude-from-external-load-balancers` with value `karpenter`.
    CordonNode {
        /// The node's name.
        node: String,
    },
    /// Keep new pods off a node that is to go once its replacement is ready: the same taint, and nothing else.
    TaintNode {
        /// The node's name.
        node: String,
    },
    /// Let pods onto a node again that was to go and stays: taint `karpenter.sh/disrupted` off.
    UncordonNode {
        /// The node's name.
        node: String,
    },
    /// Ask a pod to leave through the eviction API, which may refuse for a PodDisruptionBudget. It is asked again.
    Evict {
        /// The pod.
        pod: PodKey,
        /// Its uid: another pod of this name is not meant.
        uid: String,
    },
    /// Delete a pod with this grace period, whatever PodDisruptionBudgets say. A pod that is being deleted already may
    /// be given less time so, never more.
    DeletePod {
        /// The pod.
        pod: PodKey,
        /// Its uid: another pod of this name is not meant.
        uid: String,
        /// Seconds it has to end, at least 1: with 0 its object would go before its containers.
        grace_seconds: i64,
    },
    /// End the instance of a claim.
    Terminate {
        /// The claim's name.
        claim: String,
    },
    /// Tag the instance of a registered claim with the names of claim and node.
    TagInstance {
        /// The claim's name.
        claim: String,
    },
    /// End an instance that no claim stands for.
    TerminateStray {
        /// `aws:///<zone>/<instance id>`.
        provider_id: String,
    },
    /// Let go of a node object whose instance has ended (drop its finalizer).
    ReleaseNode {
        /// The node's name.
        node: String,
    },
    /// Let go of a claim whose instance has ended (drop its finalizer).
    ReleaseClaim {
        /// The claim's name.
        claim: String,
    },
}
