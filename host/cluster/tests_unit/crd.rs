//! The tables against the types.

use super::*;
use crate::crd::fact::find;

#[test]
fn every_place_of_the_tables_is_in_the_types() {
    for kind in kinds() {
        let mut schema = (kind.schema)();
        for at in (kind.facts)() {
            assert!(find(&mut schema, &at.place).is_some(), "{} has no {:?}", kind.kind, at.place);
        }
    }
}

/// Walks a schema; `f` is told the place.
fn each(schema: &Value, place: &str, f: &mut dyn FnMut(&Value, &str)) {
    f(schema, place);
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        each(below, &format!("{place}.{key}"), f);
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(below) = schema.get(key) {
            each(below, &format!("{place}{step}"), f);
        }
    }
}

#[test]
fn schemas_are_structural_and_described() {
    const TAKEN: [&str; 23] = [
        "additionalProperties",
        "anyOf",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
    ];
    for kind in kinds() {
        each(&kind.structural(), kind.kind, &mut |schema, place| {
            let fields = schema.as_object().unwrap_or_else(|| panic!("{place} is no schema"));
            for key in fields.keys() {
                assert!(TAKEN.contains(&key.as_str()) || key == "x-kubernetes-validations", "{place} has {key}");
            }
            let open = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"].iter().any(|key| fields.contains_key(*key));
            assert!(fields.get("type").is_some_and(Value::is_string) || open, "{place} has no type");
            assert_eq!(fields.contains_key("anyOf"), fields.contains_key("x-kubernetes-int-or-string"), "{place}");
            let own = !place.ends_with([']', '}']);
            if place == format!("{}.metadata", kind.kind) {
                assert_eq!(*schema, serde_json::json!({ "type": "object" }), "the server takes no other {place}");
                return;
            }
            assert!(!own || fields.contains_key("description"), "{place} is not described");
        });
    }
}

#[test]
fn files_are_ordered_and_the_yaml_reads_back() {
    let all = all();
    assert!(all.is_sorted_by_key(|crd| crd.file.clone()));
    for crd in all {
        let (documents, error) = yaml::parse(&crd.yaml());
        assert_eq!(error, None, "{}", crd.name);
        assert_eq!(documents.len(), 1, "{}", crd.name);
        assert_eq!(documents[0].root.text_at(&["metadata", "name"]), Some(crd.name.as_str()));
    }
}
