//! A kind and the object that defines it. What must not enter: anything about a particular kind.

use serde_json::{Map, Value, json};

use super::{Crd, fact::At, fact::find};

/// What is told of a kind.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short: &'static [&'static str],
    /// With which others `kubectl get` lists it.
    pub(super) category: &'static str,
    /// What `kubectl get` shows beside the name.
    pub(super) columns: &'static [Column],
    /// Where `kubectl scale` writes and reads the number of replicas.
    pub(super) scale: Option<(&'static str, &'static str)>,
    pub(super) schema: fn() -> Value,
    pub(super) facts: fn() -> Vec<At>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    path: &'static str,
    type_: &'static str,
    wide: bool,
}

impl Column {
    /// A column of text.
    pub(super) const fn text(name: &'static str, path: &'static str) -> Self {
        Self { name, path, type_: "string", wide: false }
    }

    /// A column of whole numbers.
    pub(super) const fn number(name: &'static str, path: &'static str) -> Self {
        Self { name, path, type_: "integer", wide: false }
    }

    /// The same, shown with `-o wide` only.
    pub(super) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    fn object(&self) -> Value {
        let mut object = json!({ "name": self.name, "jsonPath": self.path, "type": self.type_ });
        if self.wide {
            object["priority"] = json!(1);
        }
        object
    }
}

/// Whether it is ready.
pub(super) const READY: Column = Column::text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#);
/// How old it is.
pub(super) const AGE: Column = Column { name: "Age", path: ".metadata.creationTimestamp", type_: "date", wide: false };

impl Kind {
    /// The schema, everything applied that the tables say.
    pub(super) fn structural(&self) -> Value {
        let mut schema = (self.schema)();
        // The server describes metadata itself and refuses a definition that says a word of it.
        schema["properties"]["metadata"] = json!({ "type": "object" });
        for At { place, facts } in (self.facts)() {
            let here = find(&mut schema, &place).expect("a test looks for every place of the tables");
            facts.iter().for_each(|fact| fact.write(here));
        }
        schema
    }

    /// The definition.
    pub(super) fn definition(&self) -> Crd {
        let Self { group, version, kind, plural, .. } = self;
        let name = format!("{plural}.{group}");
        let mut names = json!({
            "kind": kind,
            "listKind": format!("{kind}List"),
            "plural": plural,
            "singular": kind.to_lowercase(),
            "categories": [self.category],
        });
        if !self.short.is_empty() {
            names["shortNames"] = json!(self.short);
        }
        let mut subresources = Map::new();
        subresources.insert("status".to_owned(), json!({}));
        if let Some((spec, status)) = self.scale {
            subresources.insert("scale".to_owned(), json!({ "specReplicasPath": spec, "statusReplicasPath": status }));
        }
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": {
                "group": group,
                "names": names,
                "scope": "Cluster",
                "versions": [{
                    "name": version,
                    "served": true,
                    "storage": true,
                    "additionalPrinterColumns": self.columns.iter().map(Column::object).collect::<Vec<_>>(),
                    "schema": { "openAPIV3Schema": self.structural() },
                    "subresources": subresources,
                }],
            },
        });
        Crd { name, file: format!("{group}_{plural}.yaml"), object }
    }
}
