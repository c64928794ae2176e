//! Quantities, resource lists and durations.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use whittle_model::{Duration, Quantity, Resources, resources};

use super::Cx;
use crate::yaml::closest;

/// A resource list of the API.
pub(super) type List = BTreeMap<String, Written>;

/// The amounts of the list at `key`, in the model's units and in the order of names. Zeros stay.
pub(super) fn amounts(key: &str, list: Option<&List>, cx: &mut Cx) -> Vec<(String, i64)> {
    let Some(list) = list else { return Vec::new() };
    cx.key(key, |cx| list.iter().filter_map(|(name, written)| amount(name, written, cx).map(|amount| (name.clone(), amount))).collect())
}

fn amount(name: &str, written: &Written, cx: &mut Cx) -> Option<i64> {
    match Quantity::parse(&written.0) {
        Ok(quantity) if quantity.is_negative() => {
            cx.broken_at(name, format!("{} is below zero; write an amount of at least 0", written.0));
            None
        }
        Ok(quantity) => Some(Resources::amount(name, quantity)),
        Err(error) => {
            cx.broken_at(name, error.to_string());
            None
        }
    }
}

/// The list at `key` as resources.
pub(super) fn resources_of(key: &str, list: Option<&List>, cx: &mut Cx) -> Resources {
    let mut all = Resources::default();
    for (name, amount) in amounts(key, list, cx) {
        all.set(&name, amount);
    }
    all
}

/// Says so when a container's resource is one that the API server does not know.
pub(super) fn check_resource_name(name: &str, cx: &mut Cx) {
    const NATIVE: [&str; 3] = [resources::CPU, resources::MEMORY, resources::EPHEMERAL_STORAGE];
    if NATIVE.contains(&name) || name.starts_with("hugepages-") || name.contains('/') {
        return;
    }
    let what = match closest(name, NATIVE) {
        Some(meant) => format!("unknown resource {name}; did you mean {meant}?"),
        None => format!(
            "unknown resource {name}; known are cpu, memory, ephemeral-storage, hugepages-SIZE and names with a domain such as nvidia.com/gpu"
        ),
    };
    cx.broken_at(name, what);
}

/// A duration of hours, minutes and seconds such as `720h` or `1h30m`; `None` when it is none.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (mut millis, mut rest) = (0i64, text);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..end].parse().ok()?;
        let unit = match rest.as_bytes()[end] {
            b'h' => 3_600_000,
            b'm' => 60_000,
            b's' => 1000,
            _ => return None,
        };
        millis = millis.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[end + 1..];
    }
    Some(Duration(millis))
}

/// The duration at `key`; says so when it is none.
pub(super) fn duration(key: &str, text: &str, cx: &mut Cx) -> Option<Duration> {
    let parsed = parse_duration(text);
    if parsed.is_none() {
        cx.broken_at(key, not_a_duration(text, false));
    }
    parsed
}

/// The duration or `Never` (as `None`) at `key`; `otherwise` when absent.
pub(super) fn duration_or_never(key: &str, text: Option<&str>, otherwise: Duration, cx: &mut Cx) -> Option<Duration> {
    match text {
        None => Some(otherwise),
        Some("Never") => None,
        Some(text) => {
            let parsed = parse_duration(text);
            if parsed.is_none() {
                cx.broken_at(key, not_a_duration(text, true));
            }
            parsed
        }
    }
}

fn not_a_duration(text: &str, never: bool) -> String {
    let also = if never { ", or Never" } else { "" };
    let days = text.strip_suffix('d').and_then(|n| n.parse::<i64>().ok()).and_then(|n| n.checked_mul(24));
    if let Some(hours) = days {
        return format!("{text:?} is no duration: days are not taken, write {hours}h");
    }
    if never && text.eq_ignore_ascii_case("never") {
        return format!("{text:?} is no duration; did you mean Never?");
    }
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        return format!("{text:?} is no duration: it needs a unit, such as {text}s or {text}m{also}");
    }
    format!("{text:?} is no duration: write whole hours, minutes and seconds, such as 720h or 1h30m{also}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_hours_minutes_and_seconds() {
        for (text, millis) in [("720h", Some(2_592_000_000)), ("1h30m", Some(5_400_000)), ("0s", Some(0)), ("30s", Some(30_000))] {
            assert_eq!(parse_duration(text).map(|d| d.0), millis, "{text}");
        }
        for bad in ["", "h", "30", "1d", "1.5h", "-1h", "never", "9223372036854775807h", "1h "] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_wrong_duration_is_answered_with_a_right_one() {
        for (text, part) in [("30d", "write 720h"), ("never", "did you mean Never"), ("30", "such as 30s"), ("soon", "or Never")] {
            assert!(not_a_duration(text, true).contains(part), "{text}");
        }
    }
}
