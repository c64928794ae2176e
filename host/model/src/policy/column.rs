//! What a column of the policy contract is, and the macro that the generated enums are made by. Which
//! columns there are is decided in `sdk/columns.toml`.

/// What the integers of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A number; its unit is in the column's name.
    Int,
    /// 0 or 1.
    Bool,
    /// An index into the word list.
    Word,
    /// An index into another table.
    Row,
}

/// The columns of one table.
pub trait Column: Sized + Clone + Eq {
    /// Name of the table.
    const TABLE: &'static str;

    /// The column of this name, an open one with its key (`label:team`).
    fn parse(name: &str) -> Option<Self>;

    /// Its name, an open one with its key.
    fn name(&self) -> String;

    /// What its integers mean.
    fn kind(&self) -> Kind;

    /// The names of all columns, open ones as `label:KEY`.
    fn names() -> Vec<String>;
}

macro_rules! kind {
    (int) => {
        $crate::policy::Kind::Int
    };
    (bool) => {
        $crate::policy::Kind::Bool
    };
    (word) => {
        $crate::policy::Kind::Word
    };
    (row) => {
        $crate::policy::Kind::Row
    };
}

macro_rules! table {
    (
        $(#[$doc:meta])*
        $column:ident $table:literal {
            $($(#[$fixed_doc:meta])* $fixed_number:literal $fixed:ident $fixed_name:literal $fixed_kind:ident;)*
        } open {
            $($(#[$open_doc:meta])* $open_number:literal $open:ident $open_name:literal $open_kind:ident;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $column {
            $($(#[$fixed_doc])* $fixed,)*
            $($(#[$open_doc])* $open(String),)*
        }

        impl $crate::policy::Column for $column {
            const TABLE: &'static str = $table;

            fn parse(name: &str) -> Option<Self> {
                match name.split_once(':') {
                    None => match name {
                        $($fixed_name => Some(Self::$fixed),)*
                        _ => None,
                    },
                    $(Some(($open_name, key)) if !key.is_empty() => Some(Self::$open(key.to_owned())),)*
                    Some(_) => None,
                }
            }

            fn name(&self) -> String {
                match self {
                    $(Self::$fixed => $fixed_name.to_owned(),)*
                    $(Self::$open(key) => format!(concat!($open_name, ":{}"), key),)*
                }
            }

            fn kind(&self) -> $crate::policy::Kind {
                match self {
                    $(Self::$fixed => $crate::policy::column::kind!($fixed_kind),)*
                    $(Self::$open(_) => $crate::policy::column::kind!($open_kind),)*
                }
            }

            fn names() -> Vec<String> {
                vec![$($fixed_name.to_owned(),)* $(concat!($open_name, ":KEY").to_owned(),)*]
            }
        }
    };
}

pub(super) use {kind, table};
