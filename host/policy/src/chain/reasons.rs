//! The reasons of one judge's vetoes in a round: each text is made once, however many rows it holds for.
//! What must not enter: which rows are vetoed.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_model::policy::{Column, Words};

use crate::answers::Vetoed;
use crate::{View, reason};

/// Texts by what they are made of: the reason, then the values that it quotes.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// Of each reason the places of the columns that it quotes, once they are looked up.
    quoted: Vec<Option<Vec<usize>>>,
    known: BTreeMap<Vec<i64>, Arc<str>>,
    /// The last key, kept for its memory.
    key: Vec<i64>,
}

impl Reasons {
    /// The text of a veto. `texts` and `columns` are the same in every call, and words keep their
    /// numbers.
    pub(super) fn text<C: Column>(&mut self, veto: &Vetoed, texts: &[String], columns: &[C], view: &View<'_>, words: &Words) -> Arc<str> {
        let number = veto.reason as usize;
        let Some(text) = texts.get(number) else { return Arc::from("") };
        if self.quoted.len() < texts.len() {
            self.quoted.resize(texts.len(), None);
        }
        let quoted = self.quoted[number].get_or_insert_with(|| reason::quoted(text, columns));
        self.key.clear();
        self.key.push(i64::from(veto.reason));
        self.key.extend(quoted.iter().filter_map(|place| view.columns.get(*place)?.get(veto.row)));
        if let Some(known) = self.known.get(&self.key) {
            return Arc::clone(known);
        }
        let filled: Arc<str> = reason::fill(text, columns, view, veto.row, words).into();
        self.known.insert(self.key.clone(), Arc::clone(&filled));
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whittle_model::policy::CandidateColumn;

    #[test]
    fn rows_with_equal_values_share_a_text_and_others_do_not() {
        let mut words = Words::default();
        let zones = [words.intern("a"), words.intern("b"), words.intern("a")];
        let view = View { rows: 3, columns: vec![&zones, &[1, 2, 3]] };
        let columns = [CandidateColumn::Zone, CandidateColumn::CpuMilli];
        let texts = ["zone {zone}".to_owned(), "{cpu-milli} in {zone}".to_owned()];
        let mut reasons = Reasons::default();
        let mut text = |row, reason| reasons.text(&Vetoed { row, reason }, &texts, &columns, &view, &words);
        let all = [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2)].map(|(row, reason)| text(row, reason));
        assert_eq!(all.each_ref().map(|text| &**text), ["zone a", "zone b", "zone a", "1 in a", "3 in a", ""]);
        assert!(Arc::ptr_eq(&all[0], &all[2]));
    }
}
