//! What became of a claim, as the patches that say so.
//!
//! What must not enter: requests.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde_json::{Value, json};
use whittle_model::{ClaimStatus, Labels, Milestone, Timestamp, keys};

use super::claim::FINALIZER;
use super::conditions::{ConditionStatus, Conditions, Standing};
use super::patch::{Fields, ObjectPatch, amounts, list, missing};
use super::time::time;
use crate::api;

/// The milestones of a claim, which `Ready` depends on.
const MILESTONES: [&str; 3] = ["Launched", "Registered", "Initialized"];

/// The patches that give the claim `live` these labels and this status. Labels and conditions that others set
/// stay. `more` are conditions besides the milestones, or closer words on one that is not reached.
pub(super) fn update(
    live: &api::NodeClaim,
    labels: &Labels,
    status: &ClaimStatus,
    more: &[Standing],
    now: Timestamp,
) -> Option<ObjectPatch> {
    let mut metadata = Fields::default();
    metadata.object("labels", missing(labels, live.metadata.labels.as_ref()));
    metadata.object("annotations", missing(&noted(status), live.metadata.annotations.as_ref()));
    // A claim that somebody else made has none: without it a deletion would leave its node and its instance behind.
    if let Some(finalizers) = with_finalizer(&live.metadata, FINALIZER) {
        metadata.set("finalizers", finalizers);
    }
    let was = live.status.clone().unwrap_or_default();
    let mut fields = Fields::default();
    fields.text("nodeName", &status.node, was.node_name.as_ref());
    fields.text("providerID", &status.provider_id, was.provider_id.as_ref());
    fields.text("imageID", &status.image, was.image_id.as_ref());
    if status.launched.is_some() {
        fields.object("capacity", amounts(&list(&status.capacity), was.capacity.as_ref()));
        fields.object("allocatable", amounts(&list(&status.allocatable), was.allocatable.as_ref()));
    }
    if let Some(at) = status.last_pod_event.map(time).filter(|at| was.last_pod_event_time.as_ref() != Some(at)) {
        fields.set("lastPodEventTime", json!(at));
    }
    if let Some(conditions) = conditions(live, was.conditions.as_ref(), status, more, now) {
        fields.set("conditions", json!(conditions));
    }
    ObjectPatch { object: metadata.under("metadata"), status: fields.under("status") }.unless_empty()
}

/// What has no field of its own in a NodeClaim.
fn noted(status: &ClaimStatus) -> BTreeMap<String, String> {
    let bought = status.launched.is_some() && status.price.0 > 0;
    bought.then(|| (keys::PRICE.to_owned(), status.price.0.to_string())).into_iter().collect()
}

fn conditions(
    live: &api::NodeClaim,
    was: Option<&Vec<Condition>>,
    status: &ClaimStatus,
    more: &[Standing],
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let meta = &live.metadata;
    let mut all = Conditions::new(was, meta.generation, meta.creation_timestamp.as_ref(), now);
    let reached = [status.launched, status.registered, status.initialized];
    for (kind, at) in MILESTONES.into_iter().zip(reached) {
        let closer = more.iter().find(|standing| standing.kind == kind);
        match at {
            Some(at) => all.set(&Standing::holds(kind), Some(at)),
            None => all.set(&closer.cloned().unwrap_or_else(|| pending(kind, status)), None),
        }
    }
    for (standing, at) in stages(status) {
        all.set(&standing, at);
    }
    let had = was.into_iter().flatten().any(|c| c.type_ == "Initialized" && c.status == "True");
    consistency(&mut all, status, !had);
    for standing in more.iter().filter(|standing| !MILESTONES.contains(&standing.kind.as_str())) {
        let have = all.get(&standing.kind).is_some();
        if have || standing.status != ConditionStatus::Absent {
            all.set(standing, None);
        }
    }
    all.sum_up(&MILESTONES);
    all.changed(was)
}

