//! The interface of everything that prices and scores: WebAssembly policies, the same policies compiled
//! natively, and judges that are native from the start. What must not enter: how any of them works.

use whittle_model::policy::{Setup, Table, Words};

use crate::Failure;

/// Rows as borrowed columns, in the order that the judge's setup wants them.
#[derive(Debug, Clone, Default)]
pub struct View<'a> {
    /// How many rows; also when there is no column.
    pub rows: usize,
    /// One slice for each column, each `rows` long.
    pub columns: Vec<&'a [i64]>,
}

impl<'a> View<'a> {
    /// These columns of a table, by their place in it.
    #[must_use]
    pub fn of(table: &'a Table, places: &[usize]) -> Self {
        Self { rows: table.rows, columns: places.iter().map(|place| table.columns[*place].as_slice()).collect() }
    }
}

/// Who prices and scores. A pure function of what it is given.
pub trait Judge: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// What it wants to be given and answers.
    fn setup(&self) -> &Setup;

    /// Begins a round. `facts` has a value for each column of `setup().wants.round`.
    ///
    /// # Errors
    /// When it cannot begin.
    fn open(&self, words: &Words, facts: &[i64]) -> Result<Box<dyn Sitting>, Failure>;
}

/// A judge in one round.
pub trait Sitting {
    /// Prices candidates. Views are of candidates, askers and mix, in this order; `words` may have grown.
    /// Answers the columns of `setup().prices`, one behind the other, unchecked.
    ///
    /// # Errors
    /// When it cannot answer.
    fn price(&mut self, words: &Words, views: &[View<'_>; 3]) -> Result<Vec<i64>, Failure>;

    /// Scores moves. Views are of moves, move-nodes, move-pods, move-pools, askers and mix.
    /// Answers the columns of `setup().scores`, one behind the other, unchecked.
    ///
    /// # Errors
    /// When it cannot answer.
    fn score(&mut self, words: &Words, views: &[View<'_>; 6]) -> Result<Vec<i64>, Failure>;

    /// Fuel used so far in this round.
    fn fuel(&self) -> u64;
}
