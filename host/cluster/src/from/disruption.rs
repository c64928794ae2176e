//! When nodes of a pool may go.

use whittle_model::{Disruption, DisruptionBudget, Duration};

use super::{Cx, amounts};
use crate::api;

const POLICIES: [&str; 3] = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"];
const REASONS: [&str; 3] = ["Underutilized", "Empty", "Drifted"];
const MACROS: [&str; 7] = ["@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// `spec.disruption` of a NodePool.
pub(super) fn disruption(written: Option<&api::Disruption>, cx: &mut Cx) -> Disruption {
    let none = api::Disruption::default();
    let written = written.unwrap_or(&none);
    cx.key("disruption", |cx| {
        let policy = policy(written.consolidation_policy.as_deref(), cx);
        Disruption {
            consolidate_after: amounts::duration_or_never("consolidateAfter", written.consolidate_after.as_deref(), Duration(0), cx),
            policy,
            budgets: budgets(written.budgets.as_deref(), cx),
        }
    })
}

fn policy(written: Option<&str>, cx: &mut Cx) -> String {
    let policy = written.unwrap_or("WhenEmptyOrUnderutilized");
    if policy == "WhenUnderutilized" {
        cx.broken_at("consolidationPolicy", "\"WhenUnderutilized\" is the v1beta1 name; write WhenEmptyOrUnderutilized");
    } else {
        cx.one_of("consolidationPolicy", policy, &POLICIES);
    }
    policy.to_owned()
}

fn budgets(written: Option<&[api::Budget]>, cx: &mut Cx) -> Vec<DisruptionBudget> {
    let Some(written) = written else {
        return vec![DisruptionBudget { nodes: "10%".to_owned(), schedule: None, duration: None, reasons: Vec::new() }];
    };
    if written.len() > 50 {
        cx.broken_at("budgets", format!("{} budgets are more than the 50 that are taken", written.len()));
    }
    let mut all = Vec::new();
    cx.each("budgets", written, |cx, one| all.push(budget(one, cx)));
    all
}

fn budget(written: &api::Budget, cx: &mut Cx) -> DisruptionBudget {
    let nodes = written.nodes.as_deref().unwrap_or("10%");
    if !is_share(nodes) {
        cx.broken_at("nodes", format!("{nodes:?} is neither a count nor a percentage of nodes; write \"10\" or \"10%\""));
    }
    match (&written.schedule, &written.duration) {
        (Some(_), None) => cx.broken("schedule needs duration beside it: how long the window stays open, such as 8h"),
        (None, Some(_)) => cx.broken("duration needs schedule beside it: when the window opens, such as \"0 9 * * 1-5\""),
        (Some(_), Some(_)) | (None, None) => {}
    }
    if let Some(schedule) = written.schedule.as_deref()
        && !MACROS.contains(&schedule)
        && (schedule.starts_with('@') || schedule.split_whitespace().count() != 5)
    {
        let rule = "write five fields (minute hour day month weekday) such as \"0 9 * * 1-5\", or @daily and the like";
        cx.broken_at("schedule", format!("{schedule:?} is no cron schedule; {rule}"));
    }
    for reason in written.reasons.iter().flatten() {
        cx.one_of("reasons", reason, &REASONS);
    }
    DisruptionBudget {
        nodes: nodes.to_owned(),
        schedule: written.schedule.clone(),
        duration: written.duration.as_deref().and_then(|text| window(text, cx)),
        reasons: written.reasons.clone().unwrap_or_default(),
    }
}

/// A number, or a percentage up to 100.
fn is_share(text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match text.strip_suffix('%') {
        Some(percent) => digits(percent) && percent.len() <= 3 && percent.parse().is_ok_and(|p: u32| p <= 100),
        None => digits(text),
    }
}

fn window(text: &str, cx: &mut Cx) -> Option<Duration> {
    let length = amounts::duration("duration", text, cx)?;
    // A trailing `0s` is how other programs write whole minutes.
    let minutes = text.strip_suffix("0s").filter(|rest| rest.ends_with(['h', 'm'])).unwrap_or(text);
    if minutes.contains('s') {
        cx.broken_at("duration", format!("{text:?} has seconds, but windows take hours and minutes only, such as 8h or 1h30m"));
    }
    Some(length)
}
