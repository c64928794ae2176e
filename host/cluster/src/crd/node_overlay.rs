//! NodeOverlay.

use super::document::{AGE, Column, Kind, READY};
use super::fact::{At, at, by_key, pattern, range, required, rule};
use super::requirement::{self, Subject};
use super::structural;
use crate::api;

/// Dollars.
const PRICE: &str = r"^\d+(\.\d+)?$";
/// Dollars or percent with a sign; at most 100 percent less.
const ADJUSTMENT: &str = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$";

const COLUMNS: &[Column] = &[READY, AGE, Column::number("Weight", ".spec.weight").wide()];

pub(super) fn kind() -> Kind {
    Kind {
        group: "karpenter.sh",
        version: "v1alpha1",
        kind: "NodeOverlay",
        plural: "nodeoverlays",
        short: &["overlays"],
        category: "karpenter",
        columns: COLUMNS,
        scale: None,
        schema: structural::of::<api::NodeOverlay>,
        facts,
    }
}

/// What belongs to an instance type, and not to how or where an instance of it is bought.
fn of_types(label: &str) -> bool {
    let bought = ["capacity-reservation-", "placement-group-", "instance-tenancy"];
    !bought.iter().any(|start| label.starts_with(start))
}

fn facts() -> Vec<At> {
    let keys = [Subject::Key.of_karpenter(), Subject::Key.no_host(), Subject::Key.of_aws(of_types)];
    let lists = [requirement::not_in_has_values(), requirement::in_has_values(), requirement::bounds_are_numbers()];
    let mut table = requirement::requirements("spec.requirements", lists, keys);
    table.extend([
        at("", [required(&["spec"])]),
        at(
            "spec",
            [rule("!has(self.price) || !has(self.priceAdjustment)", "'price' and 'priceAdjustment' exclude each other; keep one of them")],
        ),
        at(
            "spec.capacity",
            [rule(
                "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
                "cpu, memory, ephemeral-storage and pods are what the instance type has; an overlay adds other resources only",
            )],
        ),
        at("spec.price", [pattern(PRICE)]),
        at("spec.priceAdjustment", [pattern(ADJUSTMENT)]),
        at("spec.weight", range(1, 10_000)),
        at("status.conditions", by_key("type")),
    ]);
    table
}
