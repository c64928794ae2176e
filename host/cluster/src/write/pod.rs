//! What is written of Pods: nominations and evictions.
//!
//! What must not enter: requests.

use serde_json::{Value, json};
use whittle_model::PodKey;

/// Where a pod is.
pub(super) fn path(pod: &PodKey) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

/// Has kube-scheduler try `node` first; only for the pod of this UID.
pub(super) fn nomination(node: &str, uid: Option<&str>) -> Value {
    let mut patch = json!({ "status": { "nominatedNodeName": node } });
    if let Some(uid) = uid {
        patch["metadata"] = json!({ "uid": uid });
    }
    patch
}

/// Asks the pod of this UID to leave.
pub(super) fn eviction(pod: &PodKey, uid: Option<&str>) -> Value {
    let mut body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod.name, "namespace": pod.namespace },
    });
    if let Some(uid) = uid {
        body["deleteOptions"] = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } });
    }
    body
}

/// Whether a pod no longer waits for a node.
pub(super) fn settled(pod: &Value) -> bool {
    let bound = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    bound || !pod["metadata"]["deletionTimestamp"].is_null() || matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}
