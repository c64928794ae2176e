//! The page of columns, in Markdown.

use std::fmt::Write;

use super::{Column, Contract, Table};

pub fn page(contract: &Contract) -> String {
    let mut page = String::from(
        "# Columns\n\nGenerated from `columns.toml`. A policy names the columns it wants and is given those and no more.\n\n\
         Every value is a 64-bit integer. *word*: an index into the word list of `open`, 0 is the empty word. *bool*: 0 or 1.\n\
         *row*: an index into another table. A column written `NAME:KEY` is open: the policy puts the key, as in `label:team`.\n",
    );
    for table in &contract.table {
        section(&mut page, table);
    }
    page
}

fn section(page: &mut String, table: &Table) {
    let way = if table.answer { "answer" } else { "input" };
    let _ = write!(page, "\n## {} ({way})\n\n{}\n\n| column | kind | since | |\n| --- | --- | --- | --- |\n", table.name, table.doc);
    for column in &table.columns {
        let key = if column.open { ":KEY" } else { "" };
        let since = column.since.as_ref().unwrap_or(&table.since);
        let _ = writeln!(page, "| `{}{key}` | {} | {since} | {} |", column.name, kind(column), column.doc);
    }
}

fn kind(column: &Column) -> String {
    let unit = column.unit.as_ref().map(|unit| if column.kind.name() == "row" { format!(" of {unit}") } else { format!(", {unit}") });
    format!("{}{}", column.kind.name(), unit.unwrap_or_default())
}
