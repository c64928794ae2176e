//! How pods spread over domains.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Labels, TopologySpread, keys};

use super::{Cx, selector};

const WHEN: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: [&str; 2] = ["Honor", "Ignore"];

/// The constraints at `key` of a pod with these labels.
pub(crate) fn spread(labels: &Labels, key: &str, written: &[core::TopologySpreadConstraint], cx: &mut Cx) -> Vec<TopologySpread> {
    let mut all: Vec<TopologySpread> = Vec::new();
    cx.each(key, written, |cx, one| {
        let read = constraint(labels, one, cx);
        if all.iter().any(|other| other.topology_key == read.topology_key && other.required == read.required) && !cx.live {
            cx.broken(format!("{} with {} is given twice; keep one of them", one.topology_key, one.when_unsatisfiable));
        }
        all.push(read);
    });
    all
}

fn constraint(labels: &Labels, written: &core::TopologySpreadConstraint, cx: &mut Cx) -> TopologySpread {
    if written.topology_key.is_empty() {
        cx.broken("topologyKey is missing: write the node label to spread over, such as topology.kubernetes.io/zone");
    }
    if written.max_skew < 1 {
        cx.broken_at("maxSkew", format!("{} is out of range; write at least 1", written.max_skew));
    }
    cx.one_of("whenUnsatisfiable", &written.when_unsatisfiable, &WHEN);
    let required = written.when_unsatisfiable != WHEN[1];
    if written.min_domains.is_some_and(|least| least < 1) {
        cx.broken_at("minDomains", "is out of range; write at least 1, or leave it out");
    }
    if written.min_domains.is_some() && !required {
        cx.broken_at("minDomains", "goes with whenUnsatisfiable: DoNotSchedule only; take one of them away");
    }
    let mut selector = selector::selector_or_nothing("labelSelector", written.label_selector.as_ref(), cx);
    selector::merge_label_keys(&mut selector, labels, written.match_label_keys.as_deref(), true);
    TopologySpread {
        topology_key: keys::normalized(&written.topology_key).to_owned(),
        max_skew: u32::try_from(written.max_skew).unwrap_or(1).max(1),
        min_domains: written.min_domains.and_then(|least| u32::try_from(least).ok()),
        required,
        selector,
        honor_affinity: honor("nodeAffinityPolicy", written.node_affinity_policy.as_deref(), true, cx),
        honor_taints: honor("nodeTaintsPolicy", written.node_taints_policy.as_deref(), false, cx),
    }
}

fn honor(key: &str, written: Option<&str>, otherwise: bool, cx: &mut Cx) -> bool {
    let Some(policy) = written else { return otherwise };
    cx.one_of(key, policy, &POLICIES);
    policy == POLICIES[0]
}
