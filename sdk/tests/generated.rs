//! What is generated from `columns.toml` is what is checked in: the SDK's columns, their
//! documentation and the host's enums. `UPDATE_GENERATED=1` writes them anew.
#![expect(clippy::unwrap_used, reason = "a test of files in the tree fails by panicking")]

#[path = "generated/documentation.rs"]
mod documentation;
#[path = "generated/source.rs"]
mod source;

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// `columns.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contract {
    table: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    row: String,
    since: String,
    #[serde(default)]
    answer: bool,
    doc: String,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    kind: Kind,
    #[serde(default)]
    open: bool,
    unit: Option<String>,
    since: Option<String>,
    doc: String,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Int,
    Bool,
    Word,
    Row,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Bool => "bool",
            Self::Word => "word",
            Self::Row => "row",
        }
    }
}

fn contract() -> Contract {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("columns.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

fn same(path: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&path, wanted).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{} is stale: UPDATE_GENERATED=1 cargo test -p whittle-sdk --test generated", path.display());
}

#[test]
fn the_documentation_is_that_of_the_columns() {
    same("COLUMNS.md", &documentation::page(&contract()));
}

#[test]
fn the_columns_of_the_sdk_are_those_of_the_contract() {
    same("src/columns.rs", &source::sdk(&contract()));
}

#[test]
fn the_columns_of_the_host_are_those_of_the_contract() {
    same("../host/model/src/policy/columns.rs", &source::host(&contract()));
}

#[test]
fn names_are_well_formed_and_unique_and_numbers_carry_their_unit() {
    let endings = [
        ("micro-dollars an hour", "-micros"),
        ("thousandths of a vCPU", "-milli"),
        ("thousandths", "-permille"),
        ("MiB", "-mib"),
        ("GiB", "-gib"),
        ("megabits a second", "-mbps"),
        ("seconds", "-seconds"),
        ("seconds ago", "-seconds"),
        ("seconds from now", "-seconds"),
        ("instance hours", "-hours"),
    ];
    let contract = contract();
    for table in &contract.table {
        let mut seen = std::collections::BTreeSet::new();
        for column in &table.columns {
            let name = &column.name;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
            assert!(seen.insert(name), "{} has {name} twice", table.name);
            assert!(column.doc.ends_with('.'), "{name} is not documented in a sentence");
            if let Some((unit, ending)) = endings.iter().find(|(unit, _)| column.unit.as_deref() == Some(unit)) {
                assert!(name.ends_with(ending), "{name} in {unit} does not end in {ending}");
            }
            if column.kind == Kind::Row {
                assert!(contract.table.iter().any(|t| Some(&t.name) == column.unit.as_ref()), "{name} is a row of what?");
            }
        }
    }
}
