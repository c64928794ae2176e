//! Tables as policies read them: columns of integers, and words that text is an index into.

use std::collections::BTreeMap;

/// Rows as columns of integers. Which column is which, the asker knows: they come in the order of its
/// wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// How many rows; also when there is no column.
    pub rows: usize,
    /// One list for each column, each `rows` long.
    pub columns: Vec<Vec<i64>>,
}

impl Table {
    /// No rows of this many columns.
    #[must_use]
    pub fn of(columns: usize) -> Self {
        Self { rows: 0, columns: vec![Vec::new(); columns] }
    }

    /// Adds a row: one value for each column, in their order. Values beyond the columns are dropped,
    /// missing ones are 0.
    pub fn push(&mut self, values: impl IntoIterator<Item = i64>) {
        let mut values = values.into_iter();
        for column in &mut self.columns {
            column.push(values.next().unwrap_or(0));
        }
        self.rows += 1;
    }
}

/// The words of a round: text travels as an index into them. Word 0 is the empty word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    list: Vec<String>,
    index: BTreeMap<String, i64>,
}

impl Default for Words {
    fn default() -> Self {
        Self { list: vec![String::new()], index: BTreeMap::from([(String::new(), 0)]) }
    }
}

impl Words {
    /// The index of `word`, which is added at the end when it is new.
    pub fn intern(&mut self, word: &str) -> i64 {
        if let Some(index) = self.index.get(word) {
            return *index;
        }
        let index = i64::try_from(self.list.len()).unwrap_or(0);
        self.list.push(word.to_owned());
        self.index.insert(word.to_owned(), index);
        index
    }

    /// The word of an index; empty for what is no index.
    #[must_use]
    pub fn text(&self, index: i64) -> &str {
        usize::try_from(index).ok().and_then(|index| self.list.get(index)).map_or("", String::as_str)
    }

    /// All words in order.
    #[must_use]
    pub fn list(&self) -> &[String] {
        &self.list
    }
}

/// The row of table `round`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundFacts {
    /// One value for each column of [`super::Wants::round`].
    pub facts: Vec<i64>,
}

/// What candidates are priced by; columns in the order of [`super::PricingWants`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pricing {
    /// The rows to price.
    pub candidates: Table,
    /// The classes of pods they are for.
    pub askers: Table,
    /// What the cluster is made of.
    pub mix: Table,
}

/// What moves are scored by; columns in the order of [`super::JudgingWants`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judging {
    /// The rows to score.
    pub moves: Table,
    /// The nodes they would remove.
    pub nodes: Table,
    /// The pods they would evict.
    pub pods: Table,
    /// The pools they touch.
    pub pools: Table,
    /// The classes of those pods.
    pub askers: Table,
    /// What the cluster is made of.
    pub mix: Table,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_index_and_the_first_is_empty() {
        let mut words = Words::default();
        assert_eq!((words.intern("spot"), words.intern("zone"), words.intern("spot"), words.intern("")), (1, 2, 1, 0));
        assert_eq!((words.text(2), words.text(0), words.text(-1), words.text(9)), ("zone", "", "", ""));
    }

    #[test]
    fn a_row_has_a_value_in_every_column() {
        let mut table = Table::of(2);
        table.push([1, 2, 3]);
        table.push([4]);
        assert_eq!(table, Table { rows: 2, columns: vec![vec![1, 4], vec![2, 0]] });
    }
}
