//! The columns that formulas mention, and their cells. What must not enter: operators.

use whittle_sdk::prelude::*;
use whittle_sdk::{Cells, Column};

/// Where the cells of a mentioned column are found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Candidate(CandidateColumn),
    Asker(AskerColumn),
    Round(RoundColumn),
}

/// A column that formulas mention, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) usize);

/// All that formulas mention.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    mentioned: Vec<Source>,
    /// Facts of the round, by place; 0 elsewhere.
    facts: Vec<i64>,
}

/// The tables a formula can read, as it names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Candidate,
    Asker,
    Round,
}

/// A name as formulas write it.
pub(crate) fn written(name: &str) -> String {
    name.replace('-', "_")
}

/// Columns of a candidate; which mix it is priced against is a number without a meaning of its own.
fn of_candidates() -> Vec<(CandidateColumn, Cells)> {
    let mut all = CandidateColumn::fixed();
    all.retain(|(column, _)| *column != CandidateColumn::Mix);
    all
}

fn find<C: Column>(all: Vec<(C, Cells)>, name: &str) -> Option<(C, Cells)> {
    all.into_iter().find(|(column, cells)| *cells != Cells::Row && written(&column.name()) == name)
}

impl Table {
    fn fixed(self, name: &str) -> Option<(Source, Cells)> {
        match self {
            Self::Candidate => find(of_candidates(), name).map(|(c, k)| (Source::Candidate(c), k)),
            Self::Asker => find(AskerColumn::fixed(), name).map(|(c, k)| (Source::Asker(c), k)),
            Self::Round => find(RoundColumn::fixed(), name).map(|(c, k)| (Source::Round(c), k)),
        }
    }

    fn open(self, name: &str, key: &str) -> Option<(Source, Cells)> {
        let name = name.replace('_', "-");
        match self {
            Self::Candidate => CandidateColumn::open(&name, key).map(|(c, k)| (Source::Candidate(c), k)),
            Self::Asker => AskerColumn::open(&name, key).map(|(c, k)| (Source::Asker(c), k)),
            Self::Round => RoundColumn::open(&name, key).map(|(c, k)| (Source::Round(c), k)),
        }
    }

    /// The names of its columns that are not open, as formulas write them.
    pub(crate) fn names(self) -> Vec<String> {
        fn names<C: Column>(all: Vec<(C, Cells)>) -> Vec<String> {
            all.into_iter().filter(|(_, cells)| *cells != Cells::Row).map(|(column, _)| written(&column.name())).collect()
        }
        match self {
            Self::Candidate => names(of_candidates()),
            Self::Asker => names(AskerColumn::fixed()),
            Self::Round => names(RoundColumn::fixed()),
        }
    }
}

impl Columns {
    /// The column of this name in a table, with what its cells are; `key` of an open one.
    pub(crate) fn mention(&mut self, table: Table, name: &str, key: Option<&str>) -> Option<(Place, Cells)> {
        let (source, cells) = match key {
            None => table.fixed(name)?,
            Some(key) => table.open(name, key)?,
        };
        let known = self.mentioned.iter().position(|other| *other == source);
        let place = known.unwrap_or_else(|| {
            self.mentioned.push(source);
            self.mentioned.len() - 1
        });
        Some((Place(place), cells))
    }

    /// Asks for all that was mentioned.
    pub(crate) fn ask(&self, setup: &mut Setup) {
        for source in &self.mentioned {
            match source {
                Source::Candidate(column) => setup.candidates([column.clone()]),
                Source::Asker(column) => setup.candidates([CandidateColumn::Asker]).askers([column.clone()]),
                Source::Round(column) => setup.round([column.clone()]),
            };
        }
    }

    /// Takes the facts of a round.
    pub(crate) fn open(&mut self, round: Round<'_>) {
        let fact = |source: &Source| match source {
            Source::Round(column) => round.tables().column(column).first().copied().unwrap_or(0),
            Source::Candidate(_) | Source::Asker(_) => 0,
        };
        self.facts = self.mentioned.iter().map(fact).collect();
    }

    /// The cells of a call.
    pub(crate) fn sheet<'t>(&self, tables: &'t Tables) -> Sheet<'t> {
        let rows = tables.candidates().count();
        let column = |(place, source): (usize, &Source)| match source {
            Source::Candidate(column) => tables.column(column).to_vec(),
            Source::Asker(column) => {
                let values = tables.column(column);
                let value = |asker: &i64| usize::try_from(*asker).ok().and_then(|asker| values.get(asker)).copied().unwrap_or(0);
                tables.column(&CandidateColumn::Asker).iter().map(value).collect()
            }
            Source::Round(_) => vec![self.facts.get(place).copied().unwrap_or(0); rows],
        };
        let place = |wanted: CandidateColumn| self.mentioned.iter().position(|source| *source == Source::Candidate(wanted.clone()));
        Sheet {
            tables,
            columns: self.mentioned.iter().enumerate().map(column).collect(),
            rank: place(CandidateColumn::RankMicros),
            cost: place(CandidateColumn::CostMicros),
        }
    }
}

/// The cells of a call, one column for each that is mentioned.
pub(crate) struct Sheet<'t> {
    tables: &'t Tables,
    columns: Vec<Vec<i64>>,
    rank: Option<usize>,
    cost: Option<usize>,
}

impl<'t> Sheet<'t> {
    #[inline]
    pub(crate) fn int(&self, place: Place, row: usize) -> i64 {
        self.columns[place.0][row]
    }

    #[inline]
    pub(crate) fn text(&self, place: Place, row: usize) -> &'t str {
        self.tables.text(self.int(place, row))
    }

    /// What rows to come see as rank and cost.
    pub(crate) fn set(&mut self, row: usize, rank: Option<i64>, cost: Option<i64>) {
        for (place, value) in [(self.rank, rank), (self.cost, cost)] {
            if let (Some(place), Some(value)) = (place, value) {
                self.columns[place][row] = value;
            }
        }
    }
}

/// A reason as the contract writes it: names in braces are columns of the candidate, which are asked for.
pub(crate) fn named_in(reason: &str, columns: &mut Columns) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = reason;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or("a { is not closed")?;
        if columns.mention(Table::Candidate, &written(name), None).is_none() {
            return Err(format!("{{{name}}} is no column of a candidate"));
        }
        text += &format!("{before}{{{}}}", name.replace('_', "-"));
        rest = behind;
    }
    Ok(text + rest)
}
