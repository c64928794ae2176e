//! Comma-separated tables whose first line names the columns, in any order. No quoting: no value
//! of ours holds a comma. Errors name line, column and value.

use std::str::FromStr;

use crate::CatalogError;

/// A table's name in errors, and its columns.
#[derive(Clone, Copy)]
pub(crate) struct Schema {
    pub(crate) table: &'static str,
    pub(crate) columns: &'static [&'static str],
    /// How many of `columns`, from the first, must be there; the others may be left out.
    pub(crate) required: usize,
}

/// Where each column of the schema stands in the lines; `None` for one left out.
struct Layout {
    at: Vec<Option<usize>>,
    width: usize,
}

/// One line, its values in the order of the schema.
pub(crate) struct Row<'t> {
    schema: Schema,
    line: usize,
    values: Vec<&'t str>,
}

impl Schema {
    /// Calls `each` with every line that is not blank.
    pub(crate) fn read<'t>(self, text: &'t str, mut each: impl FnMut(&Row<'t>) -> Result<(), CatalogError>) -> Result<(), CatalogError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((_, first)) = lines.next() else {
            return Err(CatalogError::EmptyTable { table: self.table, columns: self.columns.to_vec() });
        };
        let layout = self.layout(first)?;
        let mut row = Row { schema: self, line: 0, values: vec![""; self.columns.len()] };
        let mut found = Vec::with_capacity(layout.width);
        for (at, line) in lines {
            found.clear();
            found.extend(line.split(',').map(str::trim));
            if found.len() != layout.width {
                return Err(CatalogError::WrongWidth { table: self.table, line: at + 1, found: found.len(), wanted: layout.width });
            }
            row.line = at + 1;
            for (value, place) in row.values.iter_mut().zip(&layout.at) {
                *value = place.map_or("", |place| found[place]);
            }
            each(&row)?;
        }
        Ok(())
    }

    fn layout(self, first: &str) -> Result<Layout, CatalogError> {
        let mut at = vec![None; self.columns.len()];
        let mut width = 0;
        for (place, name) in first.split(',').map(str::trim).enumerate() {
            width += 1;
            let known = self.columns.iter().position(|column| *column == name);
            match known.map(|column| &mut at[column]) {
                Some(slot @ None) => *slot = Some(place),
                slot => {
                    let (column, columns) = (name.to_owned(), self.columns.to_vec());
                    return Err(CatalogError::BadColumn { table: self.table, column, twice: slot.is_some(), columns });
                }
            }
        }
        match at[..self.required].iter().position(Option::is_none) {
            Some(missing) => Err(CatalogError::MissingColumn { table: self.table, column: self.columns[missing] }),
            None => Ok(Layout { at, width }),
        }
    }
}

impl<'t> Row<'t> {
    /// The text in a column, by its place in the schema.
    pub(crate) fn text(&self, column: usize) -> &'t str {
        self.values[column]
    }

    /// An error about the value in `column`.
    pub(crate) fn bad(&self, column: usize, expected: &'static str) -> CatalogError {
        let value = self.text(column).to_owned();
        CatalogError::BadValue { table: self.schema.table, line: self.line, column: self.schema.columns[column], value, expected }
    }

    /// An error about a line that repeats another.
    pub(crate) fn again(&self, what: String) -> CatalogError {
        CatalogError::Duplicate { table: self.schema.table, line: self.line, what }
    }

    /// A text that must not be empty.
    pub(crate) fn name(&self, column: usize) -> Result<&'t str, CatalogError> {
        match self.text(column) {
            "" => Err(self.bad(column, "a name")),
            text => Ok(text),
        }
    }

    /// A whole number of at least zero.
    pub(crate) fn number<N: FromStr>(&self, column: usize) -> Result<N, CatalogError> {
        let text = self.text(column);
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().ok_or_else(|| self.bad(column, "a whole number that fits"))
    }

    /// A whole number, or `None` when nothing stands there.
    pub(crate) fn maybe<N: FromStr>(&self, column: usize) -> Result<Option<N>, CatalogError> {
        if self.text(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    /// `0` or `1`.
    pub(crate) fn flag(&self, column: usize) -> Result<bool, CatalogError> {
        match self.text(column) {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.bad(column, "0 or 1")),
        }
    }
}
