//! Names, label keys and label values as the API server takes them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use whittle_model::{Labels, Owner, PodKey, Timestamp};

use super::Cx;

/// The rule that a qualified name breaks, if any.
pub(super) fn key_fault(key: &str) -> Option<String> {
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|p| !dns_subdomain(p)) {
        return Some(format!("{key:?} is no label key: what stands before the / must be a domain such as example.com"));
    }
    if !word(name) || name.is_empty() {
        return Some(format!(
            "{key:?} is no label key: it takes up to 63 letters, digits, - _ or ., and a letter or digit at both ends, as in example.com/team"
        ));
    }
    None
}

/// The rule that a label value breaks, if any.
pub(super) fn value_fault(value: &str) -> Option<String> {
    (!word(value))
        .then(|| format!("{value:?} is no label value: it takes up to 63 letters, digits, - _ or ., and a letter or digit at both ends"))
}

/// At most 63 letters, digits, `-`, `_`, `.`, beginning and ending with a letter or digit; may be empty.
fn word(text: &str) -> bool {
    let end = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && end(bytes.first())
        && end(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Whether this is a lower-case domain name of at most 253 characters.
fn dns_subdomain(text: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// The object's name; says so when it has none, or one that the API server refuses.
pub(super) fn object_name(meta: &ObjectMeta, cx: &mut Cx) -> String {
    let name = match (&meta.name, &meta.generate_name) {
        (Some(name), _) if !name.is_empty() => name.clone(),
        (_, Some(prefix)) if !prefix.is_empty() => format!("{prefix}1"),
        (_, _) => {
            cx.broken("metadata.name is missing: give the object a name");
            return String::new();
        }
    };
    if !dns_subdomain(&name) {
        let what = format!("{name:?} is no object name: it takes lower-case letters, digits, - and ., and a letter or digit at both ends");
        cx.keys(&["metadata", "name"], |cx| cx.broken(what));
    }
    name
}

/// Namespace and name of a namespaced object.
pub(super) fn object_key(meta: &ObjectMeta, cx: &mut Cx) -> PodKey {
    let namespace = meta.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or("default");
    PodKey::new(namespace, &object_name(meta, cx))
}

/// Labels of an object or template, checked.
pub(super) fn labels(labels: Option<&Labels>, cx: &mut Cx) -> Labels {
    let labels = labels.cloned().unwrap_or_default();
    cx.key("labels", |cx| {
        for (key, value) in &labels {
            if let Some(what) = key_fault(key).or_else(|| value_fault(value)) {
                cx.broken_at(key, what);
            }
        }
    });
    labels
}

/// The controller that owns an object.
pub(super) fn owner(meta: &ObjectMeta) -> Option<Owner> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|o| o.controller == Some(true)).map(|o| Owner { kind: o.kind.clone(), name: o.name.clone() })
}

/// A time of the API as milliseconds.
pub(super) fn timestamp(time: Option<&Time>) -> Timestamp {
    Timestamp(time.map_or(0, |t| t.0.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_and_refused_as_by_the_api_server() {
        for (key, good) in [
            ("team", true),
            ("example.com/team", true),
            ("Example.com/team", false),
            ("a/b/c", false),
            ("-a", false),
            ("example.com/", false),
            ("/a", false),
            ("a b", false),
            ("", false),
        ] {
            assert_eq!(key_fault(key).is_none(), good, "{key}");
        }
        for (value, good) in [("", true), ("a.b_c-d", true), ("a b", false), ("a-", false)] {
            assert_eq!(value_fault(value).is_none(), good, "{value}");
        }
        assert!(value_fault(&"a".repeat(64)).is_some());
    }
}
