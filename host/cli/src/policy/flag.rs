//! `--policy NAME=FILE.wasm[:CONFIG.json]`.

use std::path::PathBuf;
use std::str::FromStr;

/// A policy given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFlag {
    /// Its name, by which NodePools name it.
    pub name: String,
    /// Its component.
    pub file: PathBuf,
    /// Its configuration, JSON or YAML.
    pub config: Option<PathBuf>,
}

/// Whether this can be the name of a policy.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-') && !text.ends_with('-')
}

impl FromStr for PolicyFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once('=').ok_or_else(|| "write NAME=FILE.wasm or NAME=FILE.wasm:CONFIG.json".to_owned())?;
        if !is_name(name) {
            return Err(format!("{name:?} is no name of a policy: it takes 1 to 63 lower case letters, digits and -"));
        }
        // A colon may be part of a path; what ends in .wasm is the component.
        let (file, config) = match rest.find(".wasm:") {
            Some(at) => (&rest[..at + 5], Some(&rest[at + 6..])),
            None => (rest, None),
        };
        if file.is_empty() || config == Some("") {
            return Err("a file is missing; write NAME=FILE.wasm or NAME=FILE.wasm:CONFIG.json".to_owned());
        }
        Ok(Self { name: name.to_owned(), file: file.into(), config: config.map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_a_component_and_perhaps_a_configuration() {
        for (text, name, file, config) in [
            ("a=x/a.wasm", "a", "x/a.wasm", None),
            ("a=x/a.wasm:b.json", "a", "x/a.wasm", Some("b.json")),
            ("a-1=c:/x.wasm:c:/b.yaml", "a-1", "c:/x.wasm", Some("c:/b.yaml")),
            ("a=b=c.wasm", "a", "b=c.wasm", None),
        ] {
            let flag: PolicyFlag = text.parse().unwrap();
            assert_eq!(flag, PolicyFlag { name: name.into(), file: file.into(), config: config.map(PathBuf::from) });
        }
        for (bad, part) in [("x.wasm", "write NAME="), ("A=x.wasm", "lower case"), ("a=", "a file is missing"), ("a=x.wasm:", "missing")] {
            assert!(bad.parse::<PolicyFlag>().unwrap_err().contains(part), "{bad}");
        }
    }
}