/// The conditions of a claim's later life, in the words of Karpenter; those that nothing is known of are absent.
fn stages(status: &ClaimStatus) -> [(Standing, Option<Timestamp>); 6] {
    [
        because("Drifted", status.drifted.as_ref()),
        since("Consolidatable", status.consolidatable),
        because("DisruptionReason", status.disrupted.as_ref()),
        stage("Drained", "Draining", status.drained),
        stage("VolumesDetached", "AwaitingVolumeDetachment", status.volumes_detached),
        since("InstanceTerminating", status.instance_terminating),
    ]
}

fn because(kind: &str, why: Option<&(String, Timestamp)>) -> (Standing, Option<Timestamp>) {
    why.map_or_else(|| (Standing::absent(kind), None), |(reason, at)| (Standing::holds_for(kind, reason), Some(*at)))
}

fn since(kind: &str, at: Option<Timestamp>) -> (Standing, Option<Timestamp>) {
    (at.map_or_else(|| Standing::absent(kind), |_| Standing::holds(kind)), at)
}

fn stage(kind: &str, under_way: &str, milestone: Milestone) -> (Standing, Option<Timestamp>) {
    const OVER: &str = "TerminationGracePeriodElapsed";
    match milestone {
        Milestone::Ahead => (Standing::absent(kind), None),
        Milestone::Since(at) => (Standing::unknown(kind, under_way, under_way), Some(at)),
        Milestone::GivenUp(at) => (Standing::fails(kind, OVER, OVER), Some(at)),
        Milestone::Done(at) => (Standing::holds(kind), Some(at)),
    }
}

/// A node is looked at when it is initialized, and again and again: what was found is said with that milestone, and later
/// only where something else was said. It is not worth a write of its own.
fn consistency(all: &mut Conditions, status: &ClaimStatus, fresh: bool) {
    const KIND: &str = "ConsistentStateFound";
    match &status.inconsistent {
        Some((why, at)) => all.set(&Standing::fails(KIND, "ConsistencyCheckFailed", why), Some(*at)),
        None if all.get(KIND).is_some_and(|c| c.status != "True") => all.set(&Standing::holds(KIND), None),
        None if fresh && status.initialized.is_some() => all.set(&Standing::holds(KIND), status.initialized),
        None => {}
    }
}

/// A milestone that is not reached.
fn pending(kind: &str, status: &ClaimStatus) -> Standing {
    match (kind, &status.launch_error) {
        ("Launched", Some((reason, message))) => Standing::unknown(kind, reason, message),
        ("Registered" | "Initialized", _) if status.launched.is_some() && status.registered.is_none() => {
            Standing::unknown(kind, "NodeNotFound", "Node not registered with cluster")
        }
        (_, _) => Standing::awaited(kind),
    }
}

/// The finalizers with `finalizer` among them; `None` when it is there, or the object goes and may be given none.
pub(super) fn with_finalizer(meta: &ObjectMeta, finalizer: &str) -> Option<Value> {
    let had = meta.finalizers.clone().unwrap_or_default();
    let lacks = meta.deletion_timestamp.is_none() && !had.iter().any(|f| f == finalizer);
    lacks.then(|| json!([had, vec![finalizer.to_owned()]].concat()))
}

/// The patch that drops `finalizer`, if the object has it; it holds only for the object as it was seen.
pub(super) fn without_finalizer(meta: &ObjectMeta, finalizer: &str) -> Option<Value> {
    let all = meta.finalizers.as_deref().unwrap_or_default();
    let left: Vec<&String> = all.iter().filter(|f| *f != finalizer).collect();
    (left.len() < all.len()).then(|| {
        let finalizers = if left.is_empty() { Value::Null } else { json!(left) };
        json!({ "metadata": { "finalizers": finalizers, "resourceVersion": meta.resource_version, "uid": meta.uid } })
    })
}

#[cfg(test)]
#[path = "../../tests_unit/write_claim_status.rs"]
mod tests;
