//! One requirement on one label: a finite set of values or the complement of one, with optional
//! integer bounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a requirement constrains its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; an absent label passes.
    NotIn,
    /// Any value.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// An integer greater than the value.
    Gt,
    /// An integer less than the value.
    Lt,
    /// An integer of at least the value.
    Gte,
    /// An integer of at most the value.
    Lte,
}

impl Operator {
    /// All operators, in the order of the documentation.
    pub const ALL: [Self; 8] = [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Gt, Self::Lt, Self::Gte, Self::Lte];

    /// The operator of this name, as Kubernetes spells it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.name() == name)
    }

    /// As Kubernetes spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// Why a requirement cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// `In` needs at least one value.
    #[error("operator In on key {0:?} needs at least one value")]
    NoValues(String),
    /// The bounds take exactly one non-negative integer.
    #[error("operator {operator} on key {key:?} takes exactly one non-negative integer, not {values:?}")]
    NotOneInteger {
        /// The key.
        key: String,
        /// The operator's name.
        operator: &'static str,
        /// What was given.
        values: Vec<String>,
    },
    /// `Exists` and `DoesNotExist` take no values.
    #[error("operator {operator} on key {key:?} takes no values, not {values:?}")]
    UnexpectedValues {
        /// The key.
        key: String,
        /// The operator's name.
        operator: &'static str,
        /// What was given.
        values: Vec<String>,
    },
}

/// The values a label may have, and whether it may be absent. `complement` turns `values` into the
/// values it may *not* have. Bounds are inclusive and exist only on complements: a finite set is
/// filtered by them at once. Cheap to clone: claims of one plan share long lists of types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    key: Arc<str>,
    complement: bool,
    absence: bool,
    values: Arc<BTreeSet<String>>,
    at_least: Option<i64>,
    at_most: Option<i64>,
    min_values: Option<u32>,
}

