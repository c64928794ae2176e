//! What objects say of each other: priorities by class, ReplicaSets that a Deployment keeps, live
//! pods of workloads.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{BufferSource, Pod};

use super::{Fault, Located, ManifestError, Object, Problem};
use crate::from::{Workload, WorkloadKind};

/// Priority classes that every cluster has.
const BUILT_IN: [(&str, i32); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Ties together objects of all files that were read. Pods and templates get the value of their
/// priority class; a ReplicaSet whose Deployment is among the objects is skipped; each workload
/// learns how many live pods of it are among the objects.
///
/// # Errors
/// Each object that names a PriorityClass that is not there.
pub fn link(mut objects: Vec<Located<Object>>) -> Result<Vec<Located<Object>>, ManifestError> {
    let classes = Classes::of(&objects);
    let mut problems = Vec::new();
    for located in &mut objects {
        let missing = template_of(&mut located.object).and_then(|(pod, field)| classes.apply(pod).map(|class| (class, field)));
        if let Some((class, field)) = missing {
            problems.push(Problem {
                file: located.file.clone(),
                document: located.document,
                line: located.line,
                object: located.name.clone(),
                field: field.to_owned(),
                fault: Fault::Reference(format!("there is no PriorityClass {class:?}; add it, or take the field away")),
            });
        }
    }
    if !problems.is_empty() {
        return Err(ManifestError { problems });
    }
    let replica_sets = replica_sets(&objects);
    skip_owned(&mut objects);
    let_be(&mut objects);
    count_present(&mut objects, &replica_sets);
    Ok(objects)
}

struct Classes {
    values: BTreeMap<String, i32>,
    default: Option<(String, i32)>,
}

impl Classes {
    fn of(objects: &[Located<Object>]) -> Self {
        let mut values: BTreeMap<String, i32> = BUILT_IN.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let mut default = None;
        for located in objects {
            if let Object::PriorityClass(class) = &located.object {
                values.insert(class.name.clone(), class.value);
                // Of several defaults the server takes the one of the smallest value.
                if class.global_default && default.as_ref().is_none_or(|(_, value)| class.value < *value) {
                    default = Some((class.name.clone(), class.value));
                }
            }
        }
        Self { values, default }
    }

    /// Gives a pod its priority; the class when there is none of that name. A live pod has its value.
    fn apply(&self, pod: &mut Pod) -> Option<String> {
        if !pod.uid.is_empty() {
            return None;
        }
        if pod.priority_class.is_empty() {
            if let Some((name, value)) = &self.default {
                (pod.priority_class, pod.priority) = (name.clone(), *value);
            }
            return None;
        }
        match self.values.get(&pod.priority_class) {
            Some(value) => {
                pod.priority = *value;
                None
            }
            None => Some(pod.priority_class.clone()),
        }
    }
}

/// The pod or template of an object, and the path of its priority class.
fn template_of(object: &mut Object) -> Option<(&mut Pod, &'static str)> {
    const TEMPLATE: &str = "spec.template.spec.priorityClassName";
    match object {
        Object::Pod(pod) => Some((pod, "spec.priorityClassName")),
        Object::Workload(workload) => Some((&mut workload.template, TEMPLATE)),
        Object::DaemonSet(set) => Some((&mut set.template, TEMPLATE)),
        Object::NodePool(_)
        | Object::NodeClass(_)
        | Object::NodeClaim(_)
        | Object::Node(_)
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
        | Object::Skipped { .. } => None,
    }
}

/// Namespace and name.
type Key = (String, String);

fn workloads(objects: &[Located<Object>]) -> impl Iterator<Item = &Workload> {
    objects.iter().filter_map(|o| if let Object::Workload(workload) = &o.object { Some(workload.as_ref()) } else { None })
}

fn key_of(workload: &Workload) -> Key {
    (workload.key.namespace.clone(), workload.key.name.clone())
}

/// The ReplicaSets that were read, each with its Deployment if it has one.
fn replica_sets(objects: &[Located<Object>]) -> BTreeMap<Key, Option<String>> {
    let all = workloads(objects).filter(|w| w.kind == WorkloadKind::ReplicaSet);
    all.map(|w| (key_of(w), w.owner.as_ref().filter(|o| o.kind == "Deployment").map(|o| o.name.clone()))).collect()
}

fn skip_owned(objects: &mut [Located<Object>]) {
    let deployments: BTreeSet<Key> = workloads(objects).filter(|w| w.kind == WorkloadKind::Deployment).map(key_of).collect();
    for located in objects {
        let Object::Workload(workload) = &located.object else { continue };
        let kept = workload.kind == WorkloadKind::ReplicaSet
            && workload
                .owner
                .as_ref()
                .is_some_and(|o| o.kind == "Deployment" && deployments.contains(&(workload.key.namespace.clone(), o.name.clone())));
        if kept {
            let name = workload.key.to_string();
            located.object = Object::Skipped { api_version: "apps/v1".to_owned(), kind: "ReplicaSet".to_owned(), name };
            located.unsupported.clear();
        }
    }
}

/// What cannot be read of a PodTemplate that no CapacityBuffer names is nobody's loss.
fn let_be(objects: &mut [Located<Object>]) {
    let buffers = objects.iter().filter_map(|o| if let Object::CapacityBuffer(buffer) = &o.object { Some(&buffer.spec) } else { None });
    let named: BTreeSet<Key> = buffers
        .filter_map(|spec| match &spec.of {
            BufferSource::PodTemplate(name) => Some((spec.key.namespace.clone(), name.clone())),
            BufferSource::Scalable(..) => None,
        })
        .collect();
    for located in objects {
        if let Object::PodTemplate(template) = &located.object
            && !named.contains(&(template.key.namespace.clone(), template.key.name.clone()))
        {
            located.unsupported.clear();
        }
    }
}

fn count_present(objects: &mut [Located<Object>], replica_sets: &BTreeMap<Key, Option<String>>) {
    let mut present: BTreeMap<(String, Key), u32> = BTreeMap::new();
    for located in objects.iter() {
        let Object::Pod(pod) = &located.object else { continue };
        let Some(owner) = pod.owner.as_ref().filter(|_| !pod.terminal() && !pod.deleting) else { continue };
        let key = (pod.key.namespace.clone(), owner.name.clone());
        if owner.kind == "ReplicaSet"
            && let Some(name) = deployment_of(&key, replica_sets)
        {
            *present.entry(("Deployment".to_owned(), (key.0.clone(), name))).or_default() += 1;
        }
        *present.entry((owner.kind.clone(), key)).or_default() += 1;
    }
    for located in objects {
        if let Object::Workload(workload) = &mut located.object {
            workload.present = present.get(&(workload.kind.name().to_owned(), key_of(workload))).copied().unwrap_or(0);
        }
    }
}

/// The Deployment of a ReplicaSet. One that was not read along is named after its Deployment and a
/// hash of the template.
fn deployment_of(replica_set: &Key, read: &BTreeMap<Key, Option<String>>) -> Option<String> {
    match read.get(replica_set) {
        Some(deployment) => deployment.clone(),
        None => replica_set.1.rsplit_once('-').map(|(name, _)| name.to_owned()),
    }
}
