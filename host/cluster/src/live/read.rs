//! Trees into API types and events. Unknown fields are left unread; everything else is read wholly or told as unreadable.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    from::Cx,
    yaml::{self, Data, Entry, Path, Scalar, Style, Yaml},
};

/// The object as its API type, or what keeps it from being one, with the field.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    // The common way first; the reader of manifests knows the field of a mismatch.
    T::deserialize(value).or_else(|_| yaml::read(&tree(value)).value.map_err(|mismatch| at(&mismatch.path, &mismatch.what)))
}

/// Whether no rule was found broken; the broken ones, with the fields.
pub(super) fn faultless(cx: &Cx) -> Result<(), String> {
    if cx.problems.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = cx.problems.iter().map(|(path, what)| at(path, what)).collect();
    Err(all.join("; "))
}

fn at(path: &Path, what: &str) -> String {
    let path = path.to_string();
    if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") }
}

fn tree(value: &Value) -> Yaml {
    let scalar = |text: String, style| Data::Scalar(Scalar { text, style });
    let data = match value {
        Value::Null => scalar("null".to_owned(), Style::Plain),
        Value::Bool(truth) => scalar(truth.to_string(), Style::Plain),
        Value::Number(number) => scalar(number.to_string(), Style::Plain),
        Value::String(text) => scalar(text.clone(), Style::Quoted),
        Value::Array(items) => Data::Sequence(items.iter().map(tree).collect()),
        Value::Object(entries) => {
            Data::Mapping(entries.iter().map(|(key, value)| Entry { key: key.clone(), line: 0, value: tree(value) }).collect())
        }
    };
    Yaml { line: 0, data }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::api;

    #[test]
    fn a_mismatch_names_its_field() {
        let pod = typed::<Pod>(&json!({"spec": {"containers": [{"name": "a", "ports": 7}]}}));
        assert!(pod.is_err_and(|why| why.starts_with("spec.containers[0].ports: ")));
    }

    #[test]
    fn unknown_fields_and_numbers_for_quantities_are_taken() {
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"},
            "spec": {"limits": {"cpu": 1000}, "colour": "red",
                "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}},
        });
        let pool = typed::<api::NodePool>(&pool).expect("it is a NodePool");
        assert_eq!(pool.spec.limits.and_then(|l| l.get("cpu").map(|q| q.0.clone())).as_deref(), Some("1000"));
    }
}
