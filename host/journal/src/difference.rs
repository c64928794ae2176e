//! Where a replay parts from what was recorded, in words. What must not enter: running a replay.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use whittle_model::{Action, Timestamp};

/// The first difference between a journal and its replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The segment.
    pub segment: u64,
    /// The poll, counted from 1 over the replay; of a checkpoint the last poll before it.
    pub poll: u64,
    /// When, in milliseconds since the epoch.
    pub at: i64,
    /// Where: `action 3`, `checkpoint`, and the path of the field within.
    pub place: String,
    /// What was recorded there, as JSON; `null` for nothing.
    pub recorded: Value,
    /// What came out, as JSON; `null` for nothing.
    pub replayed: Value,
}

impl Difference {
    /// Where actions differ first; `None` when they are equal.
    pub(crate) fn of_actions(recorded: &[Action], replayed: &[Action], segment: u64, poll: u64, at: Timestamp) -> Option<Self> {
        let longest = recorded.len().max(replayed.len());
        let nth = (0..longest).find(|nth| recorded.get(*nth) != replayed.get(*nth))?;
        let json = |action: Option<&Action>| action.and_then(|action| serde_json::to_value(action).ok()).unwrap_or(Value::Null);
        let (was, is) = (json(recorded.get(nth)), json(replayed.get(nth)));
        let path = first_path(&was, &is).map(|path| path.join(".")).unwrap_or_default();
        let place = if path.is_empty() { format!("action {}", nth + 1) } else { format!("action {}, {path}", nth + 1) };
        Some(Self { segment, poll, at: at.0, place, recorded: was, replayed: is })
    }

    /// Where two values of one kind differ first; `None` when they are equal as JSON.
    pub(crate) fn of_values(what: &str, recorded: &Value, replayed: &Value, segment: u64, poll: u64, at: Timestamp) -> Option<Self> {
        let path = first_path(recorded, replayed)?;
        let part = |whole: &Value| path.iter().try_fold(whole, |value, step| below(value, step)).cloned().unwrap_or(Value::Null);
        let place = format!("{what}, {}", path.join("."));
        Some(Self { segment, poll, at: at.0, place, recorded: part(recorded), replayed: part(replayed) })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}, poll {}: {}: recorded {}, came out {}", self.segment, self.poll, self.place, self.recorded, self.replayed)
    }
}

fn below<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => step.parse::<usize>().ok().and_then(|at| items.get(at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The way to the first part that differs; `None` when nothing does.
fn first_path(a: &Value, b: &Value) -> Option<Vec<String>> {
    if a == b {
        return None;
    }
    let deeper = |step: String, a: Option<&Value>, b: Option<&Value>| -> Option<Vec<String>> {
        let mut path = match (a, b) {
            (Some(a), Some(b)) => first_path(a, b)?,
            (None, None) => return None,
            (Some(_), None) | (None, Some(_)) => Vec::new(),
        };
        path.insert(0, step);
        Some(path)
    };
    let found = match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.into_iter().find_map(|key| deeper(key.clone(), a.get(key), b.get(key)))
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|at| deeper(at.to_string(), a.get(at), b.get(at))),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_), _) => None,
    };
    Some(found.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_its_path() {
        for (a, b, path) in [
            (json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 3}]}), Some("a.1.b")),
            (json!({"a": 1}), json!({"a": 1, "c": 2}), Some("c")),
            (json!([1, 2]), json!([1]), Some("1")),
            (json!(1), json!("1"), Some("")),
            (json!({"a": {}}), json!({"a": {}}), None),
        ] {
            assert_eq!(first_path(&a, &b).map(|path| path.join(".")).as_deref(), path, "{a} {b}");
        }
    }

    #[test]
    fn actions_that_are_missing_or_one_too_many_are_differences() {
        let (one, two) = (Action::Terminate { claim: "a".into() }, Action::Terminate { claim: "b".into() });
        let both = [one.clone(), two.clone()];
        let of = |was: &[Action], is: &[Action]| Difference::of_actions(was, is, 1, 7, Timestamp(0)).map(|d| d.to_string());
        assert_eq!(of(&both, &both), None);
        let told = of(&both, &both[..1]).unwrap_or_default();
        assert_eq!(told, "segment 1, poll 7: action 2: recorded {\"Terminate\":{\"claim\":\"b\"}}, came out null");
        let told = of(&[one], &[two]).unwrap_or_default();
        assert!(told.starts_with("segment 1, poll 7: action 1, Terminate.claim: recorded"), "{told}");
    }
}
