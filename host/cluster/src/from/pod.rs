//! Pods and pod templates.

use k8s_openapi::{api::core::v1 as core, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use whittle_model::{Duration, Labels, Owner, Pod, PodKey, PodPhase, Preferences};

use super::{
    Cx, affinity, host_ports, names,
    pod_affinity::{self, Own},
    pod_limits, pod_volumes, requests, spread, taints,
};

/// How long a pod has to end when it does not say.
const GRACE: Duration = Duration::seconds(30);

/// A pod.
pub(crate) fn pod(written: &core::Pod, cx: &mut Cx) -> Pod {
    let meta = &written.metadata;
    let key = names::object_key(meta, cx);
    let labels = cx.key("metadata", |cx| names::labels(meta.labels.as_ref(), cx));
    let default = core::PodSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    let status = written.status.as_ref();
    let body = cx.key("spec", |cx| body(&key, &labels, spec, status, cx));
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
        ready: conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        started: status.and_then(|s| s.start_time.as_ref()).map(|at| names::timestamp(Some(at))),
        ends_at: meta.deletion_timestamp.as_ref().map(|at| names::timestamp(Some(at))),
        restarts: restarts(status),
        unsupported: std::mem::take(&mut cx.unsupported),
        key,
        ..body
    }
}

/// A pod as a template makes it: named after its owner, to be renamed by whoever makes it, and with it the claims of its
/// ephemeral volumes.
pub(super) fn template(key: &PodKey, owner_kind: &str, meta: Option<&ObjectMeta>, spec: Option<&core::PodSpec>, cx: &mut Cx) -> Pod {
    let labels = cx.key("metadata", |cx| names::labels(meta.and_then(|m| m.labels.as_ref()), cx));
    let default = core::PodSpec::default();
    let body = cx.key("spec", |cx| {
        let spec = spec.unwrap_or(&default);
        if spec.node_name.is_some() {
            cx.cannot_read("nodeName");
        }
        body(key, &labels, spec, None, cx)
    });
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
fn body(key: &PodKey, labels: &Labels, spec: &core::PodSpec, status: Option<&core::PodStatus>, cx: &mut Cx) -> Pod {
    if spec.containers.is_empty() {
        cx.broken_at("containers", "a pod needs at least one container");
    }
    cx.each("containers", &spec.containers, |cx, container| {
        if container.name.is_empty() {
            cx.broken("the container's name is missing");
        }
    });
    pod_limits::list_unsupported(spec, cx);
    let own = Own { namespace: &key.namespace, labels };
    let (near, away) = (pod_affinity::near(&own, spec, cx), pod_affinity::away(&own, spec, cx));
    Pod {
        requests: requests::requests(spec, status, cx),
        affinity: affinity::affinity(spec, cx),
        spread: spread::spread(labels, "topologySpreadConstraints", spec.topology_spread_constraints.as_deref().unwrap_or_default(), cx),
        pod_affinity: near.required,
        anti_affinity: away.required,
        preferences: Preferences { nodes: affinity::preferred_nodes(spec, cx), near: near.preferred, away: away.preferred },
        tolerations: taints::tolerations(spec.tolerations.as_deref(), cx),
        host_ports: host_ports::host_ports(spec, cx),
        volumes: pod_volumes::volumes(&key.name, spec, cx),
        resource_claims: requests::resource_claims(spec),
        grace: spec.termination_grace_period_seconds.map_or(GRACE, |seconds| Duration(seconds.max(1).saturating_mul(1000))),
        priority: spec.priority.unwrap_or(0),
        priority_class: spec.priority_class_name.clone().unwrap_or_default(),
        ..Pod::default()
    }
}

/// How often containers were started again.
fn restarts(status: Option<&core::PodStatus>) -> u32 {
    let containers = status.and_then(|s| s.container_statuses.as_ref());
    containers.into_iter().flatten().map(|container| u32::try_from(container.restart_count).unwrap_or(0)).sum()
}

fn phase(status: Option<&core::PodStatus>) -> PodPhase {
    match status.and_then(|s| s.phase.as_deref()) {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) | None => PodPhase::Pending,
    }
}
