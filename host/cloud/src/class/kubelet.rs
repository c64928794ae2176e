//! The kubelet settings of a class: whether kubelet would take them, and whether its image family applies them.
//!
//! What must not enter: what they make of an instance type, and how a node gets them.

use std::collections::BTreeMap;

use serde_json::Value;
use whittle_model::{Quantity, go_duration};

use super::kubelet_fields;
use crate::image::{Family, unapplied_kubelet_fields};

type Fields = BTreeMap<String, Value>;

const SIGNALS: [&str; 6] =
    ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"];
const RESERVED: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

/// What kubelet would not take, with the field; empty when all is well.
pub(super) fn invalid(fields: &Fields) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, value) in fields {
        // A text may be an expression; whether those may be used is another question.
        if !(name == "maxPods" && value.is_string()) {
            kubelet_fields::check(name, value, &mut wrong);
        }
    }
    if fields.contains_key("registerWithTaints") {
        wrong.push(
            "spec.kubelet.registerWithTaints: taints of nodes belong to the NodePool; write spec.template.spec.taints there".to_owned(),
        );
    }
    evictions(fields, &mut wrong);
    reservations(fields, &mut wrong);
    counts(fields, &mut wrong);
    wrong
}

/// The fields that hold an expression, which is evaluated for each instance type.
pub(super) fn expressions(fields: &Fields) -> Vec<String> {
    let mut found = Vec::new();
    if fields.get("maxPods").is_some_and(Value::is_string) {
        found.push("maxPods".to_owned());
    }
    for field in ["kubeReserved", "systemReserved"] {
        let amounts = texts(fields, field).into_iter().filter(|(_, text)| Quantity::parse(text).is_err());
        found.extend(amounts.map(|(key, _)| format!("{field}[{key}]")));
    }
    found
}

/// What nodes of this family would silently not get.
pub(super) fn unsupported(family: Family, fields: &Fields) -> Option<String> {
    let mut wrong = Vec::new();
    let left_out = unapplied_kubelet_fields(family, fields);
    if !left_out.is_empty() {
        wrong.push(format!(
            "spec.kubelet: nodes of the image family {family} would not get {}; take these fields away, or set them in userData",
            left_out.join(", ")
        ));
    }
    let servers = fields.get("clusterDNS").and_then(Value::as_array).map_or(0, Vec::len);
    if servers > 1 && family != Family::Custom && !family.traits().any_kubelet_field {
        wrong.push(format!("spec.kubelet.clusterDNS: the image family {family} takes one address and {servers} are written; keep one"));
    }
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

fn texts<'a>(fields: &'a Fields, field: &str) -> BTreeMap<&'a str, &'a str> {
    let entries = fields.get(field).and_then(Value::as_object);
    entries.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

fn integer(fields: &Fields, field: &str) -> Option<i64> {
    fields.get(field).and_then(Value::as_i64)
}

fn evictions(fields: &Fields, wrong: &mut Vec<String>) {
    for field in ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] {
        for (signal, text) in texts(fields, field) {
            if !SIGNALS.contains(&signal) {
                wrong.push(format!("spec.kubelet.{field}: {signal:?} is no eviction signal; write one of {}", SIGNALS.join(", ")));
            }
            let fault = if field == "evictionSoftGracePeriod" { grace_fault(text) } else { threshold_fault(text) };
            if let Some(fault) = fault {
                wrong.push(format!("spec.kubelet.{field}[{signal}]: {text:?} {fault}"));
            }
        }
    }
    let (soft, grace) = (texts(fields, "evictionSoft"), texts(fields, "evictionSoftGracePeriod"));
    for signal in soft.keys().filter(|signal| !grace.contains_key(*signal)) {
        wrong.push(format!("spec.kubelet.evictionSoft[{signal}]: needs an evictionSoftGracePeriod of the same signal beside it"));
    }
    for signal in grace.keys().filter(|signal| !soft.contains_key(*signal)) {
        wrong.push(format!("spec.kubelet.evictionSoftGracePeriod[{signal}]: needs an evictionSoft of the same signal beside it"));
    }
}

fn threshold_fault(text: &str) -> Option<&'static str> {
    if let Some(percent) = text.strip_suffix('%') {
        let fits = percent.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent));
        return (!fits).then_some("is no percentage from 0% to 100%");
    }
    match Quantity::parse(text) {
        Ok(amount) if amount.is_negative() => Some("is below zero"),
        Ok(_) => None,
        Err(_) => Some("is neither a percentage such as 5% nor a quantity such as 500Mi"),
    }
}

fn grace_fault(text: &str) -> Option<&'static str> {
    match go_duration::parse(text) {
        Some(nanos) if nanos < 0 => Some("is below zero"),
        Some(_) => None,
        None => Some("is no duration such as 1m30s"),
    }
}

fn reservations(fields: &Fields, wrong: &mut Vec<String>) {
    for field in ["kubeReserved", "systemReserved"] {
        for (resource, text) in texts(fields, field) {
            if !RESERVED.contains(&resource) {
                wrong.push(format!("spec.kubelet.{field}: {resource:?} cannot be reserved; write one of {}", RESERVED.join(", ")));
            }
            if text.starts_with('-') {
                wrong.push(format!("spec.kubelet.{field}[{resource}]: {text:?} is below zero"));
            }
        }
    }
}

fn counts(fields: &Fields, wrong: &mut Vec<String>) {
    let (high, low) = ("imageGCHighThresholdPercent", "imageGCLowThresholdPercent");
    for field in [high, low] {
        if let Some(percent) = integer(fields, field).filter(|percent| !(0..=100).contains(percent)) {
            wrong.push(format!("spec.kubelet.{field}: {percent} is no percentage from 0 to 100"));
        }
    }
    for field in ["podsPerCore", "evictionMaxPodGracePeriod", "maxPods"] {
        if let Some(count) = integer(fields, field).filter(|count| *count < 0) {
            wrong.push(format!("spec.kubelet.{field}: {count} is below zero"));
        }
    }
    if let (Some(high_value), Some(low_value)) = (integer(fields, high), integer(fields, low))
        && high_value <= low_value
    {
        wrong.push(format!("spec.kubelet.{high}: {high_value} must be more than {low}, which is {low_value}"));
    }
}

#[cfg(test)]
#[path = "../../tests_unit/class_kubelet.rs"]
mod tests;
