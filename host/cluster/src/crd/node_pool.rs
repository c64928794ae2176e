//! NodePool.

use serde_json::json;

use super::document::{AGE, Column, Kind, READY};
use super::fact::{
    At, at, atomic, by_key, default, map_type, max_items, max_length, max_properties, minimum, one_of, pattern, range, required, rule, set,
};
use super::requirement::{self, Subject};
use super::shapes::LABEL_VALUE;
use super::structural;
use crate::api;

/// A duration or `Never`.
pub(super) const DURATION_OR_NEVER: &str = "^(([0-9]+(s|m|h))+|Never)$";
/// A duration.
pub(super) const DURATION: &str = "^([0-9]+(s|m|h))+$";
/// A count, or a percentage up to 100.
const COUNT_OR_PERCENT: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";
/// A name for a schedule, or five fields of cron.
const SCHEDULE: &str = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";
/// Hours and minutes, and the `0s` that Go writes behind them.
const HOURS_AND_MINUTES: &str = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";

const COLUMNS: &[Column] = &[
    Column::text("NodeClass", ".spec.template.spec.nodeClassRef.name"),
    Column::text("Nodes", ".status.nodes"),
    READY,
    AGE,
    Column::number("Weight", ".spec.weight").wide(),
    Column::text("CPU", ".status.resources.cpu").wide(),
    Column::text("Memory", ".status.resources.memory").wide(),
];

pub(super) fn kind() -> Kind {
    Kind {
        group: "karpenter.sh",
        version: "v1",
        kind: "NodePool",
        plural: "nodepools",
        short: &[],
        category: "karpenter",
        columns: COLUMNS,
        scale: Some((".spec.replicas", ".status.nodes")),
        schema: structural::of::<api::NodePool>,
        facts: || [top(), disruption(), template(), node_class_ref("spec.template.spec.nodeClassRef")].concat(),
    }
}

fn top() -> Vec<At> {
    vec![
        at("", [required(&["spec"])]),
        at(
            "spec",
            [
                rule(
                    "has(self.replicas) == has(oldSelf.replicas)",
                    "a NodePool stays static (with replicas) or dynamic (without); make another one instead",
                ),
                rule(
                    "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || \
                     (size(self.limits) == 1 && 'nodes' in self.limits))",
                    "a static NodePool (with replicas) may limit nothing but 'nodes'",
                ),
                rule("!has(self.replicas) || !has(self.weight)", "a static NodePool (with replicas) takes no 'weight'"),
            ],
        ),
        at("spec.weight", range(1, 100)),
        at("spec.replicas", [minimum(0)]),
        at("status.nodes", [default(0)]),
        at("status.conditions", by_key("type")),
    ]
}

fn disruption() -> Vec<At> {
    vec![
        at("spec.disruption", [default(json!({ "consolidateAfter": "0s" }))]),
        at("spec.disruption.consolidateAfter", [default("0s"), pattern(DURATION_OR_NEVER)]),
        at(
            "spec.disruption.consolidationPolicy",
            [default("WhenEmptyOrUnderutilized"), one_of(&["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])],
        ),
        at(
            "spec.disruption.budgets",
            [
                default(json!([{ "nodes": "10%" }])),
                max_items(50),
                atomic(),
                rule("self.all(x, has(x.schedule) == has(x.duration))", "a budget has both 'schedule' and 'duration', or neither"),
            ],
        ),
        at("spec.disruption.budgets[]", [required(&["nodes"])]),
        at("spec.disruption.budgets[].nodes", [default("10%"), pattern(COUNT_OR_PERCENT)]),
        at("spec.disruption.budgets[].schedule", [pattern(SCHEDULE)]),
        at("spec.disruption.budgets[].duration", [pattern(HOURS_AND_MINUTES)]),
        at("spec.disruption.budgets[].reasons", [max_items(50), set()]),
        at("spec.disruption.budgets[].reasons[]", [one_of(&["Underutilized", "Empty", "Drifted"])]),
    ]
}

fn template() -> Vec<At> {
    let labels = [Subject::Keys.of_karpenter(), Subject::Keys.no_pool(), Subject::Keys.no_host(), Subject::Keys.of_aws(|_| true)];
    let keys = [Subject::Key.of_karpenter(), Subject::Key.no_pool(), Subject::Key.no_host(), Subject::Key.of_aws(|_| true)];
    let lists = [requirement::in_has_values(), requirement::bounds_are_numbers(), requirement::enough_values()];
    let mut table = requirement::requirements("spec.template.spec.requirements", lists, keys);
    table.extend([
        requirement::min_values("spec.template.spec.requirements"),
        at("spec.template.metadata.annotations", [map_type("granular")]),
        at("spec.template.metadata.labels", [map_type("atomic"), max_properties(100)].into_iter().chain(labels)),
        at("spec.template.metadata.labels{}", [max_length(63), pattern(LABEL_VALUE)]),
        at("spec.template.spec.expireAfter", [default("720h"), pattern(DURATION_OR_NEVER)]),
        at("spec.template.spec.terminationGracePeriod", [pattern(DURATION)]),
        at(
            "spec.template.spec.nodeClassRef",
            [
                rule("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
                rule("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
            ],
        ),
    ]);
    table
}

/// The reference to a class at `place`: every part says something.
pub(super) fn node_class_ref(place: &str) -> Vec<At> {
    let part = |field: &str| at(&format!("{place}.{field}"), [rule("self != ''", format!("{field} may not be empty"))]);
    vec![at(&format!("{place}.group"), [pattern("^[^/]*$")]), part("group"), part("kind"), part("name")]
}
