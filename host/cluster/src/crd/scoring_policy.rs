//! ScoringPolicy.

use serde_json::json;

use super::document::{AGE, Column, Kind, READY};
use super::fact::{At, at, at_each, by_key, default, max_length, min_length, minimum, one_of, pattern, required, rule};
use super::structural;
use crate::api;

/// The name of an object.
const OBJECT_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A key of a ConfigMap.
const DATA_KEY: &str = "^[-._a-zA-Z0-9]+$";
/// A digest.
const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

const COLUMNS: &[Column] = &[
    Column::text("Mode", ".spec.mode"),
    READY,
    AGE,
    Column::text("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#).wide(),
    Column::number("Calls", ".status.calls").wide(),
    Column::number("Failures", ".status.failures").wide(),
    Column::number("Disagreement", ".status.disagreement").wide(),
    Column::text("Digest", ".status.digest").wide(),
];

pub(super) fn kind() -> Kind {
    Kind {
        group: "whittle.sh",
        version: "v1alpha1",
        kind: "ScoringPolicy",
        plural: "scoringpolicies",
        short: &["spol"],
        category: "whittle",
        columns: COLUMNS,
        scale: None,
        schema: structural::of::<api::ScoringPolicy>,
        facts: || [spec(), module()].concat(),
    }
}

fn spec() -> Vec<At> {
    let stances = one_of(&["Ignore", "Closed"]);
    vec![
        at("", [required(&["spec"])]),
        at("spec", [required(&["mode", "module"])]),
        at("spec.mode", [one_of(&["Enforce", "Observe"])]),
        at("spec.onFailure", [default(json!({ "candidates": "Ignore", "moves": "Closed" }))]),
        at("spec.onFailure.candidates", [default("Ignore"), stances.clone()]),
        at("spec.onFailure.moves", [default("Closed"), stances]),
        at("spec.limits.fuel", [minimum(1)]),
        at("status.conditions", by_key("type")),
    ]
}

fn module() -> Vec<At> {
    let mut table = vec![
        at(
            "spec.module",
            [rule(
                "[has(self.builtin), has(self.configMap), has(self.oci), has(self.file)].exists_one(said, said)",
                "a policy has exactly one module: write one of builtin, configMap, oci and file",
            )],
        ),
        at("spec.module.configMap.key", [pattern(DATA_KEY), max_length(253)]),
        at("spec.module.oci.digest", [pattern(DIGEST)]),
    ];
    table.extend(at_each(["spec.module.configMap.name", "spec.module.oci.pullSecret"], &[pattern(OBJECT_NAME), max_length(253)]));
    table.extend(at_each(["spec.module.builtin", "spec.module.oci.image", "spec.module.file.path"], &[min_length(1)]));
    table
}
