//! PodDisruptionBudgets: as written, and as the server counts them.

use k8s_openapi::{api::policy::v1 as policy, apimachinery::pkg::util::intstr::IntOrString};
use whittle_model::{LabelSelector, PodDisruptionBudget, PodKey};

use super::{Cx, names, selector};

const POLICIES: [&str; 2] = ["IfHealthyBudget", "AlwaysAllow"];

/// A PodDisruptionBudget. Counts and percentages are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudgetObject {
    /// Namespace and name.
    pub key: PodKey,
    /// The pods meant; `None` is no pod.
    pub selector: Option<LabelSelector>,
    /// Pods that must stay: a count or a percentage.
    pub min_available: Option<String>,
    /// Pods that may be away: a count or a percentage.
    pub max_unavailable: Option<String>,
    /// Whether pods that are not ready may always go.
    pub always_allow_unready: bool,
}

impl DisruptionBudgetObject {
    /// The budget while so many pods may be evicted.
    #[must_use]
    pub fn allowing(&self, allowed: i32) -> PodDisruptionBudget {
        let none = |text: &Option<String>| text.as_deref().is_some_and(|t| t.trim_end_matches('%').bytes().all(|b| b == b'0'));
        PodDisruptionBudget {
            key: self.key.clone(),
            selector: self.selector.clone().unwrap_or_else(LabelSelector::nothing),
            allowed,
            never: none(&self.max_unavailable) || self.min_available.as_deref() == Some("100%"),
            always_allow_unready: self.always_allow_unready,
        }
    }
}

/// A PodDisruptionBudget as a person writes it.
pub(crate) fn disruption_budget(written: &policy::PodDisruptionBudget, cx: &mut Cx) -> DisruptionBudgetObject {
    let key = names::object_key(&written.metadata, cx);
    let default = policy::PodDisruptionBudgetSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    cx.key("spec", |cx| {
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            cx.broken_at("maxUnavailable", "minAvailable and maxUnavailable exclude each other; keep one of them");
        }
        let policy = spec.unhealthy_pod_eviction_policy.as_deref();
        if let Some(policy) = policy {
            cx.one_of("unhealthyPodEvictionPolicy", policy, &POLICIES);
        }
        DisruptionBudgetObject {
            selector: spec.selector.as_ref().map(|s| selector::selector("selector", s, cx)),
            min_available: share("minAvailable", spec.min_available.as_ref(), cx),
            max_unavailable: share("maxUnavailable", spec.max_unavailable.as_ref(), cx),
            always_allow_unready: policy == Some(POLICIES[1]),
            key,
        }
    })
}

/// A live PodDisruptionBudget, with what its controller counts.
#[cfg(feature = "client")]
pub(crate) fn live_disruption_budget(written: &policy::PodDisruptionBudget, cx: &mut Cx) -> PodDisruptionBudget {
    let budget = disruption_budget(written, cx);
    let status = written.status.as_ref();
    // Until the controller has counted for what is written now, the eviction API lets nobody go.
    let counted = status.filter(|s| s.observed_generation.unwrap_or(0) >= written.metadata.generation.unwrap_or(0));
    budget.allowing(counted.and_then(|s| s.disruptions_allowed).unwrap_or(0))
}

fn share(key: &str, written: Option<&IntOrString>, cx: &mut Cx) -> Option<String> {
    let text = match written? {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    let digits = match written? {
        IntOrString::Int(_) => Some(text.as_str()),
        IntOrString::String(text) => text.strip_suffix('%'),
    };
    if !digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())) {
        cx.broken_at(key, format!("{text:?} is neither a count nor a percentage; write 1 or 50%"));
    }
    Some(text)
}
