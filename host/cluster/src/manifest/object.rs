//! What a file holds.

use whittle_model::{
    DaemonSet, LimitRange, Node, NodeClaim, NodeOverlay, NodePool, Pod, StorageClass, Volume, VolumeAttachment, VolumeClaim, VolumeLimits,
};

use crate::from::{
    CapacityBufferObject, DisruptionBudgetObject, NamespaceObject, NodeClassObject, PriorityClassObject, ScoringPolicyObject, Workload,
};

/// An object, converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A NodePool.
    NodePool(Box<NodePool>),
    /// An EC2NodeClass.
    NodeClass(Box<NodeClassObject>),
    /// A NodeClaim.
    NodeClaim(Box<NodeClaim>),
    /// A node.
    Node(Box<Node>),
    /// A pod.
    Pod(Box<Pod>),
    /// A Deployment, StatefulSet, ReplicaSet, ReplicationController or Job.
    Workload(Box<Workload>),
    /// A DaemonSet.
    DaemonSet(Box<DaemonSet>),
    /// A PodDisruptionBudget.
    DisruptionBudget(DisruptionBudgetObject),
    /// A PersistentVolumeClaim.
    VolumeClaim(Box<VolumeClaim>),
    /// A PersistentVolume.
    Volume(Box<Volume>),
    /// A StorageClass.
    StorageClass(Box<StorageClass>),
    /// A CSINode: how many volumes a node may hold.
    VolumeLimits(Box<VolumeLimits>),
    /// A VolumeAttachment.
    VolumeAttachment(Box<VolumeAttachment>),
    /// A LimitRange.
    LimitRange(Box<LimitRange>),
    /// A NodeOverlay.
    NodeOverlay(Box<NodeOverlay>),
    /// A CapacityBuffer.
    CapacityBuffer(Box<CapacityBufferObject>),
    /// A PodTemplate, as a pod of its name.
    PodTemplate(Box<Pod>),
    /// A PriorityClass.
    PriorityClass(PriorityClassObject),
    /// A Namespace.
    Namespace(NamespaceObject),
    /// A ScoringPolicy.
    ScoringPolicy(Box<ScoringPolicyObject>),
    /// An object that bears on no plan.
    Skipped {
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
        /// Its name, with its namespace when it has one.
        name: String,
    },
}

/// Something and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The file as the caller names it.
    pub file: String,
    /// Number of the document in the file, from 1.
    pub document: usize,
    /// Line of the object in the file, from 1.
    pub line: usize,
    /// Kind and name, such as `NodePool default` or `Deployment default/inflate`.
    pub name: String,
    /// What was read.
    pub object: T,
    /// Paths of the fields (or the kind) that would change where pods may run and that this version
    /// cannot read. Those of pods and templates stand in the pod as well.
    pub unsupported: Vec<String>,
    /// Fields that are accepted and not acted on by this version: path and why.
    pub not_acted_on: Vec<String>,
}

impl Located<Object> {
    /// What keeps this object from being simulated faithfully: `unsupported`, but nothing for a pod
    /// that is bound or has ended, since it is never planned for, and nothing for a workload whose
    /// pods are all there, since it makes none.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        match &self.object {
            Object::Pod(pod) if pod.node.is_some() || pod.terminal() => &[],
            Object::Workload(workload) if workload.present > 0 && workload.present >= workload.replicas => &[],
            Object::Pod(_)
            | Object::NodePool(_)
            | Object::NodeClass(_)
            | Object::NodeClaim(_)
            | Object::Node(_)
            | Object::Workload(_)
            | Object::DaemonSet(_)
            | Object::DisruptionBudget(_)
            | Object::VolumeClaim(_)
            | Object::Volume(_)
            | Object::StorageClass(_)
            | Object::VolumeLimits(_)
            | Object::VolumeAttachment(_)
            | Object::LimitRange(_)
            | Object::NodeOverlay(_)
            | Object::CapacityBuffer(_)
            | Object::PodTemplate(_)
            | Object::PriorityClass(_)
            | Object::Namespace(_)
            | Object::ScoringPolicy(_)
            | Object::Skipped { .. } => &self.unsupported,
        }
    }
}

/// What of these objects is accepted and not acted on, each thing once with the objects it stands
/// in: `NodePool default, NodePool gpu: spec.disruption.budgets: ...`.
#[must_use]
pub fn not_acted_on(objects: &[Located<Object>]) -> Vec<String> {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for object in objects {
        for what in &object.not_acted_on {
            match said.iter_mut().find(|(known, _)| known == what) {
                Some((_, names)) => names.push(&object.name),
                None => said.push((what, vec![&object.name])),
            }
        }
    }
    said.into_iter().map(|(what, names)| format!("{}: {what}", names.join(", "))).collect()
}
