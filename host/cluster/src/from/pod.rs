//! Pods and pod templates.

use k8s_openapi::{api::core::v1 as core, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use whittle_model::{Owner, Pod, PodKey, PodPhase};

use super::{Cx, affinity, names, pod_limits, requests, taints};

/// A pod.
pub(crate) fn pod(written: &core::Pod, cx: &mut Cx) -> Pod {
    let meta = &written.metadata;
    let key = names::object_key(meta, cx);
    let labels = cx.key("metadata", |cx| names::labels(meta.labels.as_ref(), cx));
    let default = core::PodSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    let status = written.status.as_ref();
    let body = cx.key("spec", |cx| body(&key.namespace, spec, status, false, cx));
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    Pod {
        uid: meta.uid.clone().unwrap_or_default(),
        labels,
        annotations: meta.annotations.clone().unwrap_or_default(),
        owner: names::owner(meta),
        created: names::timestamp(meta.creation_timestamp.as_ref()),
        phase: phase(status),
        node: spec.node_name.clone().filter(|n| !n.is_empty()),
        nominated: status.and_then(|s| s.nominated_node_name.clone()).filter(|n| !n.is_empty()),
        unschedulable: conditions
            .iter()
            .any(|c| c.type_ == "PodScheduled" && c.status == "False" && c.reason.as_deref() == Some("Unschedulable")),
        deleting: meta.deletion_timestamp.is_some(),
        unsupported: std::mem::take(&mut cx.unsupported),
        key,
        ..body
    }
}

/// A pod as a template makes it: named after its owner, to be renamed by whoever makes it.
pub(super) fn template(key: &PodKey, owner_kind: &str, meta: Option<&ObjectMeta>, spec: Option<&core::PodSpec>, cx: &mut Cx) -> Pod {
    let labels = cx.key("metadata", |cx| names::labels(meta.and_then(|m| m.labels.as_ref()), cx));
    let default = core::PodSpec::default();
    let body = cx.key("spec", |cx| body(&key.namespace, spec.unwrap_or(&default), None, true, cx));
    Pod {
        key: key.clone(),
        labels,
        annotations: meta.and_then(|m| m.annotations.clone()).unwrap_or_default(),
        owner: Some(Owner { kind: owner_kind.to_owned(), name: key.name.clone() }),
        unsupported: std::mem::take(&mut cx.unsupported),
        ..body
    }
}

/// What pods and templates have in common.
fn body(namespace: &str, spec: &core::PodSpec, status: Option<&core::PodStatus>, in_template: bool, cx: &mut Cx) -> Pod {
    if spec.containers.is_empty() {
        cx.broken_at("containers", "a pod needs at least one container");
    }
    cx.each("containers", &spec.containers, |cx, container| {
        if container.name.is_empty() {
            cx.broken("the container's name is missing");
        }
    });
    pod_limits::list_unsupported(spec, in_template, cx);
    Pod {
        requests: requests::requests(spec, status, cx),
        affinity: affinity::affinity(spec, cx),
        anti_affinity: affinity::anti_affinity(namespace, spec, cx),
        tolerations: taints::tolerations(spec.tolerations.as_deref(), cx),
        priority: spec.priority.unwrap_or(0),
        priority_class: spec.priority_class_name.clone().unwrap_or_default(),
        ..Pod::default()
    }
}

fn phase(status: Option<&core::PodStatus>) -> PodPhase {
    match status.and_then(|s| s.phase.as_deref()) {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) | None => PodPhase::Pending,
    }
}
