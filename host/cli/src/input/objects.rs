//! Objects as manifests hold them, as the simulation takes them.

use whittle_cluster::{DisruptionBudgetObject, Object, Workload, WorkloadKind, yaml::Yaml};
use whittle_sim::{Budget, ObjectKind, ObjectName, ScenarioObject};

use super::catalogs::Catalogs;
use crate::policy::with_everywhere;

/// The object as the simulation takes it; `None` when nothing is simulated of its kind. `tree` is
/// what was written; the chain of a NodePool ends with the policies of `everywhere`.
///
/// # Errors
/// When no catalogue can be made for a node class.
pub fn scenario(object: &Object, tree: &Yaml, catalogs: &Catalogs, everywhere: &str) -> Result<Option<ScenarioObject>, String> {
    Ok(Some(match object {
        Object::NodePool(pool) => ScenarioObject::NodePool(Box::new(with_everywhere(pool, everywhere))),
        Object::NodeClass(class) => ScenarioObject::NodeClass(class.class.clone(), catalogs.of(class)?, class.comes_to.clone()),
        Object::NodeClaim(claim) => ScenarioObject::Claim(claim.clone()),
        Object::Node(node) => ScenarioObject::Node(node.clone()),
        Object::Pod(pod) => ScenarioObject::Pod(pod.clone()),
        Object::Workload(written) => ScenarioObject::Workload(Box::new(workload(written, tree))),
        Object::DaemonSet(set) => ScenarioObject::DaemonSet(set.clone()),
        Object::Namespace(namespace) => ScenarioObject::Namespace(namespace.name.clone(), namespace.labels.clone()),
        Object::VolumeClaim(claim) => ScenarioObject::VolumeClaim(claim.clone()),
        Object::Volume(volume) => ScenarioObject::Volume(volume.clone()),
        Object::StorageClass(class) => ScenarioObject::StorageClass(class.clone()),
        Object::VolumeLimits(limits) => ScenarioObject::VolumeLimits(limits.clone()),
        Object::VolumeAttachment(attachment) => ScenarioObject::VolumeAttachment(attachment.clone()),
        Object::LimitRange(range) => ScenarioObject::LimitRange(range.clone()),
        Object::NodeOverlay(overlay) => ScenarioObject::NodeOverlay(overlay.clone()),
        Object::CapacityBuffer(buffer) if buffer.active => ScenarioObject::CapacityBuffer(Box::new(buffer.spec.clone())),
        Object::PodTemplate(template) => ScenarioObject::PodTemplate(template.clone()),
        Object::DisruptionBudget(written) => ScenarioObject::Budget(budget(written)),
        // Priorities are in the pods already, policies in the chains; other buffers are somebody else's.
        Object::PriorityClass(_) | Object::ScoringPolicy(_) | Object::CapacityBuffer(_) | Object::Skipped { .. } => return Ok(None),
    }))
}

fn workload(written: &Workload, tree: &Yaml) -> whittle_sim::Workload {
    whittle_sim::Workload {
        kind: kind(written.kind),
        key: written.key.clone(),
        replicas: written.replicas,
        completions: written.completions,
        template: written.template.clone(),
        selector: written.selector.clone(),
        ordered: written.kind == WorkloadKind::StatefulSet && tree.text_at(&["spec", "podManagementPolicy"]) != Some("Parallel"),
        claims: written.volume_claims.iter().map(|claim| (claim.name.clone(), claim.storage_class.clone())).collect(),
    }
}

fn budget(written: &DisruptionBudgetObject) -> Budget {
    Budget {
        key: written.key.clone(),
        selector: written.selector.clone(),
        min_available: written.min_available.clone(),
        max_unavailable: written.max_unavailable.clone(),
        always_allow_unready: written.always_allow_unready,
    }
}

const fn kind(kind: WorkloadKind) -> whittle_sim::WorkloadKind {
    match kind {
        WorkloadKind::Deployment => whittle_sim::WorkloadKind::Deployment,
        WorkloadKind::StatefulSet => whittle_sim::WorkloadKind::StatefulSet,
        WorkloadKind::ReplicaSet => whittle_sim::WorkloadKind::ReplicaSet,
        WorkloadKind::ReplicationController => whittle_sim::WorkloadKind::ReplicationController,
        WorkloadKind::Job => whittle_sim::WorkloadKind::Job,
    }
}

/// The name by which a story calls the object; `None` for kinds that a story does not know.
#[must_use]
pub fn name(object: &Object) -> Option<ObjectName> {
    let cluster_wide = |kind, name: &str| ObjectName { kind, key: whittle_model::PodKey::new("", name) };
    Some(match object {
        Object::NodePool(pool) => cluster_wide(ObjectKind::NodePool, &pool.name),
        Object::NodeClass(class) => cluster_wide(ObjectKind::NodeClass, &class.class.name),
        Object::NodeClaim(claim) => cluster_wide(ObjectKind::NodeClaim, &claim.name),
        Object::Node(node) => cluster_wide(ObjectKind::Node, &node.name),
        Object::Namespace(namespace) => cluster_wide(ObjectKind::Namespace, &namespace.name),
        Object::Pod(pod) => ObjectName { kind: ObjectKind::Pod, key: pod.key.clone() },
        Object::Workload(workload) => ObjectName { kind: ObjectKind::Workload(kind(workload.kind)), key: workload.key.clone() },
        Object::DaemonSet(set) => ObjectName { kind: ObjectKind::DaemonSet, key: set.key.clone() },
        Object::CapacityBuffer(buffer) => ObjectName { kind: ObjectKind::CapacityBuffer, key: buffer.spec.key.clone() },
        Object::VolumeClaim(_)
        | Object::Volume(_)
        | Object::StorageClass(_)
        | Object::VolumeLimits(_)
        | Object::VolumeAttachment(_)
        | Object::LimitRange(_)
        | Object::NodeOverlay(_)
        | Object::PodTemplate(_)
        | Object::DisruptionBudget(_)
        | Object::PriorityClass(_)
        | Object::ScoringPolicy(_)
        | Object::Skipped { .. } => return None,
    })
}

/// Whether the object is part of a running cluster, not something a person applies: a node, a
/// claim, a bound pod.
#[must_use]
pub fn is_running(object: &Object) -> bool {
    match object {
        Object::Node(_) | Object::NodeClaim(_) => true,
        Object::Pod(pod) => pod.node.is_some(),
        Object::NodePool(_)
        | Object::NodeClass(_)
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
        | Object::Skipped { .. } => false,
    }
}
