//! Label selectors.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use whittle_model::{LabelSelector, Labels, SelectorOperator, SelectorRequirement};

use super::{Cx, names};

const OPERATORS: [(&str, SelectorOperator); 4] = [
    ("In", SelectorOperator::In),
    ("NotIn", SelectorOperator::NotIn),
    ("Exists", SelectorOperator::Exists),
    ("DoesNotExist", SelectorOperator::DoesNotExist),
];

/// The selector at `key`, checked.
pub(super) fn selector(key: &str, written: &meta::LabelSelector, cx: &mut Cx) -> LabelSelector {
    let labels = written.match_labels.clone().unwrap_or_default();
    let mut all = LabelSelector::of_labels(&labels);
    cx.key(key, |cx| {
        cx.key("matchLabels", |cx| {
            // A value that no label can have just matches nothing.
            let live = cx.live;
            for (key, value) in labels.iter().filter(|_| !live) {
                if let Some(what) = names::key_fault(key).or_else(|| names::value_fault(value)) {
                    cx.broken_at(key, what);
                }
            }
        });
        cx.each("matchExpressions", written.match_expressions.as_deref().unwrap_or_default(), |cx, one| {
            all.requirements.extend(expression(one, cx));
        });
    });
    all.requirements.sort();
    all
}

/// The selector at `key`; an absent one selects nothing.
pub(super) fn selector_or_nothing(key: &str, written: Option<&meta::LabelSelector>, cx: &mut Cx) -> LabelSelector {
    written.map_or_else(LabelSelector::nothing, |written| selector(key, written, cx))
}

/// Whether this is the selector that an absent one is read as.
pub(super) fn is_nothing(selector: &LabelSelector) -> bool {
    *selector == LabelSelector::nothing()
}

/// Adds what `matchLabelKeys` (or, not `alike`, `mismatchLabelKeys`) mean for a pod with these labels. Newer servers have
/// written it into the selector already.
pub(super) fn merge_label_keys(selector: &mut LabelSelector, labels: &Labels, keys: Option<&[String]>, alike: bool) {
    if is_nothing(selector) {
        return;
    }
    let operator = if alike { SelectorOperator::In } else { SelectorOperator::NotIn };
    for key in keys.unwrap_or_default() {
        // A key that the pod does not have is ignored.
        let Some(value) = labels.get(key) else { continue };
        let more = SelectorRequirement { key: key.clone(), operator, values: vec![value.clone()] };
        if !selector.requirements.contains(&more) {
            selector.requirements.push(more);
        }
    }
    selector.requirements.sort();
}

fn expression(written: &meta::LabelSelectorRequirement, cx: &mut Cx) -> Option<SelectorRequirement> {
    let words: Vec<&str> = OPERATORS.iter().map(|(word, _)| *word).collect();
    if let Some(what) = names::key_fault(&written.key) {
        cx.broken_at("key", what);
    }
    if !cx.one_of("operator", &written.operator, &words) {
        return None;
    }
    let (_, operator) = OPERATORS.into_iter().find(|(word, _)| *word == written.operator)?;
    let mut values = written.values.clone().unwrap_or_default();
    values.sort();
    let takes_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
    if takes_values == values.is_empty() {
        let rule = if takes_values { "needs at least one value" } else { "takes no values" };
        cx.broken_at("values", format!("operator {} {rule}", written.operator));
    }
    Some(SelectorRequirement { key: written.key.clone(), operator, values })
}
