//! The pods that a pod wants near, or away.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{PodAffinityTerm, keys};

use super::{
    Cx,
    affinity::{PREFERRED, REQUIRED, check_weight},
    selector,
};

/// The pod that terms belong to, as far as they look at it.
pub(super) struct Own<'a> {
    pub namespace: &'a str,
    pub labels: &'a whittle_model::Labels,
}

/// Terms of pod affinity or anti-affinity.
#[derive(Default)]
pub(super) struct Terms {
    pub required: Vec<PodAffinityTerm>,
    /// With their weights, in the order written.
    pub preferred: Vec<(i32, PodAffinityTerm)>,
}

/// `podAffinity`.
pub(super) fn near(own: &Own<'_>, spec: &core::PodSpec, cx: &mut Cx) -> Terms {
    let Some(written) = spec.affinity.as_ref().and_then(|a| a.pod_affinity.as_ref()) else { return Terms::default() };
    cx.keys(&["affinity", "podAffinity"], |cx| {
        let required = written.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = written.preferred_during_scheduling_ignored_during_execution.as_deref();
        terms(own, required.unwrap_or_default(), preferred.unwrap_or_default(), cx)
    })
}

/// `podAntiAffinity`. A term that selects no pod at all keeps off nothing and is left out.
pub(super) fn away(own: &Own<'_>, spec: &core::PodSpec, cx: &mut Cx) -> Terms {
    let Some(written) = spec.affinity.as_ref().and_then(|a| a.pod_anti_affinity.as_ref()) else { return Terms::default() };
    let mut all = cx.keys(&["affinity", "podAntiAffinity"], |cx| {
        let required = written.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = written.preferred_during_scheduling_ignored_during_execution.as_deref();
        terms(own, required.unwrap_or_default(), preferred.unwrap_or_default(), cx)
    });
    all.required.retain(|term| !selector::is_nothing(&term.selector));
    all
}

fn terms(own: &Own<'_>, required: &[core::PodAffinityTerm], preferred: &[core::WeightedPodAffinityTerm], cx: &mut Cx) -> Terms {
    let mut all = Terms::default();
    cx.each(REQUIRED, required, |cx, one| all.required.extend(term(own, one, cx)));
    cx.each(PREFERRED, preferred, |cx, one| {
        check_weight(one.weight, cx);
        let read = cx.unless_odd(|cx| cx.key("podAffinityTerm", |cx| term(own, &one.pod_affinity_term, cx))).flatten();
        all.preferred.extend(read.filter(|term| !selector::is_nothing(&term.selector)).map(|term| (one.weight, term)));
    });
    all
}

fn term(own: &Own<'_>, written: &core::PodAffinityTerm, cx: &mut Cx) -> Option<PodAffinityTerm> {
    if written.topology_key.is_empty() {
        cx.broken("topologyKey is missing: write the node label to go by, such as kubernetes.io/hostname");
        return None;
    }
    let mut selector = selector::selector_or_nothing("labelSelector", written.label_selector.as_ref(), cx);
    selector::merge_label_keys(&mut selector, own.labels, written.match_label_keys.as_deref(), true);
    selector::merge_label_keys(&mut selector, own.labels, written.mismatch_label_keys.as_deref(), false);
    let namespace_selector = written.namespace_selector.as_ref().map(|s| selector::selector("namespaceSelector", s, cx));
    let mut namespaces = written.namespaces.clone().unwrap_or_default();
    if namespaces.is_empty() && namespace_selector.is_none() {
        namespaces.push(own.namespace.to_owned());
    }
    namespaces.sort();
    namespaces.dedup();
    Some(PodAffinityTerm { topology_key: keys::normalized(&written.topology_key).to_owned(), namespaces, namespace_selector, selector })
}
