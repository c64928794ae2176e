//! From the schema that `schemars` derives to a structural one: no references, no alternatives, no
//! nulls, and no defaults but those of the tables.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The structural schema of a type.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    structural(settings.into_generator().into_root_schema_for::<T>().to_value())
}

fn structural(schema: Value) -> Value {
    // The schema `true` is what takes anything.
    let Value::Object(mut fields) = schema else { return json!({ KEEP: true }) };
    if let Some(one) = alternative(&mut fields) {
        for (key, value) in one {
            fields.entry(key).or_insert(value);
        }
    }
    for noise in ["$schema", "title", "default"] {
        fields.remove(noise);
    }
    if let Some(Value::Array(types)) = fields.get("type") {
        let one = types.iter().find(|name| *name != "null").cloned();
        fields.insert("type".to_owned(), one.unwrap_or_default());
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for below in properties.values_mut() {
            *below = structural(below.take());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(key) {
            *below = structural(below.take());
        }
    }
    let typed = fields.contains_key("type") || fields.keys().any(|key| key.starts_with("x-kubernetes-"));
    if !typed {
        fields.insert(KEEP.to_owned(), json!(true));
    }
    Value::Object(fields)
}

const KEEP: &str = "x-kubernetes-preserve-unknown-fields";

/// What an optional struct is when it is there: one alternative beside null.
fn alternative(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    if fields.contains_key("x-kubernetes-int-or-string") {
        return None;
    }
    let Value::Array(choices) = fields.remove("anyOf")? else { return None };
    choices.into_iter().find_map(|choice| match choice {
        Value::Object(fields) if fields.get("type") != Some(&json!("null")) => Some(fields),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    })
}
