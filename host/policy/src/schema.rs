//! Configurations against the JSON schema that a policy exports. What must not enter: what a
//! configuration means.

use serde_json::Value;

/// A configuration that the policy's schema does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("config{path}: {why}")]
pub struct ConfigError {
    /// Where: a JSON pointer, empty for the whole.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

/// The most bytes of a schema.
const MOST_BYTES: usize = 256 << 10;

/// A schema that configurations are checked against.
#[derive(Debug, Clone)]
pub struct Schema(std::sync::Arc<jsonschema::Validator>);

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Says why it is none: no JSON, too long, a reference that leads nowhere or to itself.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("{} bytes, at most {MOST_BYTES} are read", text.len()));
        }
        let schema: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        if !schema.is_object() {
            return Err("a schema is an object".to_owned());
        }
        circles(&schema)?;
        let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        Ok(Self(std::sync::Arc::new(validator)))
    }

    /// Checks a configuration.
    ///
    /// # Errors
    /// Names the first place that the schema does not accept.
    pub fn check(&self, config: &Value) -> Result<(), ConfigError> {
        let said = |error: jsonschema::ValidationError<'_>| ConfigError { path: error.instance_path().to_string(), why: error.to_string() };
        self.0.iter_errors(config).next().map_or(Ok(()), |error| Err(said(error)))
    }
}

/// Words of a schema under which the same value is looked at again: a reference that comes back to
/// itself by way of these alone would be followed for ever.
const SAME_VALUE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// The most schemas that one value may be looked at by: references can double with every step.
const MOST_VISITS: usize = 10_000;

/// Refuses references that come back to themselves without going down into the value, or multiply.
fn circles(schema: &Value) -> Result<(), String> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if map.keys().any(|key| key.starts_with('$') && key.ends_with("ef")) {
                    Walk { schema, way: Vec::new(), visits: 0 }.follow(value)?;
                }
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

/// One walk along references.
struct Walk<'a> {
    schema: &'a Value,
    way: Vec<&'a Value>,
    visits: usize,
}

impl<'a> Walk<'a> {
    fn follow(&mut self, at: &'a Value) -> Result<(), String> {
        if self.way.iter().any(|seen| std::ptr::eq(*seen, at)) {
            return Err("a reference leads to itself".to_owned());
        }
        self.visits += 1;
        if self.visits > MOST_VISITS || self.way.len() > 128 {
            return Err("references multiply".to_owned());
        }
        let Some(map) = at.as_object() else { return Ok(()) };
        self.way.push(at);
        for (word, value) in map {
            self.word(word, value)?;
        }
        self.way.pop();
        Ok(())
    }

    fn word(&mut self, word: &str, value: &'a Value) -> Result<(), String> {
        match value {
            _ if word == "$dynamicRef" || word == "$recursiveRef" => Err(format!("{word} is not supported")),
            Value::String(target) if word == "$ref" => {
                let pointer = target.strip_prefix('#').ok_or_else(|| format!("reference {target} leads outside"))?;
                let there = self.schema.pointer(pointer).ok_or_else(|| format!("reference {target} leads nowhere"))?;
                self.follow(there)
            }
            Value::Array(list) if SAME_VALUE.contains(&word) => list.iter().try_for_each(|value| self.follow(value)),
            Value::Object(map) if word == "dependentSchemas" => map.values().try_for_each(|value| self.follow(value)),
            Value::Object(_) if SAME_VALUE.contains(&word) => self.follow(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_place_that_is_wrong_is_named() {
        let schema = Schema::read(r##"{"type":"object","properties":{"rules":{"type":"array","items":{"$ref":"#/$defs/rule"}}},"additionalProperties":false,"$defs":{"rule":{"type":"object","properties":{"percent":{"type":"integer","maximum":100}}}}}"##).unwrap();
        assert_eq!(schema.check(&json!({"rules": [{"percent": 5}]})), Ok(()));
        let error = schema.check(&json!({"rules": [{"percent": 5}, {"percent": 500}]})).unwrap_err();
        assert_eq!(error.to_string(), "config/rules/1/percent: 500 is greater than the maximum of 100");
        assert!(schema.check(&json!({"rule": []})).unwrap_err().to_string().contains("'rule' was unexpected"));
    }

    #[test]
    fn a_schema_that_is_none_or_has_no_end_is_refused() {
        for (text, why) in [
            ("{", "no JSON"),
            ("true", "an object"),
            (r##"{"$ref":"#"}"##, "leads to itself"),
            (
                r##"{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}"##,
                "leads to itself",
            ),
            (r##"{"$ref":"#/$defs/none"}"##, "leads nowhere"),
            (r##"{"$ref":"https://example.com/s"}"##, "leads outside"),
            (r#"{"type":"colour"}"#, "colour"),
        ] {
            let error = Schema::read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(Schema::read(r##"{"properties":{"all":{"type":"array","items":{"$ref":"#"}}}}"##).is_ok());
    }
}
