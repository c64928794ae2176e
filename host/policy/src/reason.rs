//! Reasons of vetoes: text in which `{COLUMN}` stands for a value of the vetoed row. What must not
//! enter: which row was vetoed.

use whittle_model::policy::{CandidateColumn, Column, Kind, MoveColumn, Setup, Words};

use crate::{SetupError, View};

/// The parts of a text: what stands there, and what is in braces.
fn parts(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        parts.push((before, Some(name)));
        rest = behind;
    }
    parts.push((rest, None));
    parts
}

/// A reason that names a column of the answered table must have asked for it; other braces are text.
pub(crate) fn check(text: &str, setup: &Setup) -> Result<(), SetupError> {
    let candidates = setup.wants.pricing.as_ref().map_or(&[][..], |wants| &wants.candidates);
    let moves = setup.wants.judging.as_ref().map_or(&[][..], |wants| &wants.moves);
    for name in parts(text).into_iter().filter_map(|(_, name)| name) {
        let (candidate, a_move) = (CandidateColumn::parse(name), MoveColumn::parse(name));
        let known = candidate.is_some() || a_move.is_some();
        let asked = candidate.is_some_and(|column| candidates.contains(&column)) || a_move.is_some_and(|column| moves.contains(&column));
        if known && !asked {
            return Err(SetupError::Reason { reason: text.to_owned(), column: name.to_owned() });
        }
    }
    Ok(())
}

/// The places of the columns that a text quotes, in its order.
pub(crate) fn quoted<C: Column>(text: &str, columns: &[C]) -> Vec<usize> {
    let place = |name: &str| columns.iter().position(|column| column.name() == name);
    parts(text).into_iter().filter_map(|(_, name)| place(name?)).collect()
}

/// The text with the values of a row filled in.
pub(crate) fn fill<C: Column>(text: &str, columns: &[C], view: &View<'_>, row: usize, words: &Words) -> String {
    let mut filled = String::new();
    for (before, name) in parts(text) {
        filled.push_str(before);
        let Some(name) = name else { continue };
        let place = columns.iter().position(|column| column.name() == name);
        let value = place.and_then(|place| Some((place, *view.columns.get(place)?.get(row)?)));
        match value.map(|(place, value)| (columns[place].kind(), value)) {
            Some((Kind::Word, value)) => filled.push_str(words.text(value)),
            Some((Kind::Bool, value)) => filled.push_str(if value == 0 { "false" } else { "true" }),
            Some((Kind::Int | Kind::Row, value)) => filled.push_str(&value.to_string()),
            None => {
                filled.push('{');
                filled.push_str(name);
                filled.push('}');
            }
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_row_are_filled_in_and_other_braces_stay() {
        let mut words = Words::default();
        let zone = [words.intern("us-east-1a")];
        let view = View { rows: 1, columns: vec![&zone, &[64_000]] };
        let columns = [CandidateColumn::Zone, CandidateColumn::CpuMilli];
        let text = fill("{cpu-milli} in {zone}, {no} {", &columns, &view, 0, &words);
        assert_eq!(text, "64000 in us-east-1a, {no} {");
    }
}
