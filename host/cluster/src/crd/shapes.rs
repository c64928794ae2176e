//! Schemas of Kubernetes' own types where our types hold them, in our words. What must not enter: what
//! differs from kind to kind.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A name with or without a prefix, as labels and taints have it.
pub(super) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// The value of a label.
pub(super) const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// The type of a condition.
const CONDITION_TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The reason of a condition.
const CONDITION_REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// An amount, such as `100m` or `2Gi`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The server itself knows the fields of metadata.
pub(crate) fn metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A moment.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// An amount.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// Amounts by resource.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity(generator) })
}

/// A list of taints.
pub(crate) fn taints(generator: &mut SchemaGenerator) -> Schema {
    let mut added = time(generator);
    added.insert("description".to_owned(), "When the taint was put on the node; not needed here.".into());
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "description": "A taint: pods without a toleration for it stay away.",
            "required": ["effect", "key"],
            "properties": {
                "key": {
                    "type": "string",
                    "description": "What tolerations name.",
                    "minLength": 1,
                    "pattern": QUALIFIED_NAME,
                },
                "value": { "type": "string", "description": "What tolerations may ask for beside the key.", "pattern": QUALIFIED_NAME },
                "effect": {
                    "type": "string",
                    "description": "NoSchedule keeps new pods away, PreferNoSchedule if there is another place, NoExecute also evicts.",
                    "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
                },
                "timeAdded": added,
            },
        },
    })
}

/// A list of conditions.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut changed = time(generator);
    changed.insert("description".to_owned(), "When the status last became another.".into());
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "One thing that is so, is not so, or is not known.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": { "type": "string", "description": "What it is about, in CamelCase.", "maxLength": 316, "pattern": CONDITION_TYPE },
                "status": { "type": "string", "description": "True, False or Unknown.", "enum": ["True", "False", "Unknown"] },
                "reason": {
                    "type": "string",
                    "description": "Why, in one CamelCase word that programs may match on.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": CONDITION_REASON,
                },
                "message": { "type": "string", "description": "Why, for people; may be empty.", "maxLength": 32768 },
                "lastTransitionTime": changed,
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation that was looked at; out of date when it is below metadata.generation.",
                    "minimum": 0,
                },
            },
        },
    })
}
