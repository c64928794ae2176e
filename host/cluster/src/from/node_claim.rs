//! NodeClaims.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use whittle_model::{CapacityType, ClaimStatus, Labels, Micros, Milestone, NodeClaim, Timestamp, keys};

use super::{
    Cx,
    amounts::{duration_or_never, resources_of},
    names,
    node_pool::{EXPIRE_AFTER, grace, node_class},
    requirement, taints,
};
use crate::api;

/// A NodeClaim.
pub(crate) fn node_claim(written: &api::NodeClaim, cx: &mut Cx) -> NodeClaim {
    let meta = &written.metadata;
    let name = names::object_name(meta, cx);
    let labels = meta.labels.clone().unwrap_or_default();
    let mut status = cx.key("status", |cx| written.status.as_ref().map_or_else(ClaimStatus::default, |s| status(s, &labels, cx)));
    status.price = price(meta.annotations.as_ref());
    cx.key("spec", |cx| {
        let spec = &written.spec;
        NodeClaim {
            name,
            node_pool: labels.get(keys::NODE_POOL).cloned().unwrap_or_default(),
            node_class: node_class(&spec.node_class_ref, cx),
            annotations: meta.annotations.clone().unwrap_or_default(),
            taints: taints::taints("taints", spec.taints.as_deref(), cx),
            startup_taints: taints::taints("startupTaints", spec.startup_taints.as_deref(), cx),
            requirements: requirement::requirements(&spec.requirements, false, cx),
            requests: cx.key("resources", |cx| resources_of("requests", spec.resources.as_ref().and_then(|r| r.requests.as_ref()), cx)),
            expire_after: duration_or_never("expireAfter", spec.expire_after.as_deref(), EXPIRE_AFTER, cx),
            termination_grace_period: grace(spec.termination_grace_period.as_deref(), cx),
            uid: meta.uid.clone().unwrap_or_default(),
            created: names::timestamp(meta.creation_timestamp.as_ref()),
            deleting: meta.deletion_timestamp.is_some(),
            deleted_at: meta.deletion_timestamp.as_ref().map(|at| names::timestamp(Some(at))),
            labels,
            status,
        }
    })
}

fn status(written: &api::NodeClaimStatus, labels: &Labels, cx: &mut Cx) -> ClaimStatus {
    let conditions = written.conditions.as_deref().unwrap_or_default();
    let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let failed = conditions
        .iter()
        .find(|c| c.type_ == "Launched" && c.status != "True" && !c.reason.is_empty() && c.reason != "AwaitingReconciliation");
    let launched = reached(conditions, "Launched");
    ClaimStatus {
        registered: reached(conditions, "Registered"),
        initialized: reached(conditions, "Initialized"),
        provider_id: written.provider_id.clone().unwrap_or_default(),
        image: written.image_id.clone().unwrap_or_default(),
        node: written.node_name.clone().unwrap_or_default(),
        instance_type: if launched.is_some() { label(keys::INSTANCE_TYPE) } else { String::new() },
        zone: if launched.is_some() { label(keys::ZONE) } else { String::new() },
        capacity_type: CapacityType::parse(&label(keys::CAPACITY_TYPE)).filter(|_| launched.is_some()),
        capacity: resources_of("capacity", written.capacity.as_ref(), cx),
        allocatable: resources_of("allocatable", written.allocatable.as_ref(), cx),
        last_pod_event: written.last_pod_event_time.as_ref().map(|t| names::timestamp(Some(t))),
        launch_error: failed.map(|c| (c.reason.clone(), c.message.clone())),
        launched,
        drifted: reason(conditions, "Drifted"),
        consolidatable: reached(conditions, "Consolidatable"),
        disrupted: reason(conditions, "DisruptionReason"),
        drained: milestone(conditions, "Drained"),
        volumes_detached: milestone(conditions, "VolumesDetached"),
        instance_terminating: reached(conditions, "InstanceTerminating"),
        inconsistent: inconsistent(conditions),
        ..ClaimStatus::default()
    }
}

/// The reason of a condition that holds, and since when.
fn reason(conditions: &[Condition], name: &str) -> Option<(String, Timestamp)> {
    let condition = conditions.iter().find(|c| c.type_ == name && c.status == "True")?;
    Some((condition.reason.clone(), names::timestamp(Some(&condition.last_transition_time))))
}

fn milestone(conditions: &[Condition], name: &str) -> Milestone {
    let Some(condition) = conditions.iter().find(|c| c.type_ == name) else { return Milestone::Ahead };
    let at = names::timestamp(Some(&condition.last_transition_time));
    match (condition.status.as_str(), condition.reason.as_str()) {
        ("True", _) => Milestone::Done(at),
        ("False", _) => Milestone::GivenUp(at),
        (_, "AwaitingReconciliation") => Milestone::Ahead,
        (_, _) => Milestone::Since(at),
    }
}

fn inconsistent(conditions: &[Condition]) -> Option<(String, Timestamp)> {
    let condition = conditions.iter().find(|c| c.type_ == "ConsistentStateFound" && c.status == "False")?;
    let why = if condition.message.is_empty() { &condition.reason } else { &condition.message };
    Some((why.clone(), names::timestamp(Some(&condition.last_transition_time))))
}

/// What it cost when it was bought, as it was noted then; nothing for a claim that somebody else bought.
fn price(annotations: Option<&Labels>) -> Micros {
    let noted = annotations.and_then(|all| all.get(keys::PRICE)).and_then(|text| text.parse().ok());
    Micros(noted.unwrap_or(0))
}

/// When the condition became true.
fn reached(conditions: &[Condition], name: &str) -> Option<Timestamp> {
    let condition = conditions.iter().find(|c| c.type_ == name && c.status == "True")?;
    Some(names::timestamp(Some(&condition.last_transition_time)))
}
