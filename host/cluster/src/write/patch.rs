//! Merge patches that hold only what differs.
//!
//! What must not enter: which objects there are.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use serde_json::{Map, Value, json};
use whittle_model::{Quantity, Resources, resources::format_amount};

/// A change of one object: merge patches (RFC 7386) of the object itself and of its status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObjectPatch {
    /// Of the object: metadata alone.
    pub object: Option<Value>,
    /// Of its `status` subresource.
    pub status: Option<Value>,
}

impl ObjectPatch {
    /// `None` when there is nothing to change.
    pub(super) fn unless_empty(self) -> Option<Self> {
        (self.object.is_some() || self.status.is_some()).then_some(self)
    }
}

/// The entries of `wanted` that `live` has not or has otherwise.
pub(super) fn missing(wanted: &BTreeMap<String, String>, live: Option<&BTreeMap<String, String>>) -> Map<String, Value> {
    let differs = |(key, value): &(&String, &String)| live.is_none_or(|live| live.get(*key) != Some(*value));
    wanted.iter().filter(differs).map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect()
}

/// Fields that differ, while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Sets `key` unless the object is empty.
    pub(super) fn object(&mut self, key: &str, fields: Map<String, Value>) {
        if !fields.is_empty() {
            self.0.insert(key.to_owned(), Value::Object(fields));
        }
    }

    /// Sets `key` to `value`.
    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    /// Sets `key` to a text, unless that is empty or what `live` has.
    pub(super) fn text(&mut self, key: &str, wanted: &str, live: Option<&String>) {
        if !wanted.is_empty() && live.is_none_or(|live| live != wanted) {
            self.set(key, json!(wanted));
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A patch that has them under `key`; `None` when there is none.
    pub(super) fn under(self, key: &str) -> Option<Value> {
        (!self.is_empty()).then(|| json!({ key: self.0 }))
    }
}

/// Resources as a list of the API.
pub(super) fn list(all: &Resources) -> BTreeMap<String, Written> {
    all.iter().map(|(name, amount)| (name.to_owned(), Written(format_amount(name, amount)))).collect()
}

/// The merge patch that turns the list `live` into `wanted`, amounts compared by value; a zero is as good as none.
pub(super) fn amounts(wanted: &BTreeMap<String, Written>, live: Option<&BTreeMap<String, Written>>) -> Map<String, Value> {
    let value = |text: &str| Quantity::parse(text).ok();
    let mut fields = Map::new();
    for (name, amount) in wanted {
        let have = live.and_then(|live| live.get(name));
        if have.is_none_or(|have| value(&have.0) != value(&amount.0)) {
            fields.insert(name.clone(), json!(amount.0));
        }
    }
    let zero = Some(Quantity::default());
    for (name, amount) in live.into_iter().flatten() {
        if !wanted.contains_key(name) && value(&amount.0) != zero {
            fields.insert(name.clone(), Value::Null);
        }
    }
    fields
}
