//! Which nodes a pod accepts, and which pods it does not share one with.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Affinity, PodAffinityTerm, Requirement, Requirements, keys};

use super::{Cx, requirement, selector};

/// `nodeSelector` and required node affinity.
pub(super) fn affinity(spec: &core::PodSpec, cx: &mut Cx) -> Affinity {
    let selector = spec.node_selector.iter().flatten();
    let node_selector = selector.map(|(key, value)| Requirement::any_of(keys::normalized(key), &[value])).collect();
    let node = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
    let node_terms = cx.keys(&["affinity", "nodeAffinity"], |cx| node.map_or_else(Vec::new, |node| node_terms(node, cx)));
    Affinity { node_selector, node_terms }
}

fn node_terms(node: &core::NodeAffinity, cx: &mut Cx) -> Vec<Requirements> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    if node.preferred_during_scheduling_ignored_during_execution.as_ref().is_some_and(|p| !p.is_empty()) {
        cx.cannot_read("preferredDuringSchedulingIgnoredDuringExecution");
    }
    let Some(required) = &node.required_during_scheduling_ignored_during_execution else { return Vec::new() };
    let mut terms = Vec::new();
    cx.key(REQUIRED, |cx| {
        if required.node_selector_terms.is_empty() {
            cx.broken("nodeSelectorTerms needs at least one term");
        }
        cx.each("nodeSelectorTerms", &required.node_selector_terms, |cx, term| {
            if term.match_fields.as_ref().is_some_and(|f| !f.is_empty()) {
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

/// A term that no node meets: host names are never empty.
fn unsatisfiable() -> Requirements {
    [Requirement::any_of(keys::HOSTNAME, &[""])].into_iter().collect()
}

/// Required pod anti-affinity on the host name; every other pod affinity is listed as unsupported.
pub(super) fn anti_affinity(namespace: &str, spec: &core::PodSpec, cx: &mut Cx) -> Vec<PodAffinityTerm> {
    let Some(affinity) = &spec.affinity else { return Vec::new() };
    cx.key("affinity", |cx| {
        if let Some(pods) = &affinity.pod_affinity
            && (pods.required_during_scheduling_ignored_during_execution.as_ref().is_some_and(|t| !t.is_empty())
                || pods.preferred_during_scheduling_ignored_during_execution.as_ref().is_some_and(|t| !t.is_empty()))
        {
            cx.cannot_read("podAffinity");
        }
        let Some(anti) = &affinity.pod_anti_affinity else { return Vec::new() };
        cx.key("podAntiAffinity", |cx| anti_terms(namespace, anti, cx))
    })
}

fn anti_terms(namespace: &str, anti: &core::PodAntiAffinity, cx: &mut Cx) -> Vec<PodAffinityTerm> {
    if anti.preferred_during_scheduling_ignored_during_execution.as_ref().is_some_and(|t| !t.is_empty()) {
        cx.cannot_read("preferredDuringSchedulingIgnoredDuringExecution");
    }
    let mut terms = Vec::new();
    let written = anti.required_during_scheduling_ignored_during_execution.as_deref().unwrap_or_default();
    cx.each("requiredDuringSchedulingIgnoredDuringExecution", written, |cx, term| {
        terms.extend(anti_term(namespace, term, cx));
    });
    terms
}

fn anti_term(namespace: &str, term: &core::PodAffinityTerm, cx: &mut Cx) -> Option<PodAffinityTerm> {
    if term.topology_key.is_empty() {
        cx.broken("topologyKey is missing: write the node label to keep apart by, such as kubernetes.io/hostname");
        return None;
    }
    let before = cx.unsupported.len();
    if term.topology_key != keys::HOSTNAME {
        cx.cannot_read("topologyKey");
    }
    if term.namespace_selector.is_some() {
        cx.cannot_read("namespaceSelector");
    }
    for (key, list) in [("matchLabelKeys", &term.match_label_keys), ("mismatchLabelKeys", &term.mismatch_label_keys)] {
        if list.as_ref().is_some_and(|l| !l.is_empty()) {
            cx.cannot_read(key);
        }
    }
    // Without a selector a term selects no pod at all.
    let selector = selector::selector("labelSelector", term.label_selector.as_ref()?, cx);
    if cx.unsupported.len() > before {
        return None;
    }
    let mut namespaces = term.namespaces.clone().unwrap_or_default();
    if namespaces.is_empty() {
        namespaces.push(namespace.to_owned());
    }
    namespaces.sort();
    namespaces.dedup();
    Some(PodAffinityTerm { topology_key: term.topology_key.clone(), namespaces, namespace_selector: None, selector })
}
