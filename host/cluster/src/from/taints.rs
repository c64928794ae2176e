//! Taints and tolerations.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Effect, Taint, Toleration};

use super::{Cx, names};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn effect(written: &str, cx: &mut Cx) -> Option<Effect> {
    if !cx.one_of("effect", written, &EFFECTS) {
        return None;
    }
    Some(match written {
        "NoExecute" => Effect::NoExecute,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        _ => Effect::NoSchedule,
    })
}

/// The taints at `key`, checked.
pub(super) fn taints(key: &str, written: Option<&[core::Taint]>, cx: &mut Cx) -> Vec<Taint> {
    let mut all: Vec<Taint> = Vec::new();
    cx.each(key, written.unwrap_or_default(), |cx, taint| {
        if let Some(what) = names::key_fault(&taint.key) {
            cx.broken_at("key", what);
        }
        let value = taint.value.as_deref().unwrap_or_default();
        if let Some(what) = names::value_fault(value) {
            cx.broken_at("value", what);
        }
        if let Some(effect) = effect(&taint.effect, cx) {
            all.push(Taint::new(&taint.key, value, effect));
        }
    });
    all
}

/// The tolerations of a pod, checked.
pub(super) fn tolerations(written: Option<&[core::Toleration]>, cx: &mut Cx) -> Vec<Toleration> {
    let mut all = Vec::new();
    cx.each("tolerations", written.unwrap_or_default(), |cx, one| {
        let operator = one.operator.as_deref().filter(|o| !o.is_empty()).unwrap_or("Equal");
        if matches!(operator, "Lt" | "Gt") {
            cx.cannot_read("operator");
            return;
        }
        let known = cx.one_of("operator", operator, &["Equal", "Exists"]);
        let exists = operator == "Exists";
        let key = one.key.clone().filter(|k| !k.is_empty());
        let value = one.value.clone().unwrap_or_default();
        if known && key.is_none() && !exists {
            cx.broken("a toleration without a key tolerates every taint and needs operator Exists");
        }
        if exists && !value.is_empty() {
            cx.broken_at("value", "operator Exists takes no value: take it away, or write operator Equal");
        }
        let effect = match one.effect.as_deref().filter(|e| !e.is_empty()) {
            None => None,
            Some(written) => match effect(written, cx) {
                Some(effect) => Some(effect),
                None => return,
            },
        };
        all.push(Toleration { key, exists, value, effect });
    });
    all
}
