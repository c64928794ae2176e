//! NodeClaim.

use super::document::{AGE, Column, Kind, READY};
use super::fact::{At, at, by_key, default, pattern, required, rule, without};
use super::node_pool::{DURATION, DURATION_OR_NEVER, node_class_ref};
use super::requirement::{self, Subject};
use super::structural;
use crate::api;

/// The reason of a claim's condition, which may be empty.
const REASON: &str = "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$";

const COLUMNS: &[Column] = &[
    Column::text("Type", r".metadata.labels.node\.kubernetes\.io/instance-type"),
    Column::text("Capacity", r".metadata.labels.karpenter\.sh/capacity-type"),
    Column::text("Zone", r".metadata.labels.topology\.kubernetes\.io/zone"),
    Column::text("Node", ".status.nodeName"),
    READY,
    AGE,
    Column::text("ImageID", ".status.imageID").wide(),
    Column::text("ID", ".status.providerID").wide(),
    Column::text("NodePool", r".metadata.labels.karpenter\.sh/nodepool").wide(),
    Column::text("NodeClass", ".spec.nodeClassRef.name").wide(),
    Column::text("Drifted", r#".status.conditions[?(@.type=="Drifted")].status"#).wide(),
];

pub(super) fn kind() -> Kind {
    Kind {
        group: "karpenter.sh",
        version: "v1",
        kind: "NodeClaim",
        plural: "nodeclaims",
        short: &[],
        category: "karpenter",
        columns: COLUMNS,
        scale: None,
        schema: structural::of::<api::NodeClaim>,
        facts,
    }
}

fn facts() -> Vec<At> {
    let keys = [Subject::Key.of_karpenter(), Subject::Key.no_host(), Subject::Key.of_aws(|_| true)];
    let lists = [requirement::in_has_values(), requirement::bounds_are_numbers(), requirement::enough_values()];
    let mut table = requirement::requirements("spec.requirements", lists, keys);
    table.extend(node_class_ref("spec.nodeClassRef"));
    table.extend([
        requirement::min_values("spec.requirements"),
        at("", [required(&["spec"])]),
        at("spec", [rule("self == oldSelf", "the spec of a NodeClaim is immutable")]),
        at("spec.expireAfter", [default("720h"), pattern(DURATION_OR_NEVER)]),
        at("spec.terminationGracePeriod", [pattern(DURATION)]),
        at("status.conditions", by_key("type")),
        at("status.conditions[]", [required(&["lastTransitionTime", "status", "type"])]),
        at("status.conditions[].reason", [without("minLength"), pattern(REASON)]),
    ]);
    table
}
