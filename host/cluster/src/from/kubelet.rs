//! The kubelet settings of an EC2NodeClass: the fields that change what pods can use are read,
//! rules that hold for others are checked, the rest is passed on unread.

use std::collections::BTreeMap;

use serde_json::Value;
use whittle_model::Quantity;

use super::{Cx, node_class::Kubelet, parse_duration};

const RESERVED: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];
const SIGNALS: [&str; 6] =
    ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"];
type Fields = BTreeMap<String, Value>;

/// `spec.kubelet`.
pub(super) fn kubelet(written: Option<&Fields>, cx: &mut Cx) -> Kubelet {
    let Some(fields) = written else { return Kubelet::default() };
    cx.key("kubelet", |cx| {
        if fields.contains_key("registerWithTaints") {
            cx.broken_at("registerWithTaints", "taints of nodes belong to the NodePool: write spec.template.spec.taints there");
        }
        if fields.get("clusterDNS").and_then(Value::as_array).is_some_and(|l| l.len() > 1) {
            cx.broken_at("clusterDNS", "takes one address; take the others away");
        }
        image_gc(fields, cx);
        soft_evictions(fields, cx);
        Kubelet {
            max_pods: count("maxPods", fields, cx),
            pods_per_core: count("podsPerCore", fields, cx),
            kube_reserved: amounts("kubeReserved", fields, &RESERVED, false, cx),
            system_reserved: amounts("systemReserved", fields, &RESERVED, false, cx),
            eviction_hard: amounts("evictionHard", fields, &SIGNALS, true, cx),
        }
    })
}

fn count(key: &str, fields: &Fields, cx: &mut Cx) -> Option<u32> {
    let value = fields.get(key)?;
    let count = value.as_i64().and_then(|n| u32::try_from(n).ok()).filter(|n| i32::try_from(*n).is_ok());
    if value.is_string() {
        cx.cannot_read(key); // an expression, which is evaluated for each instance type
    } else if count.is_none() {
        cx.broken_at(key, format!("{value} is no count; write a whole number of at least 0"));
    }
    count
}

/// Quantities by `names`, as written; with `shares`, percentages too.
fn amounts(key: &str, fields: &Fields, names: &[&str], shares: bool, cx: &mut Cx) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let Some(value) = fields.get(key) else { return all };
    let Some(entries) = value.as_object() else {
        cx.broken_at(key, format!("wants a mapping of {} to amounts", names.join(", ")));
        return all;
    };
    cx.key(key, |cx| {
        for (name, value) in entries {
            if !cx.one_of(name, name, names) {
                continue;
            }
            match value.as_str() {
                None => cx.broken_at(name, format!("wants a text, but {value} is none: write \"{value}\"")),
                Some(text) => {
                    check_amount(name, text, shares, cx);
                    all.insert(name.clone(), text.to_owned());
                }
            }
        }
    });
    all
}

fn check_amount(name: &str, text: &str, shares: bool, cx: &mut Cx) {
    if let Some(percent) = text.strip_suffix('%').filter(|_| shares) {
        if !percent.parse::<f64>().is_ok_and(|p| (0.0..=100.0).contains(&p)) {
            cx.broken_at(name, format!("{text:?} is no percentage from 0% to 100%"));
        }
        return;
    }
    match Quantity::parse(text) {
        Ok(quantity) if quantity.is_negative() => cx.broken_at(name, format!("{text} is below zero; write an amount of at least 0")),
        Ok(_) => {}
        // Letters and brackets that are no unit are an expression, evaluated for each instance type.
        Err(_) if text.contains(['*', '(', '/', '_']) => cx.cannot_read(name),
        Err(error) => cx.broken_at(name, error.to_string()),
    }
}

fn image_gc(fields: &Fields, cx: &mut Cx) {
    let percent = |key: &str| fields.get(key).and_then(Value::as_i64);
    let (high, low) = (percent("imageGCHighThresholdPercent"), percent("imageGCLowThresholdPercent"));
    for (key, value) in [("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)] {
        if value.is_some_and(|v| !(0..=100).contains(&v)) {
            cx.broken_at(key, "is out of range; write 0 to 100");
        }
    }
    if let (Some(high), Some(low)) = (high, low)
        && high <= low
    {
        cx.broken_at("imageGCHighThresholdPercent", format!("{high} must be more than imageGCLowThresholdPercent, {low}"));
    }
}

fn soft_evictions(fields: &Fields, cx: &mut Cx) {
    amounts("evictionSoft", fields, &SIGNALS, true, cx);
    let names =
        |key: &str| -> Vec<String> { fields.get(key).and_then(Value::as_object).map(|o| o.keys().cloned().collect()).unwrap_or_default() };
    let (soft, grace) = (names("evictionSoft"), names("evictionSoftGracePeriod"));
    for (key, have, other, lack) in
        [("evictionSoft", &soft, "evictionSoftGracePeriod", &grace), ("evictionSoftGracePeriod", &grace, "evictionSoft", &soft)]
    {
        for name in have.iter().filter(|n| !lack.contains(n)) {
            cx.keys(&[key, name], |cx| cx.broken(format!("{name} stands here but not in {other}; write it in both")));
        }
    }
    for (name, value) in fields.get("evictionSoftGracePeriod").and_then(Value::as_object).into_iter().flatten() {
        if value.as_str().is_none_or(|text| parse_duration(text).is_none()) {
            cx.keys(&["evictionSoftGracePeriod", name], |cx| cx.broken(format!("{value} is no duration; write one such as 1m30s")));
        }
    }
}
