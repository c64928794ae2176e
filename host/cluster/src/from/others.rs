//! Small kinds: priority classes, namespaces.

use k8s_openapi::api::{core::v1 as core, scheduling::v1 as scheduling};
use whittle_model::Labels;

use super::{Cx, names};

/// A PriorityClass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityClassObject {
    /// Its name.
    pub name: String,
    /// Higher goes first.
    pub value: i32,
    /// Whether pods without a class get it.
    pub global_default: bool,
}

/// A Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceObject {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
}

/// A PriorityClass.
pub(crate) fn priority_class(written: &scheduling::PriorityClass, cx: &mut Cx) -> PriorityClassObject {
    if written.value.is_none() {
        cx.broken("value is missing: write the priority as a whole number");
    }
    PriorityClassObject {
        name: names::object_name(&written.metadata, cx),
        value: written.value.unwrap_or(0),
        global_default: written.global_default.unwrap_or(false),
    }
}

/// A Namespace.
pub(crate) fn namespace(written: &core::Namespace, cx: &mut Cx) -> NamespaceObject {
    NamespaceObject { name: names::object_name(&written.metadata, cx), labels: written.metadata.labels.clone().unwrap_or_default() }
}
