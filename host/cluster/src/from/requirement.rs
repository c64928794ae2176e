//! Requirements of NodePools and claims, and of pods' node affinity.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Operator, Requirement, RequirementError, Requirements, keys};

use super::{Cx, names, not_one_of};
use crate::{api, yaml::closest};

/// Well-known keys whose values are only these.
const FIXED_VALUES: [(&str, &[&str]); 2] =
    [(keys::CAPACITY_TYPE, &["spot", "on-demand", "reserved"]), ("karpenter.k8s.aws/instance-tenancy", &["default", "dedicated"])];

/// The requirements of a NodePool or claim.
pub(super) fn requirements(written: &[api::Requirement], of_pool: bool, cx: &mut Cx) -> Requirements {
    let mut all = Requirements::default();
    if written.len() > 100 {
        cx.broken_at("requirements", format!("{} requirements are more than the 100 that are taken", written.len()));
    }
    cx.each("requirements", written, |cx, one| {
        check_key(&one.key, of_pool, cx);
        let values = one.values.as_deref().unwrap_or_default();
        check_min_values(one, values, cx);
        if let Some(requirement) = requirement(&one.key, &one.operator, values, &Operator::ALL, true, cx) {
            let least = one.min_values.and_then(|n| u32::try_from(n).ok());
            all.add(requirement.with_min_values(least));
        }
    });
    all
}

/// The requirements of a NodeOverlay, which may name pools.
pub(super) fn of_overlay(written: &[api::OverlayRequirement], cx: &mut Cx) -> Requirements {
    cx.each("requirements", written, |cx, one| {
        if let Some(why) = keys::restricted(&one.key) {
            cx.broken_at("key", restricted_key(&one.key, why));
        }
        if one.operator == "NotIn" && one.values.as_ref().is_none_or(Vec::is_empty) {
            cx.broken_at("values", format!("operator NotIn on key {:?} needs at least one value", one.key));
        }
    });
    let written = written.iter().map(|one| api::Requirement {
        key: one.key.clone(),
        operator: one.operator.clone(),
        values: one.values.clone(),
        min_values: None,
    });
    requirements(&written.collect::<Vec<_>>(), false, cx)
}

fn check_key(key: &str, of_pool: bool, cx: &mut Cx) {
    if let Some(what) = names::key_fault(key) {
        cx.broken_at("key", what);
    } else if of_pool && key == keys::NODE_POOL {
        cx.broken_at("key", format!("{key} is the pool's own label and cannot be required; take this requirement away"));
    } else if of_pool && let Some(why) = keys::restricted(key) {
        cx.broken_at("key", restricted_key(key, why));
    }
}

/// The text for a key that only the autoscaler may set, with the known key that was probably meant.
pub(super) fn restricted_key(key: &str, why: &str) -> String {
    let known = keys::AWS_WELL_KNOWN.iter().map(|name| format!("{}{name}", keys::AWS_PREFIX)).chain([keys::CAPACITY_TYPE.to_owned()]);
    let known: Vec<String> = known.collect();
    match closest(key, known.iter().map(String::as_str)).filter(|_| key != keys::HOSTNAME) {
        Some(meant) => format!("key {key} cannot be used: {why}; did you mean {meant}?"),
        None => format!("key {key} cannot be used: {why}"),
    }
}

fn check_min_values(one: &api::Requirement, values: &[String], cx: &mut Cx) {
    let Some(least) = one.min_values else { return };
    if !(1..=50).contains(&least) {
        cx.broken_at("minValues", format!("{least} is out of range; write 1 to 50"));
    } else if one.operator == "In" && usize::try_from(least).is_ok_and(|n| n > values.len()) {
        cx.broken_at(
            "minValues",
            format!("{least} distinct values are asked for, but only {} listed; list more or lower it", values.len()),
        );
    }
}

/// One requirement; `operators` are those its place knows, `check` is whether a value that no label can have is a fault. Keys
/// take their stable spelling.
pub(super) fn requirement(
    key: &str,
    operator: &str,
    values: &[String],
    operators: &[Operator],
    check: bool,
    cx: &mut Cx,
) -> Option<Requirement> {
    let Some(parsed) = Operator::parse(operator).filter(|o| operators.contains(o)) else {
        let words: Vec<&str> = operators.iter().map(|o| o.name()).collect();
        cx.broken_at("operator", not_one_of(operator, &words));
        return None;
    };
    let key = keys::normalized(key);
    for value in values.iter().filter(|_| check) {
        if let Some(what) = names::value_fault(value) {
            cx.broken_at("values", what);
        } else if let Some((_, known)) = FIXED_VALUES.iter().find(|(fixed, _)| *fixed == key)
            && !known.contains(&value.as_str())
        {
            cx.broken_at("values", not_one_of(value, known));
        }
    }
    match Requirement::new(key, parsed, values) {
        Ok(requirement) => Some(requirement),
        // The server took it: no node meets it.
        Err(RequirementError::NotOneInteger { .. }) if !check => Some(Requirement::any_of(key, &[])),
        Err(error) => {
            cx.broken_at("values", error.to_string());
            None
        }
    }
}

/// The operators that node affinity of pods knows.
const POD_OPERATORS: [Operator; 6] = [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist, Operator::Gt, Operator::Lt];

/// The expressions of one node affinity term.
pub(super) fn expressions(written: &[core::NodeSelectorRequirement], cx: &mut Cx) -> Requirements {
    let mut all = Requirements::default();
    // What the server took from a live pod just matches nothing.
    let check = !cx.live;
    cx.each("matchExpressions", written, |cx, one| {
        if let Some(what) = names::key_fault(&one.key) {
            cx.broken_at("key", what);
        }
        let values = one.values.as_deref().unwrap_or_default();
        if let Some(requirement) = requirement(&one.key, &one.operator, values, &POD_OPERATORS, check, cx) {
            all.add(requirement);
        }
    });
    all
}
