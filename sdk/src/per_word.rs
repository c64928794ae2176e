//! What a policy works out once for each word instead of once for each row. What must not enter: the words
//! of another round.

use crate::Tables;

/// Answers by word: a text is looked at the first time it occurs in a round, afterwards only its number.
///
/// ```
/// use whittle_sdk::prelude::*;
/// let tables = Tables::default();
/// let mut lengths = PerWord::default();
/// assert_eq!(lengths.get(&tables, 0, |text| text.len()), 0);
/// ```
#[derive(Debug, Clone)]
pub struct PerWord<T>(Vec<Option<T>>);

impl<T> Default for PerWord<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> PerWord<T> {
    /// The answer for a word; `ask` is called the first time.
    ///
    /// ```
    /// # use whittle_sdk::prelude::*;
    /// fn spot_rows(tables: &Tables, is_spot: &mut PerWord<bool>) -> usize {
    ///     let column = tables.column(&CandidateColumn::CapacityType);
    ///     column.iter().filter(|word| is_spot.get(tables, **word, |text| text == "spot")).count()
    /// }
    /// ```
    #[inline]
    pub fn get(&mut self, tables: &Tables, word: i64, ask: impl FnOnce(&str) -> T) -> T {
        match usize::try_from(word).ok().and_then(|at| self.0.get(at)) {
            Some(Some(known)) => *known,
            Some(None) | None => self.learn(tables, word, ask),
        }
    }

    #[cold]
    fn learn(&mut self, tables: &Tables, word: i64, ask: impl FnOnce(&str) -> T) -> T {
        let answer = ask(tables.text(word));
        if let Ok(at) = usize::try_from(word)
            && at < tables.words.len()
        {
            self.0.resize_with(tables.words.len(), || None);
            self.0[at] = Some(answer);
        }
        answer
    }

    /// Forgets all: words of another round have other numbers.
    ///
    /// ```
    /// whittle_sdk::PerWord::<bool>::default().clear();
    /// ```
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_at_once() {
        let tables = Tables { words: vec![String::new(), "a".to_owned(), "bb".to_owned()], ..Tables::default() };
        let (mut lengths, mut asked) = (PerWord::default(), 0);
        for word in [2, 1, 2, 2, 0] {
            let length = lengths.get(&tables, word, |text| {
                asked += 1;
                text.len()
            });
            assert_eq!(length, usize::try_from(word).unwrap());
        }
        assert_eq!(asked, 3);
        assert_eq!(lengths.get(&tables, -1, str::len), 0);
        assert_eq!(lengths.get(&tables, 99, str::len), 0);
        lengths.clear();
        assert_eq!(lengths.get(&tables, 1, |_| 7), 7);
    }
}
