//! What an API server does with an object of a defined kind, as far as the tables need it: refuse fields
//! that are not there, put in defaults, check the structure, then the CEL rules. Refusals are worded
//! as the server words them where a table may look for the words.

use std::collections::HashMap;
use std::sync::Arc;

use cel::extractors::This;
use cel::objects::Key;
use cel::{Context, Program, Value as Cel};
use jsonschema::error::ValidationErrorKind;
use regex::Regex;
use serde_json::{Map, Value, json};
use whittle_cluster::crd;

/// The schemas by group and version, and kind.
pub struct Server {
    schemas: HashMap<(String, String), Value>,
}

impl Server {
    /// A server that has the definitions.
    pub fn new() -> Self {
        let schemas = crd::all().into_iter().map(|crd| {
            let (spec, version) = (&crd.object["spec"], &crd.object["spec"]["versions"][0]);
            let api = format!("{}/{}", spec["group"].as_str().unwrap(), version["name"].as_str().unwrap());
            ((api, spec["names"]["kind"].as_str().unwrap().to_owned()), version["schema"]["openAPIV3Schema"].clone())
        });
        Self { schemas: schemas.collect() }
    }

    /// Why `object` is refused: when it is new, or when it replaces `old`. Nothing when it is taken.
    pub fn refuses(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let Some(schema) = self.schemas.get(&(text("apiVersion"), text("kind"))) else {
            return vec![format!("no matches for kind {:?} in version {:?}", text("kind"), text("apiVersion"))];
        };
        let mut object = object.clone();
        fill(schema, &mut object);
        let mut faults = structure(schema, &object);
        if faults.is_empty() {
            let old = old.cloned().map(|mut old| {
                fill(schema, &mut old);
                old
            });
            rules(schema, &object, old.as_ref(), "", &mut faults);
        }
        faults
    }
}

/// The values below `value` with their schemas: key or index, as the server writes it, and both.
fn below<'a>(schema: &'a Value, value: &'a Value) -> Vec<(String, &'a Value, &'a Value)> {
    match value {
        Value::Object(fields) => {
            let known =
                |(key, value)| Some((format!(".{key}"), schema["properties"].get(key).or(schema.get("additionalProperties"))?, value));
            fields.iter().filter_map(known).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (format!("[{at}]"), &schema["items"], item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Puts defaults in.
fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, below) in schema["properties"].as_object().into_iter().flatten() {
                if let (None, Some(default)) = (fields.get(key), below.get("default")) {
                    fields.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in fields {
                if let Some(below) = schema["properties"].get(key) {
                    fill(below, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema, closed: fields without a schema are refused.
fn closed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|below| *below = closed(below));
        schema["additionalProperties"] = json!(false);
    } else if let Some(values) = schema.get("additionalProperties") {
        schema["additionalProperties"] = closed(values);
    }
    if let Some(items) = schema.get("items") {
        schema["items"] = closed(items);
    }
    schema
}

fn structure(schema: &Value, object: &Value) -> Vec<String> {
    let checker = jsonschema::draft7::new(&closed(schema)).unwrap();
    let mut faults = Vec::new();
    for error in checker.iter_errors(object) {
        let place = dotted(error.instance_path().as_str());
        let inner = |key: &str| format!("{place}.{key}").trim_start_matches('.').to_owned();
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            faults.extend(unexpected.iter().map(|key| format!("unknown field {:?}", inner(key))));
        } else if let ValidationErrorKind::Required { property } = error.kind() {
            faults.push(format!("{}: Required value", inner(property.as_str().unwrap())));
        } else {
            faults.push(format!("{place}: Invalid value: {error}"));
        }
    }
    faults
}

/// `/spec/terms/0/id` as `spec.terms[0].id`.
fn dotted(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.parse::<usize>() {
            Ok(at) => out.push_str(&format!("[{at}]")),
            Err(_) if out.is_empty() => out = part,
            Err(_) => out.push_str(&format!(".{part}")),
        }
    }
    out
}

fn rules(schema: &Value, value: &Value, old: Option<&Value>, place: &str, faults: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let (cel, message) = (rule["rule"].as_str().unwrap(), rule["message"].as_str().unwrap());
        if cel.contains("oldSelf") && old.is_none() {
            continue;
        }
        if !holds(cel, value, old) {
            faults.push(format!("{}: Invalid value: {message}", place.trim_start_matches('.')));
        }
    }
    for (step, schema, value) in below(schema, value) {
        let old = step.strip_prefix('.').and_then(|key| old?.get(key));
        rules(schema, value, old, &format!("{place}{step}"), faults);
    }
}

/// A rule that cannot be evaluated does not hold, as at the server.
fn holds(cel: &str, value: &Value, old: Option<&Value>) -> bool {
    let mut context = Context::default();
    context.add_variable_from_value("self", to_cel(value));
    if let Some(old) = old {
        context.add_variable_from_value("oldSelf", to_cel(old));
    }
    // What Kubernetes adds to CEL.
    let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
    context
        .add_function("find", move |This(this): This<Arc<String>>, regex: Arc<String>| {
            text(Regex::new(&regex).unwrap().find(&this).map_or("", |found| found.as_str()))
        })
        .unwrap();
    context
        .add_function("matches", |This(this): This<Arc<String>>, regex: Arc<String>| Regex::new(&regex).unwrap().is_match(&this))
        .unwrap();
    context
        .add_function("split", move |This(this): This<Arc<String>>, at: Arc<String>| {
            Cel::List(Arc::new(this.split(at.as_str()).map(text).collect()))
        })
        .unwrap();
    let program = Program::compile(cel).map_err(|error| format!("{cel}: {error}")).unwrap();
    matches!(program.execute(&context), Ok(Cel::Bool(true)))
}

fn to_cel(value: &Value) -> Cel {
    let entries = |fields: &Map<String, Value>| fields.iter().map(|(key, value)| (Key::from(key.clone()), to_cel(value))).collect();
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap()), Cel::Int),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => Cel::Map(cel::objects::Map { map: Arc::new(entries(fields)) }),
    }
}
