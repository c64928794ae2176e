//! Labels and allocatable of every type that both tables know equal those that the oracle,
//! Karpenter's published list for AL2023, gives, but for the exceptions named here. An exception that no longer
//! differs fails as well.

mod exceptions;

use std::collections::{BTreeMap, BTreeSet};

use whittle_catalog::{Absences, CatalogOptions, Facts, Overhead, instance_type};
use whittle_model::resources::format_amount;
use whittle_model::{InstanceType, Resources, keys};

type Row = BTreeMap<String, String>;

/// The oracle's rows by type. Its first column is the type's name; an empty value means that the
/// oracle does not list the label or resource for the type.
fn oracle() -> BTreeMap<String, Row> {
    let mut lines = include_str!("data/karpenter-al2023-oracle.csv").lines();
    let columns: Vec<&str> = lines.next().expect("the first line names the columns").split(',').collect();
    lines
        .map(|line| {
            let row: Row = columns
                .iter()
                .zip(line.split(','))
                .filter(|(_, value)| !value.is_empty())
                .map(|(column, value)| ((*column).to_owned(), value.to_owned()))
                .collect();
            (row[keys::INSTANCE_TYPE].clone(), row)
        })
        .collect()
}

/// Labels and allocatable in the oracle's form: quantities in lowest terms, the region not listed.
fn ours(made: &InstanceType) -> Row {
    let mut row = made.labels.clone();
    row.remove(keys::REGION);
    row.extend(made.allocatable.iter().map(|(name, amount)| (name.to_owned(), format_amount(name, amount))));
    row
}

/// Quantities of the oracle in the same form as ours.
fn normalized(row: &Row) -> Row {
    let mut row = row.clone();
    for (name, value) in &mut row {
        let resource = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage" | "pods");
        if resource {
            *value = format_amount(name, Resources::parse_amount(name, value).expect("the oracle lists quantities"));
        }
    }
    row
}

/// Every (type, label or resource) on which the two differ, with both values.
fn differences() -> BTreeMap<(String, String), (Option<String>, Option<String>)> {
    let options = CatalogOptions::default();
    let overhead = Overhead::new(&options.kubelet).expect("no settings are good settings");
    let mut absences = Absences::default();
    let facts = Facts::builtin();
    let oracle = oracle();
    let mut found = BTreeMap::new();
    for facts in facts.iter() {
        let Some(theirs) = oracle.get(&facts.name).map(normalized) else { continue };
        let ours = ours(&instance_type(facts, &options, &overhead, &mut absences, Vec::new()));
        let all: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        for key in all {
            let (their, our) = (theirs.get(key).cloned(), ours.get(key).cloned());
            if their != our {
                found.insert((facts.name.clone(), key.clone()), (their, our));
            }
        }
    }
    found
}

#[test]
fn labels_and_allocatable_equal_the_oracle_but_for_the_exceptions() {
    let mut excepted = BTreeMap::new();
    for exception in exceptions::EXCEPTIONS {
        for name in exception.types {
            let values = (exception.oracle.map(str::to_owned), Some(exception.ours.to_owned()));
            let again = excepted.insert(((*name).to_owned(), exception.key.to_owned()), (values, exception.reason));
            assert!(again.is_none(), "{name} {} is excepted twice", exception.key);
        }
    }
    let found = differences();
    for (at, (oracle, ours)) in &found {
        assert!(excepted.contains_key(at), "{at:?}: the oracle says {oracle:?}, we say {ours:?}");
    }
    for (at, (values, reason)) in &excepted {
        assert_eq!(found.get(at), Some(values), "{at:?} is no longer excepted as written ({reason})");
    }
}

#[test]
fn types_of_one_table_only_are_known_by_name() {
    let oracle: BTreeSet<String> = oracle().into_keys().collect();
    let ours: BTreeSet<String> = Facts::builtin().iter().map(|facts| facts.name.clone()).collect();
    assert_eq!(oracle.difference(&ours).collect::<Vec<_>>(), exceptions::ONLY_IN_ORACLE);
    assert_eq!(ours.difference(&oracle).collect::<Vec<_>>(), exceptions::ONLY_OURS);
    assert_eq!(oracle.intersection(&ours).count(), 1358);
}
