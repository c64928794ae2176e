//! The CustomResourceDefinitions of the five kinds: names, types and descriptions come from the API types,
//! and the tables here say what a type cannot: limits, defaults, CEL rules, columns.
//!
//! What Karpenter's published definitions accept and refuse, these accept and refuse; only
//! `consolidateAfter` may be left out of a NodePool's `disruption`. What must not enter: talk with a
//! server, and what the fields mean.

mod document;
mod ec2_node_class;
mod fact;
mod node_claim;
mod node_overlay;
mod node_pool;
mod requirement;
mod scoring_policy;
pub(crate) mod shapes;
mod structural;

use serde_json::Value;

use crate::yaml::{self, Data, Yaml};
use document::Kind;

/// A CustomResourceDefinition.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// Its name, such as `nodepools.karpenter.sh`.
    pub name: String,
    /// The name of the file it is kept in, such as `karpenter.sh_nodepools.yaml`.
    pub file: String,
    /// The object.
    pub object: Value,
}

impl Crd {
    /// The object as a YAML document, keys in order.
    #[must_use]
    pub fn yaml(&self) -> String {
        yaml::emit(&tree(&self.object))
    }
}

/// All definitions, in the order of their files' names.
#[must_use]
pub fn all() -> Vec<Crd> {
    kinds().iter().map(Kind::definition).collect()
}

fn kinds() -> [Kind; 5] {
    [ec2_node_class::kind(), node_claim::kind(), node_overlay::kind(), node_pool::kind(), scoring_policy::kind()]
}

/// The tree of a JSON value. Keys are sorted here, because the order that `serde_json` keeps depends on
/// what else is built.
fn tree(value: &Value) -> Yaml {
    match value {
        Value::Null => Yaml::plain("null"),
        Value::Bool(_) | Value::Number(_) => Yaml::plain(&value.to_string()),
        Value::String(text) => Yaml::text(text),
        Value::Array(items) => Yaml { line: 0, data: Data::Sequence(items.iter().map(tree).collect()) },
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            let mut mapping = Yaml::mapping();
            for key in keys {
                mapping.set(key, tree(&entries[key]));
            }
            mapping
        }
    }
}

#[cfg(test)]
#[path = "../../tests_unit/crd.rs"]
mod tests;
