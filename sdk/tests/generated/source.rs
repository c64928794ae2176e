//! The columns as Rust: one macro call a table, for the SDK and for the host.

use std::fmt::Write;

use super::{Column, Contract, Kind, Table};

/// `src/columns.rs` of the SDK.
pub fn sdk(contract: &Contract) -> String {
    let mut text = String::from(
        "//! The columns of every table, generated from `columns.toml`: an enum to ask for them, and for rows\n\
         //! of input tables an accessor each. Nothing is written here by hand.\n\nuse crate::table::table;\n",
    );
    for table in &contract.table {
        write_table(&mut text, contract, table, !table.answer);
    }
    text
}

/// `src/policy/columns.rs` of the host's model.
pub fn host(contract: &Contract) -> String {
    let mut text = String::from(
        "//! The columns of every table of the policy contract, generated from `sdk/columns.toml`. Nothing is\n\
         //! written here by hand.\n\nuse super::column::table;\n",
    );
    for table in &contract.table {
        write_table(&mut text, contract, table, false);
    }
    text
}

fn write_table(text: &mut String, contract: &Contract, table: &Table, accessors: bool) {
    let camel = camel(&table.row);
    let _ = write!(text, "\ntable! {{\n    /// {}\n    {camel}Column {:?}", table.doc, table.name);
    if accessors {
        let place = contract.table.iter().position(|t| t.name == table.name).unwrap();
        let _ = write!(text, " {camel} {place}");
    }
    for (open, word) in [(false, " {\n"), (true, "    } open {\n")] {
        text.push_str(word);
        for (number, column) in table.columns.iter().enumerate().filter(|(_, column)| column.open == open) {
            write_column(text, contract, number, column, accessors);
        }
    }
    text.push_str("    }\n}\n");
}

fn write_column(text: &mut String, contract: &Contract, number: usize, column: &Column, accessors: bool) {
    let _ = writeln!(text, "        /// {}", column.doc);
    let _ = write!(text, "        {number} {} {:?} {}", camel(&column.name), column.name, column.kind.name());
    if accessors {
        let accessor = column.name.replace('-', "_");
        // `move` is a keyword of Rust.
        text.push_str(if accessor == "move" { " of_move" } else { " " });
        text.push_str(if accessor == "move" { "" } else { &accessor });
        if column.kind == Kind::Row {
            let table = contract.table.iter().find(|t| Some(&t.name) == column.unit.as_ref()).unwrap();
            let _ = write!(text, " {}", camel(&table.row));
        }
    }
    text.push_str(";\n");
}

fn camel(name: &str) -> String {
    let upper = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('-').map(upper).collect()
}
