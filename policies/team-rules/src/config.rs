//! The configuration and what it means. What must not enter: rows and columns.

use std::collections::BTreeMap;

use whittle_sdk::Dollars;
use whittle_sdk::prelude::*;
use wildmatch::WildMatch;

/// The most rules, so that what a word may is one machine word.
pub(crate) const MOST_RULES: usize = 64;

/// Rules; all of those that match a pod bind it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// The rules, at most 64.
    #[schemars(length(min = 1, max = 64))]
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Rule {
    /// Its name, which every veto mentions.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The pods it binds; all when left out.
    #[serde(default, rename = "match")]
    pub pods: Match,
    /// What may be bought: of each list that is given, an entry must fit.
    #[serde(default)]
    pub allow: Lists,
    /// What must not be bought: no entry of any list may fit.
    #[serde(default)]
    pub forbid: Lists,
    /// The largest and dearest node allowed.
    #[serde(default)]
    pub at_most: Bounds,
    /// The smallest node allowed.
    #[serde(default)]
    pub at_least: Bounds,
}

/// Which pods: those in one of the namespaces that have all of the labels.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Match {
    /// Namespaces; `*` and `?` stand for any characters and any character. All when empty.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Labels of the pod with the value each must have; `*` and `?` as above.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// Lists of names; `*` and `?` stand for any characters and any character.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Lists {
    /// Instance types, such as `m7g.*`.
    #[serde(default)]
    pub instance_types: Vec<String>,
    /// Families, such as `m7g`.
    #[serde(default)]
    pub families: Vec<String>,
    /// Categories, such as `m`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Availability zones, such as `us-east-1a`.
    #[serde(default)]
    pub zones: Vec<String>,
    /// `spot`, `on-demand` or `reserved`.
    #[serde(default)]
    pub capacity_types: Vec<String>,
    /// `amd64` or `arm64`.
    #[serde(default)]
    pub archs: Vec<String>,
}

/// Bounds of a node.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Bounds {
    /// vCPUs of the instance type.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cpu: Option<u32>,
    /// Memory of the instance type, such as `64Gi`.
    #[serde(default)]
    pub memory: Option<String>,
    /// List price in dollars an hour, such as `"0.85"`; for spot today's price.
    #[serde(default)]
    pub price_per_hour: Option<Dollars>,
}

impl Match {
    /// Whether it says nothing: then the rule binds every pod, and nobody need be told of pods.
    pub(crate) fn is_everybody(&self) -> bool {
        self.namespaces.is_empty() && self.labels.is_empty()
    }
}

/// Names, one of which has to fit.
#[derive(Debug, Clone)]
pub(crate) struct Patterns(Vec<WildMatch>);

impl Patterns {
    pub(crate) fn new(list: &[String], place: &str) -> Result<Self, String> {
        if list.iter().any(String::is_empty) {
            return Err(format!("{place}: a name is empty"));
        }
        Ok(Self(list.iter().map(|pattern| WildMatch::new(pattern)).collect()))
    }

    pub(crate) fn fit(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(text))
    }
}

/// MiB of a quantity such as `64Gi`.
pub(crate) fn mebibytes(text: &str) -> Option<i64> {
    let units = [("Mi", 1), ("Gi", 1 << 10), ("Ti", 1 << 20)];
    let (number, unit) = units.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| number.parse::<i64>().ok())??.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_binary_units() {
        for (text, found) in [("512Mi", Some(512)), ("64Gi", Some(65_536)), ("1Ti", Some(1 << 20))] {
            assert_eq!(mebibytes(text), found);
        }
        for text in ["64", "64G", "Gi", "-1Gi", "1.5Gi", "+1Gi", "99999999999999999Ti"] {
            assert_eq!(mebibytes(text), None, "{text}");
        }
    }
}
