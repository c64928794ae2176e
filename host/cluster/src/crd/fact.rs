//! What a table says of a place in a schema, beyond its type. The keywords are those of a structural
//! schema: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>.

use serde_json::{Map, Value, json};

/// One keyword of a schema and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fact {
    keyword: &'static str,
    value: Value,
}

/// Facts by place: keys joined with dots, `[]` for the items of a list, `{}` for the values of a map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct At {
    pub(super) place: String,
    pub(super) facts: Vec<Fact>,
}

/// What is so at `place`.
pub(super) fn at(place: &str, facts: impl IntoIterator<Item = Fact>) -> At {
    At { place: place.to_owned(), facts: facts.into_iter().collect() }
}

/// The same at several places.
pub(super) fn at_each<const N: usize>(places: [&str; N], facts: &[Fact]) -> impl Iterator<Item = At> {
    places.map(|place| at(place, facts.iter().cloned())).into_iter()
}

const fn fact(keyword: &'static str, value: Value) -> Fact {
    Fact { keyword, value }
}

/// What stands here when nothing is written.
pub(super) fn default(value: impl Into<Value>) -> Fact {
    fact("default", value.into())
}

/// What a text looks like.
pub(super) fn pattern(regex: &str) -> Fact {
    fact("pattern", json!(regex))
}

/// The only texts that may be.
pub(super) fn one_of(words: &[&str]) -> Fact {
    fact("enum", json!(words))
}

/// Smallest and largest number.
pub(super) fn range(least: i64, most: i64) -> [Fact; 2] {
    [minimum(least), fact("maximum", json!(most))]
}

/// Smallest number.
pub(super) fn minimum(least: i64) -> Fact {
    fact("minimum", json!(least))
}

/// Fewest characters.
pub(super) fn min_length(least: u32) -> Fact {
    fact("minLength", json!(least))
}

/// Most characters.
pub(super) fn max_length(most: u32) -> Fact {
    fact("maxLength", json!(most))
}

/// Fewest items of a list.
pub(super) fn min_items(least: u32) -> Fact {
    fact("minItems", json!(least))
}

/// Most items of a list.
pub(super) fn max_items(most: u32) -> Fact {
    fact("maxItems", json!(most))
}

/// Most entries of a map.
pub(super) fn max_properties(most: u32) -> Fact {
    fact("maxProperties", json!(most))
}

/// The fields that must be written, instead of those that the type names.
pub(super) fn required(fields: &[&str]) -> Fact {
    fact("required", if fields.is_empty() { Value::Null } else { json!(fields) })
}

/// How a number or text is stored.
pub(super) fn format(name: &str) -> Fact {
    fact("format", json!(name))
}

/// What the type or shape says under this keyword does not count here.
pub(super) const fn without(keyword: &'static str) -> Fact {
    fact(keyword, Value::Null)
}

/// A list that whoever applies it owns as a whole.
pub(super) fn atomic() -> Fact {
    fact("x-kubernetes-list-type", json!("atomic"))
}

/// A list without doubles.
pub(super) fn set() -> Fact {
    fact("x-kubernetes-list-type", json!("set"))
}

/// A list whose items are told apart by this field.
pub(super) fn by_key(field: &str) -> [Fact; 2] {
    [fact("x-kubernetes-list-type", json!("map")), fact("x-kubernetes-list-map-keys", json!([field]))]
}

/// Whether a map is owned as a whole (`atomic`) or entry by entry (`granular`).
pub(super) fn map_type(word: &str) -> Fact {
    fact("x-kubernetes-map-type", json!(word))
}

/// Fields that no schema names are kept.
pub(super) fn any_fields() -> Fact {
    fact("x-kubernetes-preserve-unknown-fields", json!(true))
}

/// A CEL rule that must hold, and what is said when it does not.
pub(super) fn rule(cel: impl Into<String>, message: impl Into<String>) -> Fact {
    fact(RULES, json!({ "rule": cel.into(), "message": message.into() }))
}

const RULES: &str = "x-kubernetes-validations";

impl Fact {
    /// Writes itself into `schema`. Rules add up; anything else stands instead of what was there.
    pub(super) fn write(&self, schema: &mut Map<String, Value>) {
        if self.keyword == RULES {
            if let Value::Array(rules) = schema.entry(RULES).or_insert_with(|| json!([])) {
                rules.push(self.value.clone());
            }
        } else if self.value.is_null() {
            schema.remove(self.keyword);
        } else {
            schema.insert(self.keyword.to_owned(), self.value.clone());
        }
    }
}

/// The schema at `place` below `root`.
pub(super) fn find<'a>(root: &'a mut Value, place: &str) -> Option<&'a mut Map<String, Value>> {
    let mut here = root;
    for part in place.split('.').filter(|part| !part.is_empty()) {
        let (key, steps) = part.find(['[', '{']).map_or((part, ""), |cut| part.split_at(cut));
        here = here.get_mut("properties")?.get_mut(key)?;
        for step in steps.as_bytes().chunks(2) {
            here = here.get_mut(if step == b"[]" { "items" } else { "additionalProperties" })?;
        }
    }
    here.as_object_mut()
}
