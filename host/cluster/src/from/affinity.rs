//! Which nodes a pod accepts, and which it would rather have.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Affinity, Requirement, Requirements, keys};

use super::{Cx, requirement};

/// The key of terms that must hold.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The key of terms that had better hold.
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// `nodeSelector` and required node affinity.
pub(super) fn affinity(spec: &core::PodSpec, cx: &mut Cx) -> Affinity {
    let selector = spec.node_selector.iter().flatten();
    let node_selector = selector.map(|(key, value)| Requirement::any_of(keys::normalized(key), &[value])).collect();
    let node = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let node_terms = cx.keys(&["affinity", "nodeAffinity"], |cx| node.map_or_else(Vec::new, |node| node_terms(node, cx)));
    Affinity { node_selector, node_terms }
}

fn node_terms(node: &core::NodeAffinity, cx: &mut Cx) -> Vec<Requirements> {
    let Some(required) = &node.required_during_scheduling_ignored_during_execution else { return Vec::new() };
    let mut terms = Vec::new();
    cx.key(REQUIRED, |cx| {
        if required.node_selector_terms.is_empty() {
            cx.broken("nodeSelectorTerms needs at least one term");
        }
        cx.each("nodeSelectorTerms", &required.node_selector_terms, |cx, term| {
            if has_fields(term) {
                cx.cannot_read("matchFields");
            }
            let expressions = term.match_expressions.as_deref().unwrap_or_default();
            // A term that says nothing matches nothing.
            if !expressions.is_empty() {
                terms.push(requirement::expressions(expressions, cx));
            }
        });
    });
    if terms.is_empty() {
        terms.push(unsatisfiable());
    }
    terms
}

fn has_fields(term: &core::NodeSelectorTerm) -> bool {
    term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty())
}

/// A term that no node meets: host names are never empty.
pub(super) fn unsatisfiable() -> Requirements {
    [Requirement::any_of(keys::HOSTNAME, &[""])].into_iter().collect()
}

/// Preferred node affinity, with the weights.
pub(super) fn preferred_nodes(spec: &core::PodSpec, cx: &mut Cx) -> Vec<(i32, Requirements)> {
    let node = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let written = node.and_then(|n| n.preferred_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default();
    let mut terms = Vec::new();
    cx.keys(&["affinity", "nodeAffinity"], |cx| {
        cx.each(PREFERRED, written, |cx, one| {
            check_weight(one.weight, cx);
            terms.extend(cx.unless_odd(|cx| preferred_node(one, cx)).flatten());
        });
    });
    terms
}

fn preferred_node(one: &core::PreferredSchedulingTerm, cx: &mut Cx) -> Option<(i32, Requirements)> {
    cx.key("preference", |cx| {
        if has_fields(&one.preference) {
            cx.set_aside("matchFields", "not acted on, it prefers nodes by their names, and new nodes have new ones");
            return None;
        }
        let expressions = one.preference.match_expressions.as_deref().unwrap_or_default();
        // A preference that says nothing counts for nothing.
        (!expressions.is_empty()).then(|| (one.weight, requirement::expressions(expressions, cx)))
    })
}

/// Says so when a weight is none.
pub(super) fn check_weight(weight: i32, cx: &mut Cx) {
    if !cx.live && !(1..=100).contains(&weight) {
        cx.broken_at("weight", format!("{weight} is out of range; write 1 to 100"));
    }
}
