//! Tables as a policy receives them, and the macro that the generated columns are made by. Which
//! columns there are is decided in `columns.toml`.

/// How many input tables the contract has.
pub(crate) const TABLES: usize = 8;

/// The most fixed columns a table may have.
const MOST: usize = 96;

/// The place of a column that was not asked for.
const ABSENT: u8 = u8::MAX;

/// What the cells of a column are.
///
/// ```
/// use whittle_sdk::{CandidateColumn, Cells};
/// assert!(CandidateColumn::fixed().contains(&(CandidateColumn::Zone, Cells::Word)));
/// assert_eq!(CandidateColumn::open("label", "team"), Some((CandidateColumn::Label("team".into()), Cells::Word)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Numbers.
    Int,
    /// 0 for no, 1 for yes.
    Bool,
    /// Indices into the words.
    Word,
    /// Rows of another table.
    Row,
}

/// A column of an input table.
///
/// ```
/// use whittle_sdk::{CandidateColumn, Column};
/// assert_eq!(CandidateColumn::Label("team".into()).name(), "label:team");
/// assert_eq!(CandidateColumn::TABLE, "candidates");
/// ```
pub trait Column {
    /// Name of the table.
    const TABLE: &'static str;

    /// Number of the table among the input tables.
    const PLACE: usize;

    /// Name of the column, an open one with its key.
    fn name(&self) -> String;

    /// Its number when it is not open.
    fn number(&self) -> Option<usize>;
}

/// One table: the columns that were asked for, in the order they were.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    rows: usize,
    /// Column after column.
    cells: Vec<i64>,
    names: Vec<String>,
    places: [u8; MOST],
}

impl Default for Data {
    fn default() -> Self {
        Self { rows: 0, cells: Vec::new(), names: Vec::new(), places: [ABSENT; MOST] }
    }
}

impl Data {
    /// An empty table of these columns: names and, for fixed ones, numbers.
    pub(crate) fn of(columns: &[(String, Option<usize>)]) -> Self {
        let mut data = Self { names: columns.iter().map(|(name, _)| name.clone()).collect(), ..Self::default() };
        for (place, (_, number)) in columns.iter().enumerate() {
            if let (Some(number), Ok(place)) = (number, u8::try_from(place)) {
                data.places[*number] = place;
            }
        }
        data
    }

    /// Takes the rows of a call.
    pub(crate) fn fill(&mut self, rows: usize, cells: Vec<i64>) {
        assert!(cells.len() == self.names.len() * rows, "the host did not send the columns that were asked for");
        self.rows = rows;
        self.cells = cells;
    }

    /// A row that another table leads to; one that is not there would read from the next column.
    #[inline]
    pub(crate) fn row(&self, row: i64, name: &str) -> usize {
        match usize::try_from(row) {
            Ok(row) if row < self.rows => row,
            _ => no_row(name, row),
        }
    }

    fn at(&self, place: usize) -> &[i64] {
        &self.cells[place * self.rows..][..self.rows]
    }

    #[inline]
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    pub(crate) fn fixed(&self, number: usize, name: &str, row: usize) -> i64 {
        match self.places[number] {
            ABSENT => not_asked(name),
            place => self.cells[usize::from(place) * self.rows + row],
        }
    }

    pub(crate) fn open(&self, stem: &str, key: &str, row: usize) -> i64 {
        let of_key = |name: &String| name.strip_prefix(stem).and_then(|rest| rest.strip_prefix(':')) == Some(key);
        match self.names.iter().position(of_key) {
            Some(place) => self.at(place)[row],
            None => not_asked(&format!("{stem}:{key}")),
        }
    }

    fn named(&self, name: &str) -> &[i64] {
        match self.names.iter().position(|n| n == name) {
            Some(place) => self.at(place),
            None => not_asked(name),
        }
    }

    /// The rows whose fixed column `number` is `wanted`; the column is sorted.
    pub(crate) fn run(&self, number: usize, wanted: i64) -> std::ops::Range<usize> {
        if self.places[number] == ABSENT {
            return 0..0;
        }
        let column = self.at(usize::from(self.places[number]));
        column.partition_point(|value| *value < wanted)..column.partition_point(|value| *value <= wanted)
    }
}

#[cold]
#[inline(never)]
#[expect(clippy::panic, reason = "a policy that reads what it did not ask for is wrong in every call; its author must see it at once")]
fn not_asked(name: &str) -> ! {
    panic!("column {name} was not asked for in configure")
}

