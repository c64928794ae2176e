//! The test kit: runs a policy natively on tables made by hand. What must not enter: WebAssembly.

use std::collections::BTreeMap;

use crate::table::{Column, TABLES};
use crate::{
    AskerColumn, CandidateColumn, Hook, Loaded, MixRowColumn, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, Policy,
    RoundColumn,
};

/// A value in a table made by hand.
///
/// ```
/// use whittle_sdk::Cell;
/// assert_eq!(Cell::from(true), Cell::from(1));
/// assert_ne!(Cell::from("spot"), Cell::from(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A number, a row of another table, or 0 and 1 for no and yes.
    Int(i64),
    /// A word.
    Text(String),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// What a policy answered about one row.
///
/// ```
/// use whittle_sdk::Verdict;
/// assert_ne!(Verdict::Answer { value: 1, cost: None }, Verdict::Veto("no".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A rank in micro-dollars an hour, or a score.
    Answer {
        /// The rank or score.
        value: i64,
        /// The cost, when the policy answers it.
        cost: Option<i64>,
    },
    /// A veto, with its reason written out.
    Veto(String),
}

type Row = BTreeMap<String, Cell>;

/// A configuration and tables made by hand; what is not said is 0, or empty.
///
/// See the [crate](crate) for an example.
///
/// ```
/// use whittle_sdk::prelude::*;
/// let case = Case::new(json!({"percent": 20})).candidate([(CandidateColumn::Zone, "us-east-1a".into())]);
/// ```
#[derive(Debug, Clone)]
pub struct Case {
    config: serde_json::Value,
    rows: [Vec<Row>; TABLES],
}

macro_rules! adds {
    ($(#[$doc:meta])* $name:ident $column:ident $example:ident) => {
        $(#[$doc])*
        #[doc = concat!("\n\n```\n# use whittle_sdk::prelude::*;\nlet case = Case::new(json!({})).", stringify!($name), "([(", stringify!($column), "::", stringify!($example), ", 1.into())]);\n```")]
        #[must_use]
        pub fn $name(mut self, row: impl IntoIterator<Item = ($column, Cell)>) -> Self {
            self.rows[$column::PLACE].push(row.into_iter().map(|(column, cell)| (column.name(), cell)).collect());
            self
        }
    };
}

impl Case {
    /// A case of this configuration without any rows.
    ///
    /// ```
    /// let case = whittle_sdk::Case::new(serde_json::json!({}));
    /// ```
    #[must_use]
    pub fn new(config: serde_json::Value) -> Self {
        Self { config, rows: std::array::from_fn(|_| Vec::new()) }
    }

    adds!(#[doc = "Says the facts of the round."] round RoundColumn Nodes);
    adds!(#[doc = "Adds a candidate."] candidate CandidateColumn RankMicros);
    adds!(#[doc = "Adds a class of pods; the first is row 0."] asker AskerColumn Count);
    adds!(#[doc = "Adds a row of the mix; rows of one mix stand together, in the order of their number."] mix_row MixRowColumn Pods);
    adds!(#[doc = "Adds a move; the first is row 0."] a_move MoveColumn Score);
    adds!(#[doc = "Adds a node of a move, in the order of the moves."] move_node MoveNodeColumn Move);
    adds!(#[doc = "Adds pods of a move, in the order of the moves."] move_pod MovePodColumn Move);
    adds!(#[doc = "Adds a pool of a move, in the order of the moves."] move_pool MovePoolColumn Move);

    /// The verdicts on all candidates.
    ///
    /// # Errors
    /// What the policy says against the configuration.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// fn first<P: Policy>(case: &Case) -> Option<Verdict> {
    ///     case.price::<P>().ok()?.into_iter().next()
    /// }
    /// ```
    pub fn price<P: Policy>(&self) -> Result<Vec<Verdict>, String> {
        self.run::<P>(Hook::PriceCandidates)
    }

    /// The verdicts on all moves.
    ///
    /// # Errors
    /// What the policy says against the configuration.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// fn vetoes<P: Policy>(case: &Case) -> Option<usize> {
    ///     Some(case.score::<P>().ok()?.iter().filter(|verdict| matches!(verdict, Verdict::Veto(_))).count())
    /// }
    /// ```
    pub fn score<P: Policy>(&self) -> Result<Vec<Verdict>, String> {
        self.run::<P>(Hook::ScoreMoves)
    }

    fn run<P: Policy>(&self, hook: Hook) -> Result<Vec<Verdict>, String> {
        let mut loaded = Loaded::<P>::configure(&self.config.to_string())?;
        let setup = loaded.setup().clone();
        let mut words = vec![String::new()];
        let round = self.rows[RoundColumn::PLACE].first().cloned().unwrap_or_default();
        let facts = setup.round_columns().iter().map(|name| number(round.get(name), &mut words)).collect();
        let places = setup.places(hook);
        let named = setup.tables(hook);
        let tables = places.iter().zip(&named).map(|(place, (_, names))| table(&self.rows[*place], names, &mut words)).collect();
        loaded.open(words, facts);
        let answers = match hook {
            Hook::PriceCandidates => loaded.price(Vec::new(), tables),
            Hook::ScoreMoves => loaded.score(Vec::new(), tables),
        };
        let rows = places.first().map_or(&[][..], |place| &self.rows[*place]);
        Ok(rows.iter().enumerate().map(|(at, row)| verdict(&answers, at, rows.len(), row, setup.reasons())).collect())
    }
}

fn number(cell: Option<&Cell>, words: &mut Vec<String>) -> i64 {
    match cell {
        None => 0,
        Some(Cell::Int(value)) => *value,
        Some(Cell::Text(text)) => {
            let place = words.iter().position(|word| word == text).unwrap_or_else(|| {
                words.push(text.clone());
                words.len() - 1
            });
            i64::try_from(place).unwrap_or(0)
        }
    }
}

fn table(rows: &[Row], names: &[String], words: &mut Vec<String>) -> (usize, Vec<i64>) {
    let cells = names.iter().flat_map(|name| rows.iter().map(move |row| row.get(name)));
    (rows.len(), cells.map(|cell| number(cell, words)).collect())
}

fn verdict(answers: &[i64], at: usize, rows: usize, row: &Row, reasons: &[String]) -> Verdict {
    let value = answers[at];
    if value >= 0 {
        return Verdict::Answer { value, cost: answers.get(rows + at).copied() };
    }
    let reason = usize::try_from(-1 - value).ok().and_then(|reason| reasons.get(reason));
    let mut text = reason.cloned().unwrap_or_else(|| format!("unknown reason {value}"));
    for (name, cell) in row {
        let value = match cell {
            Cell::Int(value) => value.to_string(),
            Cell::Text(text) => text.clone(),
        };
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    Verdict::Veto(text)
}