impl Requirement {
    /// A requirement as a manifest states it.
    ///
    /// # Errors
    /// When the values do not suit the operator.
    pub fn new(key: &str, operator: Operator, values: &[String]) -> Result<Self, RequirementError> {
        let set = || values.iter().cloned().collect();
        Ok(match operator {
            Operator::In if values.is_empty() => return Err(RequirementError::NoValues(key.to_owned())),
            Operator::In => Self::finite(key, set()),
            Operator::NotIn => Self { values: Arc::new(set()), absence: true, ..Self::exists(key) },
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                return Err(RequirementError::UnexpectedValues { key: key.to_owned(), operator: operator.name(), values: values.to_vec() });
            }
            Operator::Exists => Self::exists(key),
            Operator::DoesNotExist => Self::absent(key),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => Self::bound(key, operator, values)?,
        })
    }

    /// `key In values`.
    #[must_use]
    pub fn any_of(key: &str, values: &[&str]) -> Self {
        Self::finite(key, values.iter().map(|v| (*v).to_owned()).collect())
    }

    /// `key Exists`: any value will do.
    #[must_use]
    pub fn exists(key: &str) -> Self {
        Self { complement: true, ..Self::finite(key, BTreeSet::new()) }
    }

    /// `key DoesNotExist`: no value will do.
    #[must_use]
    pub fn absent(key: &str) -> Self {
        Self { absence: true, ..Self::finite(key, BTreeSet::new()) }
    }

    /// The same requirement that also asks for at least `count` distinct values among the instance
    /// types that remain.
    #[must_use]
    pub fn with_min_values(mut self, count: Option<u32>) -> Self {
        self.min_values = count;
        self
    }

    fn finite(key: &str, values: BTreeSet<String>) -> Self {
        Self {
            key: key.into(),
            complement: false,
            absence: false,
            values: Arc::new(values),
            at_least: None,
            at_most: None,
            min_values: None,
        }
    }

    fn bound(key: &str, operator: Operator, values: &[String]) -> Result<Self, RequirementError> {
        let wrong = || RequirementError::NotOneInteger { key: key.to_owned(), operator: operator.name(), values: values.to_vec() };
        let [text] = values else { return Err(wrong()) };
        let bound = integer(text).filter(|n| *n >= 0).ok_or_else(wrong)?;
        let (at_least, at_most) = match operator {
            Operator::Gt => (bound.checked_add(1), None),
            Operator::Gte => (Some(bound), None),
            Operator::Lt => (None, Some(bound - 1)),
            Operator::Lte => (None, Some(bound)),
            Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => return Err(wrong()),
        };
        if at_least.is_none() && at_most.is_none() {
            return Ok(Self::finite(key, BTreeSet::new())); // greater than the largest integer: nothing is
        }
        Ok(Self { at_least, at_most, ..Self::exists(key) })
    }

    /// The label's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How many distinct values must remain, if a NodePool asks for that.
    #[must_use]
    pub const fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The inclusive integer bounds (at least, at most).
    #[must_use]
    pub const fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.at_least, self.at_most)
    }

    /// The listed values: allowed ones for `In`, refused ones for `NotIn`.
    #[must_use]
    pub fn values(&self) -> &BTreeSet<String> {
        &self.values
    }

    /// The operator this reads as. A complement that absence does not pass reads as `Exists`, also
    /// when some values are out of bounds or refused; a contradiction reads as `In` of no values.
    #[must_use]
    pub const fn operator(&self) -> Operator {
        match (self.complement, self.absence) {
            (true, true) => Operator::NotIn,
            (true, false) => Operator::Exists,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// Whether an absent label passes: `NotIn`, `DoesNotExist`, and what is made of these alone.
    #[must_use]
    pub const fn admits_absence(&self) -> bool {
        self.absence
    }

    /// Whether neither a value nor absence passes, as with `In [a]` and `In [b]` at once.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        !self.complement && !self.absence && self.values.is_empty()
    }

    /// Whether the label may have this value.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && within(value, self.at_least, self.at_most)
    }

    /// The only value that remains, if there is exactly one.
    #[must_use]
    pub fn single(&self) -> Option<&str> {
        if self.complement || self.values.len() != 1 {
            return None;
        }
        self.values.first().map(String::as_str)
    }

    /// What satisfies both. The larger `min_values` stays.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let at_least = larger(self.at_least, other.at_least);
        let at_most = smaller(self.at_most, other.at_most);
        let min_values = self.min_values.max(other.min_values);
        let absence = self.absence && other.absence;
        if let (Some(low), Some(high)) = (at_least, at_most)
            && low > high
        {
            return Self { min_values, absence, ..Self::finite(&self.key, BTreeSet::new()) };
        }
        let (complement, values): (bool, BTreeSet<String>) = match (self.complement, other.complement) {
            (true, true) => (true, self.values.union(&other.values).cloned().collect()),
            (true, false) => (false, other.values.difference(&self.values).cloned().collect()),
            (false, true) => (false, self.values.difference(&other.values).cloned().collect()),
            (false, false) => (false, self.values.intersection(&other.values).cloned().collect()),
        };
        let bounded = at_least.is_some() || at_most.is_some();
        let values = if bounded { values.into_iter().filter(|v| within(v, at_least, at_most)).collect() } else { values };
        let (at_least, at_most) = if complement { (at_least, at_most) } else { (None, None) };
        Self { key: Arc::clone(&self.key), complement, absence, values: Arc::new(values), at_least, at_most, min_values }
    }

    /// Whether some value satisfies both.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        if !self.complement && !other.complement {
            return self.values.iter().any(|v| other.values.contains(v));
        }
        let both = self.intersect(other);
        both.complement || !both.values.is_empty()
    }
}

impl std::fmt::Display for Requirement {
    /// `key In [a, b]`, `key >= 3, <= 9`, `key Exists`, `key Exists, NotIn [a]`, `key In []`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.key)?;
        let mut parts = Vec::new();
        if let Some(low) = self.at_least {
            parts.push(format!(">= {low}"));
        }
        if let Some(high) = self.at_most {
            parts.push(format!("<= {high}"));
        }
        if parts.is_empty() && self.operator() == Operator::Exists {
            parts.push(Operator::Exists.name().to_owned());
        }
        if matches!(self.operator(), Operator::In | Operator::NotIn) || !self.values.is_empty() {
            let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
            parts.push(format!("{} [{}]", if self.complement { "NotIn" } else { "In" }, values.join(", ")));
        }
        if parts.is_empty() {
            parts.push(self.operator().name().to_owned());
        }
        write!(f, " {}", parts.join(", "))
    }
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Whether `value` lies within the bounds; without bounds any text does, with them only integers.
fn within(value: &str, at_least: Option<i64>, at_most: Option<i64>) -> bool {
    if at_least.is_none() && at_most.is_none() {
        return true;
    }
    integer(value).is_some_and(|n| at_least.is_none_or(|low| n >= low) && at_most.is_none_or(|high| n <= high))
}

fn larger(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.max(b)
}

fn smaller(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
#[path = "../tests_unit/requirement.rs"]
mod tests;
