//! What is written into Nodes.
//!
//! What must not enter: requests.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use serde_json::{Map, Value, json};
use whittle_model::{Labels, keys};

use super::claim::{self, FINALIZER, owner};
use super::claim_status::with_finalizer;
use super::patch::{Fields, missing};
use super::seen::NodeParts;
use crate::api;

/// Label of a node to which load balancers send nothing more.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Label of a node whose taints are somebody else's.
const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

/// Makes `live` the node of `claim`: its finalizer, owner, labels, annotations and taints, and the unregistered
/// taint gone. `wanted` was decided on an older sight of the node: what belongs to a node's start is neither
/// brought back nor taken away by it.
pub(super) fn register(live: &NodeParts, claim: &api::NodeClaim, labels: &Labels, wanted: &[whittle_model::Taint]) -> Option<Value> {
    let mut metadata = Fields::default();
    metadata.object("labels", missing(labels, live.metadata.labels.as_ref()));
    let mut annotations = claim.metadata.annotations.clone().unwrap_or_default();
    // Of the launch, or notes to whoever judges moves.
    [keys::OFFERS, keys::MOVED_OFF, keys::JUDGED_BY].iter().for_each(|key| drop(annotations.remove(*key)));
    metadata.object("annotations", missing(&annotations, live.metadata.annotations.as_ref()));
    if let Some(finalizers) = with_finalizer(&live.metadata, FINALIZER) {
        metadata.set("finalizers", finalizers);
    }
    let owners = live.metadata.owner_references.clone().unwrap_or_default();
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    if !uid.is_empty() && !owners.iter().any(|o| o.uid == uid) {
        let name = claim.metadata.name.clone().unwrap_or_default();
        metadata.set("ownerReferences", json!([owners, vec![owner("NodeClaim", &name, &uid)]].concat()));
    }
    patch(live, metadata, registered(live, wanted))
}

fn registered(live: &NodeParts, wanted: &[whittle_model::Taint]) -> Vec<Taint> {
    let synced = live.metadata.labels.as_ref().is_none_or(|labels| labels.get(DO_NOT_SYNC_TAINTS).is_none_or(|v| v != "true"));
    let mut all: Vec<Taint> = live.spec.taints.iter().flatten().filter(|t| t.key != keys::UNREGISTERED_TAINT).cloned().collect();
    for given in wanted.iter().filter(|t| synced && !keys::ephemeral_taint(&t.key) && t.key != keys::DISRUPTED_TAINT) {
        let given = claim::taint(given);
        if !all.iter().any(|t| t.key == given.key && t.effect == given.effect) {
            all.push(given);
        }
    }
    all
}

/// Keeps new pods and new connections off `live`.
pub(super) fn cordon(live: &NodeParts) -> Option<Value> {
    let mut metadata = Fields::default();
    let labels = BTreeMap::from([(EXCLUDED.to_owned(), "karpenter".to_owned())]);
    metadata.object("labels", missing(&labels, live.metadata.labels.as_ref()));
    patch(live, metadata, with_disrupted(live))
}

/// Keeps new pods off `live`.
pub(super) fn keep_off(live: &NodeParts) -> Option<Value> {
    patch(live, Fields::default(), with_disrupted(live))
}

/// Lets pods and connections onto `live` again.
pub(super) fn uncordon(live: &NodeParts) -> Option<Value> {
    let mut metadata = Fields::default();
    if live.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(EXCLUDED)) {
        metadata.set("labels", json!({ EXCLUDED: null }));
    }
    let kept = live.spec.taints.iter().flatten().filter(|t| t.key != keys::DISRUPTED_TAINT).cloned().collect();
    patch(live, metadata, kept)
}

fn with_disrupted(live: &NodeParts) -> Vec<Taint> {
    let mut taints = live.spec.taints.clone().unwrap_or_default();
    if !taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT && t.effect == "NoSchedule") {
        taints.push(Taint { key: keys::DISRUPTED_TAINT.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
    }
    taints
}

/// Labels `live` as initialized.
pub(super) fn initialize() -> Value {
    json!({ "metadata": { "labels": { keys::INITIALIZED: "true" } } })
}

/// Lists are replaced whole, so the patch holds only for the node as it was seen.
fn patch(live: &NodeParts, mut metadata: Fields, taints: Vec<Taint>) -> Option<Value> {
    let mut fields = Map::new();
    if live.spec.taints.clone().unwrap_or_default() != taints {
        let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
        fields.insert("spec".to_owned(), json!({ "taints": taints }));
    }
    if metadata.is_empty() && fields.is_empty() {
        return None;
    }
    metadata.set("resourceVersion", json!(live.metadata.resource_version));
    metadata.set("uid", json!(live.metadata.uid));
    fields.extend(metadata.under("metadata").and_then(|m| m.as_object().cloned()).unwrap_or_default());
    Some(Value::Object(fields))
}