#[cold]
#[inline(never)]
#[expect(clippy::panic, reason = "a policy that follows a link into a table it did not ask for is wrong in every call")]
fn no_row(name: &str, row: i64) -> ! {
    panic!("column {name} leads to row {row}, which is not there: were columns of its table asked for?")
}

/// The tables of a call, and the words that their text is an index into.
///
/// ```
/// use whittle_sdk::prelude::*;
/// /// Sums the list prices of all candidates, by whole columns: the quickest way.
/// fn total(tables: &Tables) -> i64 {
///     tables.column(&CandidateColumn::ListMicros).iter().sum()
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub(crate) words: Vec<String>,
    pub(crate) data: [Data; TABLES],
}

impl Tables {
    /// A whole column, as integers; words are indices.
    ///
    /// # Panics
    /// When the column was not asked for in `configure`.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// # fn example(tables: &Tables) {
    /// let zones: &[i64] = tables.column(&CandidateColumn::Zone);
    /// # }
    /// ```
    #[must_use]
    pub fn column<C: Column>(&self, column: &C) -> &[i64] {
        self.data[C::PLACE].named(&column.name())
    }

    /// The text of a word; empty for what is no word.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// assert_eq!(Tables::default().text(7), "");
    /// ```
    #[must_use]
    pub fn text(&self, word: i64) -> &str {
        usize::try_from(word).ok().and_then(|word| self.words.get(word)).map_or("", String::as_str)
    }

    /// The word of a text, to compare a whole column with; `None` when it occurs nowhere.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// assert_eq!(Tables::default().word("spot"), None);
    /// ```
    #[must_use]
    pub fn word(&self, text: &str) -> Option<i64> {
        self.words.iter().position(|word| word == text).and_then(|word| i64::try_from(word).ok())
    }
}

