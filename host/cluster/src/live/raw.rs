//! An object as the server sent it: a tree whose shape is looked at later, so that one that cannot be read does not break the
//! list or the watch it stands in.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Name {
    /// Of kinds that live in namespaces.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl std::fmt::Display for Name {
    /// `namespace/name` or `name`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// An object, unread.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    meta: ObjectMeta,
    /// All of it that says something.
    pub value: Value,
}

impl Raw {
    pub fn name(&self) -> Name {
        Name { namespace: self.meta.namespace.clone(), name: self.meta.name.clone().unwrap_or_default() }
    }

    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub fn version(&self) -> &str {
        self.meta.resource_version.as_deref().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::Object(deserializer.deserialize_map(Trimmed::Object)?);
        let text = |key: &str| value.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, value })
    }
}

/// Reads a mapping without the record of who wrote which field and the copy that `kubectl apply` keeps, which are often more
/// than half of an object.
#[derive(Clone, Copy)]
enum Trimmed {
    Object,
    Metadata,
    Annotations,
}

impl<'de> Visitor<'de> for Trimmed {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match (self, key.as_str()) {
                (Self::Object, "metadata") => map.insert(key, Value::Object(access.next_value_seed(Self::Metadata)?)),
                (Self::Metadata, "annotations") => map.insert(key, Value::Object(access.next_value_seed(Self::Annotations)?)),
                (Self::Metadata, "managedFields") | (Self::Annotations, "kubectl.kubernetes.io/last-applied-configuration") => {
                    access.next_value::<IgnoredAny>().map(|_| None)?
                }
                (Self::Object | Self::Metadata | Self::Annotations, _) => map.insert(key, access.next_value()?),
            };
        }
        Ok(map)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Map::new())
    }
}

impl<'de> DeserializeSeed<'de> for Trimmed {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_comes_whole_but_for_the_records_of_its_writers() {
        const KUBECTL: &str = "kubectl.kubernetes.io/last-applied-configuration";
        let raw: Raw = serde_json::from_value(json!({
            "metadata": {
                "name": "a", "namespace": "n", "resourceVersion": "7", "labels": {KUBECTL: "x"},
                "managedFields": [{"manager": "m"}], "annotations": {KUBECTL: "{}", "a": "b"},
            },
            "spec": {"managedFields": [1]},
        }))
        .expect("it is an object");
        assert_eq!((raw.name().to_string().as_str(), raw.version(), raw.uid()), ("n/a", "7", ""));
        let wanted = json!({
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7", "labels": {KUBECTL: "x"}, "annotations": {"a": "b"}},
            "spec": {"managedFields": [1]},
        });
        assert_eq!(raw.value, wanted);
    }

    #[test]
    fn nothing_where_a_mapping_is_wanted_is_an_empty_one() {
        let raw: Raw = serde_json::from_value(json!({"metadata": {"name": "a", "annotations": null}})).expect("it is an object");
        assert_eq!(raw.value, json!({"metadata": {"name": "a", "annotations": {}}}));
    }
}
