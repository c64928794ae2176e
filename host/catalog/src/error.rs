//! Why no catalogue comes of what was given.

/// Everything this crate refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The zones of this region are not compiled in.
    #[error("cannot build a catalogue for region {region:?}: its zones are not compiled in; use us-east-1, us-west-2 or eu-west-1")]
    UnknownRegion {
        /// The region asked for.
        region: String,
    },
    /// A subnet stands in a zone that the region does not have.
    #[error("cannot build a catalogue for zone {zone:?}: region {region} has no such zone; its zones are {}", zones.join(", "))]
    UnknownZone {
        /// The zone asked for.
        zone: String,
        /// The region.
        region: String,
        /// The zones it has.
        zones: Vec<String>,
    },
    /// The price list has neither the region nor the one that stands in for it.
    #[error(
        "cannot price region {region}: the price list has rows of {} only; give it rows of {region} or us-east-1",
        if listed.is_empty() { "no region".to_owned() } else { listed.join(", ") }
    )]
    NoPriceList {
        /// The region asked for.
        region: String,
        /// The regions listed.
        listed: Vec<String>,
    },
    /// What a NodeClass says cannot be read.
    #[error("cannot read {field} {value:?}: {why}")]
    NodeClass {
        /// The field.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A kubelet setting cannot be read.
    #[error("cannot read kubelet.{field}.{key} {value:?}: {why}")]
    Kubelet {
        /// The map it stands in.
        field: &'static str,
        /// Its key.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A table has no lines.
    #[error("cannot read the {table}: it is empty; its first line must name the columns {}", columns.join(","))]
    EmptyTable {
        /// Which table.
        table: &'static str,
        /// The columns it must have.
        columns: Vec<&'static str>,
    },
    /// The first line of a table names a column nobody knows, or names one twice.
    #[error("cannot read the {table}: line 1 names column {column:?} {}; the columns are {}", if *twice { "twice" } else { "which is not known" }, columns.join(","))]
    BadColumn {
        /// Which table.
        table: &'static str,
        /// The column as given.
        column: String,
        /// Known, but named a second time.
        twice: bool,
        /// The columns there are.
        columns: Vec<&'static str>,
    },
    /// The first line of a table lacks a column.
    #[error("cannot read the {table}: line 1 lacks column {column}")]
    MissingColumn {
        /// Which table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A line has more or fewer values than there are columns.
    #[error("cannot read the {table}: line {line} has {found} values, but line 1 names {wanted} columns")]
    WrongWidth {
        /// Which table.
        table: &'static str,
        /// Counted from one.
        line: usize,
        /// Values in the line.
        found: usize,
        /// Columns in the first line.
        wanted: usize,
    },
    /// A value is not what its column holds.
    #[error("cannot read the {table}: line {line}, column {column}: {value:?} is not {expected}")]
    BadValue {
        /// Which table.
        table: &'static str,
        /// Counted from one.
        line: usize,
        /// The column.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
    /// Two lines speak of the same thing.
    #[error("cannot read the {table}: line {line} says {what} again; keep one of the lines")]
    Duplicate {
        /// Which table.
        table: &'static str,
        /// The second line, counted from one.
        line: usize,
        /// What both speak of.
        what: String,
    },
}