macro_rules! accessor {
    (int $(#[$doc:meta])* $number:literal $name:literal $row:ident $accessor:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "i64")]
        #[must_use]
        #[inline]
        pub fn $accessor(self) -> i64 {
            self.data().fixed($number, $name, self.row)
        }
    };
    (bool $(#[$doc:meta])* $number:literal $name:literal $row:ident $accessor:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "bool")]
        #[must_use]
        #[inline]
        pub fn $accessor(self) -> bool {
            self.data().fixed($number, $name, self.row) != 0
        }
    };
    (word $(#[$doc:meta])* $number:literal $name:literal $row:ident $accessor:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "&str")]
        #[must_use]
        #[inline]
        pub fn $accessor(self) -> &'a str {
            self.tables.text(self.data().fixed($number, $name, self.row))
        }
    };
    (row $(#[$doc:meta])* $number:literal $name:literal $row:ident $accessor:ident $target:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "whittle_sdk::" $target "<'_>")]
        #[must_use]
        #[inline]
        pub fn $accessor(self) -> $target<'a> {
            let row = self.data().fixed($number, $name, self.row);
            $target { tables: self.tables, row: self.tables.data[$target::PLACE].row(row, $name) }
        }
    };
}

macro_rules! open_accessor {
    (int $(#[$doc:meta])* $name:literal $row:ident $accessor:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "i64" open)]
        #[must_use]
        pub fn $accessor(self, key: &str) -> i64 {
            self.data().open($name, key, self.row)
        }
    };
    (word $(#[$doc:meta])* $name:literal $row:ident $accessor:ident) => {
        $(#[$doc])*
        #[doc = $crate::table::example!($row $accessor "&str" open)]
        #[must_use]
        pub fn $accessor(self, key: &str) -> &'a str {
            self.tables.text(self.data().open($name, key, self.row))
        }
    };
}

macro_rules! example {
    ($row:ident $accessor:ident $type:literal) => {
        concat!(
            "```\n# fn example(row: whittle_sdk::",
            stringify!($row),
            "<'_>) {\nlet value: ",
            $type,
            " = row.",
            stringify!($accessor),
            "();\n# }\n```"
        )
    };
    ($row:ident $accessor:ident $path:literal $target:ident $life:literal) => {
        concat!(
            "```\n# fn example(row: whittle_sdk::",
            stringify!($row),
            "<'_>) {\nlet value: ",
            $path,
            stringify!($target),
            $life,
            " = row.",
            stringify!($accessor),
            "();\n# }\n```"
        )
    };
    ($row:ident $accessor:ident $type:literal open) => {
        concat!(
            "```\n# fn example(row: whittle_sdk::",
            stringify!($row),
            "<'_>) {\nlet value: ",
            $type,
            " = row.",
            stringify!($accessor),
            "(\"key\");\n# }\n```"
        )
    };
}

macro_rules! table {
    (
        $(#[$doc:meta])*
        $column:ident $table:literal $row:ident $place:literal {
            $($(#[$fixed_doc:meta])* $fixed_number:literal $fixed:ident $fixed_name:literal $fixed_kind:ident $fixed_accessor:ident $($target:ident)?;)*
        } open {
            $($(#[$open_doc:meta])* $open_number:literal $open:ident $open_name:literal $open_kind:ident $open_accessor:ident;)*
        }
    ) => {
        $crate::table::table! {
            $(#[$doc])*
            $column $table {
                $($(#[$fixed_doc])* $fixed_number $fixed $fixed_name $fixed_kind;)*
            } open {
                $($(#[$open_doc])* $open_number $open $open_name $open_kind;)*
            }
        }

        impl $crate::Column for $column {
            const TABLE: &'static str = $table;
            const PLACE: usize = $place;

            fn name(&self) -> String {
                Self::name(self)
            }

            fn number(&self) -> Option<usize> {
                match self {
                    $(Self::$fixed => Some($fixed_number),)*
                    $(Self::$open(_) => None,)*
                }
            }
        }

        #[doc = concat!("A row of table `", $table, "`.\n\n```\n# fn example(row: whittle_sdk::", stringify!($row), "<'_>) {\nlet all: &whittle_sdk::Tables = row.tables();\n# }\n```")]
        #[derive(Debug, Clone, Copy)]
        pub struct $row<'a> {
            pub(crate) tables: &'a $crate::Tables,
            pub(crate) row: usize,
        }

        impl<'a> $row<'a> {
            pub(crate) const PLACE: usize = $place;

            #[inline]
            fn data(self) -> &'a $crate::table::Data {
                &self.tables.data[Self::PLACE]
            }

            #[doc = concat!("All tables of the call.\n\n```\n# fn example(row: whittle_sdk::", stringify!($row), "<'_>) {\nlet spot = row.tables().word(\"spot\");\n# }\n```")]
            #[must_use]
            pub const fn tables(self) -> &'a $crate::Tables {
                self.tables
            }

            $($crate::table::accessor! { $fixed_kind $(#[$fixed_doc])* $fixed_number $fixed_name $row $fixed_accessor $($target)? })*
            $($crate::table::open_accessor! { $open_kind $(#[$open_doc])* $open_name $row $open_accessor })*
        }
    };
    (
        $(#[$doc:meta])*
        $column:ident $table:literal {
            $($(#[$fixed_doc:meta])* $fixed_number:literal $fixed:ident $fixed_name:literal $fixed_kind:ident;)*
        } open {
            $($(#[$open_doc:meta])* $open_number:literal $open:ident $open_name:literal $open_kind:ident;)*
        }
    ) => {
        $(#[$doc])*
        #[doc = concat!("\n\n```\nuse whittle_sdk::", stringify!($column), ";\n```")]
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $column {
            $($(#[$fixed_doc])* $fixed,)*
            $($(#[$open_doc])* $open(String),)*
        }

        impl $column {
            #[doc = concat!("Its name in the contract, an open one with its key.\n\n```\nlet name = whittle_sdk::", stringify!($column), "::name;\n```")]
            #[must_use]
            pub fn name(&self) -> String {
                match self {
                    $(Self::$fixed => $fixed_name.to_owned(),)*
                    $(Self::$open(key) => format!(concat!($open_name, ":{}"), key),)*
                }
            }

            #[doc = concat!("All columns that are not open, with what their cells are.\n\n```\nlet all = whittle_sdk::", stringify!($column), "::fixed();\n```")]
            #[must_use]
            pub fn fixed() -> Vec<(Self, $crate::Cells)> {
                vec![$((Self::$fixed, $crate::table::cells!($fixed_kind)),)*]
            }

            #[doc = concat!("The open column of this name with this key, and what its cells are.\n\n```\nassert!(whittle_sdk::", stringify!($column), "::open(\"nothing\", \"key\").is_none());\n```")]
            #[must_use]
            pub fn open(name: &str, key: &str) -> Option<(Self, $crate::Cells)> {
                let _ = key;
                match name {
                    $($open_name => Some((Self::$open(key.to_owned()), $crate::table::cells!($open_kind))),)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! cells {
    (int) => {
        $crate::Cells::Int
    };
    (bool) => {
        $crate::Cells::Bool
    };
    (word) => {
        $crate::Cells::Word
    };
    (row) => {
        $crate::Cells::Row
    };
}

pub(crate) use {accessor, cells, example, open_accessor, table};
