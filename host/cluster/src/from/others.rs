//! Small kinds: disruption budgets, priority classes, namespaces.

use k8s_openapi::{
    api::{core::v1 as core, policy::v1 as policy, scheduling::v1 as scheduling},
    apimachinery::pkg::util::intstr::IntOrString,
};
use whittle_model::{LabelSelector, Labels, PodKey};

use super::{Cx, names, selector};

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
}

/// A PriorityClass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityClassObject {
    /// Its name.
    pub name: String,
    /// Higher goes first.
    pub value: i32,
    /// Whether pods without a class get it.
    pub global_default: bool,
}

/// A Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceObject {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
}

/// A PodDisruptionBudget.
pub(crate) fn disruption_budget(written: &policy::PodDisruptionBudget, cx: &mut Cx) -> DisruptionBudgetObject {
    let key = names::object_key(&written.metadata, cx);
    let default = policy::PodDisruptionBudgetSpec::default();
    let spec = written.spec.as_ref().unwrap_or(&default);
    cx.not_acted_on.push("PodDisruptionBudget: no pod is evicted by this version, so it never binds".to_owned());
    cx.key("spec", |cx| {
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            cx.broken_at("maxUnavailable", "minAvailable and maxUnavailable exclude each other; keep one of them");
        }
        DisruptionBudgetObject {
            selector: spec.selector.as_ref().map(|s| selector::selector("selector", s, cx)),
            min_available: share("minAvailable", spec.min_available.as_ref(), cx),
            max_unavailable: share("maxUnavailable", spec.max_unavailable.as_ref(), cx),
            key,
        }
    })
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

/// A PriorityClass.
pub(crate) fn priority_class(written: &scheduling::PriorityClass, cx: &mut Cx) -> PriorityClassObject {
    if written.value.is_none() {
        cx.broken("value is missing: write the priority as a whole number");
    }
    PriorityClassObject {
        name: names::object_name(&written.metadata, cx),
        value: written.value.unwrap_or(0),
        global_default: written.global_default.unwrap_or(false),
    }
}

/// A Namespace.
pub(crate) fn namespace(written: &core::Namespace, cx: &mut Cx) -> NamespaceObject {
    NamespaceObject { name: names::object_name(&written.metadata, cx), labels: written.metadata.labels.clone().unwrap_or_default() }
}
