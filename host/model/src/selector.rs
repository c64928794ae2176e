//! Label selectors of pod anti-affinity, budgets and workloads.

use serde::{Deserialize, Serialize};

use crate::Labels;

/// How a selector requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// The label is present with one of the values.
    In,
    /// The label is absent, or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// One `matchExpressions` entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SelectorRequirement {
    /// The label's key.
    pub key: String,
    /// How to compare.
    pub operator: SelectorOperator,
    /// Sorted; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

/// A conjunction of `matchLabels` and `matchExpressions`. Empty selects everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct LabelSelector {
    /// Sorted; `matchLabels` become `In` with one value.
    pub requirements: Vec<SelectorRequirement>,
}

impl LabelSelector {
    /// The selector that no labels satisfy: what an absent selector means in affinity and spread.
    #[must_use]
    pub fn nothing() -> Self {
        Self { requirements: vec![SelectorRequirement { key: String::new(), operator: SelectorOperator::In, values: Vec::new() }] }
    }

    /// The selector of these exact labels.
    #[must_use]
    pub fn of_labels(labels: &Labels) -> Self {
        let requirements = labels
            .iter()
            .map(|(key, value)| SelectorRequirement { key: key.clone(), operator: SelectorOperator::In, values: vec![value.clone()] })
            .collect();
        Self { requirements }
    }

    /// Whether `labels` satisfy every requirement.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|r| {
            let value = labels.get(&r.key);
            match r.operator {
                SelectorOperator::In => value.is_some_and(|v| r.values.contains(v)),
                SelectorOperator::NotIn => value.is_none_or(|v| !r.values.contains(v)),
                SelectorOperator::Exists => value.is_some(),
                SelectorOperator::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_compares_as_kubernetes_does() {
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        let one = |key: &str, operator, values: &[&str]| LabelSelector {
            requirements: vec![SelectorRequirement { key: key.into(), operator, values: values.iter().map(|v| (*v).into()).collect() }],
        };
        for (selector, hit) in [
            (LabelSelector::default(), true),
            (LabelSelector::of_labels(&labels), true),
            (one("app", SelectorOperator::In, &["api"]), false),
            (one("app", SelectorOperator::NotIn, &["web"]), false),
            (one("tier", SelectorOperator::NotIn, &["web"]), true),
            (one("app", SelectorOperator::Exists, &[]), true),
            (one("app", SelectorOperator::DoesNotExist, &[]), false),
            (one("tier", SelectorOperator::DoesNotExist, &[]), true),
            (LabelSelector::nothing(), false),
        ] {
            assert_eq!(selector.matches(&labels), hit, "{selector:?}");
        }
    }
}
