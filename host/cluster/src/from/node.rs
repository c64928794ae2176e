//! Nodes.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Labels, Node, NodeCondition, keys};

use super::{Cx, amounts::resources_of, names, taints};

/// A node.
pub(crate) fn node(written: &core::Node, cx: &mut Cx) -> Node {
    let meta = &written.metadata;
    let name = names::object_name(meta, cx);
    let spec = written.spec.as_ref();
    let status = written.status.as_ref();
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let (capacity, allocatable) = cx.key("status", |cx| {
        let capacity = resources_of("capacity", status.and_then(|s| s.capacity.as_ref()), cx);
        let allocatable = resources_of("allocatable", status.and_then(|s| s.allocatable.as_ref()), cx);
        (capacity, allocatable)
    });
    Node {
        name,
        provider_id: spec.and_then(|s| s.provider_id.clone()).unwrap_or_default(),
        labels: stable(meta.labels.as_ref()),
        annotations: meta.annotations.clone().unwrap_or_default(),
        taints: cx.key("spec", |cx| taints::taints("taints", spec.and_then(|s| s.taints.as_deref()), cx)),
        // A node that says nothing of what pods may use gives them all it has.
        allocatable: if allocatable.is_empty() { capacity.clone() } else { allocatable },
        capacity,
        ready: conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
        conditions: told(conditions),
        cordoned: spec.and_then(|s| s.unschedulable).unwrap_or(false),
        created: names::timestamp(meta.creation_timestamp.as_ref()),
        deleting: meta.deletion_timestamp.is_some(),
    }
}

fn told(written: &[core::NodeCondition]) -> Vec<NodeCondition> {
    let holds = |status: &str| match status {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    let mut all: Vec<NodeCondition> = written
        .iter()
        .map(|c| NodeCondition { name: c.type_.clone(), holds: holds(&c.status), since: names::timestamp(c.last_transition_time.as_ref()) })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Labels with the stable spelling of deprecated keys beside the old one, since requirements are
/// read in the stable spelling.
fn stable(labels: Option<&Labels>) -> Labels {
    let mut all = labels.cloned().unwrap_or_default();
    for (key, value) in labels.into_iter().flatten() {
        let spelling = keys::normalized(key);
        if spelling != key && !all.contains_key(spelling) {
            all.insert(spelling.to_owned(), value.clone());
        }
    }
    all
}
