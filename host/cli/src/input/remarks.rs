//! What a person should know of how their files were read.

use std::collections::{BTreeMap, BTreeSet};

use whittle_cluster::{Located, Object, not_acted_on};
use whittle_sim::ScenarioObject;

/// Each field (or kind) that would change where pods run and is not acted on yet, with its place.
#[must_use]
pub fn refused(objects: &[&Located<Object>]) -> Vec<String> {
    let mut said = Vec::new();
    for located in objects {
        for field in located.refused() {
            said.push(format!("{}:{}: {}: {field}", located.file, located.line, located.name));
        }
    }
    said
}

/// Everything else worth knowing, one line each.
#[must_use]
pub fn of(objects: &[&Located<Object>], unused: &BTreeSet<String>, assumed: &[(String, ScenarioObject)], refused: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if !assumed.is_empty() {
        let names: Vec<&str> = assumed.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(format!("no EC2NodeClass is given: {} assumed, with AL2023 in every zone", names.join(", ")));
    }
    lines.extend(refused.iter().map(|field| format!("PARTIAL, not acted on: {field}")));
    let owned: Vec<Located<Object>> = objects.iter().map(|located| (*located).clone()).collect();
    lines.extend(not_acted_on(&owned));
    lines.extend(skipped(objects));
    if !unused.is_empty() {
        let names: Vec<&str> = unused.iter().map(String::as_str).collect();
        lines.push(format!("the story applies no {}", names.join(", ")));
    }
    lines
}

fn skipped(objects: &[&Located<Object>]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for located in objects {
        if let Object::Skipped { kind, .. } = &located.object
            && located.refused().is_empty()
        {
            *counts.entry(kind).or_default() += 1;
        }
    }
    let counted: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (!counted.is_empty()).then(|| format!("skipped, as they bear on no plan: {}", counted.join(", ")))
}
