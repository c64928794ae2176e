//! Whether an answer makes sense: its shape, its range, its reasons. What must not enter: who answered,
//! and what is done with a veto.

use whittle_model::policy::Column;

use crate::{Call, Failure};

/// The highest rank, cost or score: a million dollars an hour.
pub const MOST: i64 = 1_000_000_000_000;

/// A row that must not be bought or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vetoed {
    /// The row.
    pub row: usize,
    /// Index of the reason in the judge's setup.
    pub reason: u32,
}

/// What was asked, to check an answer against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a, C> {
    pub(crate) call: Call,
    pub(crate) columns: &'a [C],
    pub(crate) rows: usize,
    pub(crate) reasons: usize,
}

impl<C: Column> Asked<'_, C> {
    /// Every declared column must be there with every row.
    pub(crate) fn size(&self, answer: &[i64]) -> Result<(), Failure> {
        let (rows, columns, found) = (self.rows, self.columns.len(), answer.len());
        if found == rows * columns { Ok(()) } else { Err(Failure::WrongSize { call: self.call, rows, columns, found }) }
    }

    /// The answered values of a column; `None` when it is not declared.
    pub(crate) fn values<'v>(&self, answer: &'v [i64], column: &C) -> Option<&'v [i64]> {
        let place = self.columns.iter().position(|c| c == column)?;
        answer.get(place * self.rows..(place + 1) * self.rows)
    }

    /// Reads ranks or scores over those that stood before: vetoes are taken out, and their rows keep
    /// what they had. A 0 is raised to `least`, unless it was there before.
    pub(crate) fn verdicts(&self, column: &C, values: &[i64], before: &mut [i64], least: i64) -> Result<Vec<Vetoed>, Failure> {
        let mut vetoes = Vec::new();
        for (row, (value, stood)) in values.iter().zip(before).enumerate() {
            if *value < 0 {
                vetoes.push(self.veto(row, *value)?);
            } else if *value > MOST {
                return Err(self.absurd(column, row, *value));
            } else if value != stood {
                *stood = (*value).max(least);
            }
        }
        Ok(vetoes)
    }

    /// Reads costs: negative ones are as absurd as too high ones.
    pub(crate) fn costs(&self, column: &C, values: &[i64], vetoed: &[Vetoed], before: &mut [i64]) -> Result<(), Failure> {
        let mut vetoed = vetoed.iter().map(|veto| veto.row).peekable();
        for (row, (value, stood)) in values.iter().zip(before).enumerate() {
            if vetoed.next_if_eq(&row).is_some() {
                continue;
            }
            if !(0..=MOST).contains(value) {
                return Err(self.absurd(column, row, *value));
            }
            *stood = *value;
        }
        Ok(())
    }

    fn veto(&self, row: usize, value: i64) -> Result<Vetoed, Failure> {
        let reason = (-1i64).wrapping_sub(value).unsigned_abs();
        match u32::try_from(reason) {
            Ok(known) if (known as usize) < self.reasons => Ok(Vetoed { row, reason: known }),
            _ => Err(Failure::UnknownReason { call: self.call, row, reason, known: self.reasons }),
        }
    }

    fn absurd(&self, column: &C, row: usize, value: i64) -> Failure {
        Failure::Absurd { call: self.call, column: column.name(), row, value }
    }
}

/// A hash of an answer: FNV-1a over its values as 64-bit words. The same on every machine; against
/// accidents, not against forgers.
#[must_use]
pub fn hash(answer: &[i64]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let step = |hash: u64, value: &i64| (hash ^ value.cast_unsigned()).wrapping_mul(PRIME);
    answer.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whittle_model::policy::PriceColumn;

    const ASKED: Asked<'_, PriceColumn> =
        Asked { call: Call::PriceCandidates, columns: &[PriceColumn::RankMicros, PriceColumn::CostMicros], rows: 4, reasons: 2 };

    #[test]
    fn vetoes_keep_what_stood_and_zero_is_raised_unless_it_was_there() {
        let mut ranks = [0, 5, 7, 9];
        let vetoes = ASKED.verdicts(&PriceColumn::RankMicros, &[0, 0, -2, MOST], &mut ranks, 1).unwrap();
        assert_eq!((ranks, vetoes), ([0, 1, 7, MOST], vec![Vetoed { row: 2, reason: 1 }]));
        let mut costs = [1, 2, 3, 4];
        ASKED.costs(&PriceColumn::CostMicros, &[0, 6, -9, 8], &[Vetoed { row: 2, reason: 1 }], &mut costs).unwrap();
        assert_eq!(costs, [0, 6, 3, 8]);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let verdicts = |value| ASKED.verdicts(&PriceColumn::RankMicros, &[value], &mut [1], 1).unwrap_err().to_string();
        assert_eq!(
            verdicts(MOST + 1),
            "price-candidates answered 1000000000001 for rank-micros of row 0, which is absurd: 0 to 10^12 is allowed"
        );
        assert_eq!(verdicts(-3), "price-candidates vetoed row 0 for reason 2, 2 are declared");
        assert_eq!(verdicts(i64::MIN), "price-candidates vetoed row 0 for reason 9223372036854775807, 2 are declared");
        for found in [0, 4, 7, 9] {
            let error = ASKED.size(&vec![0; found]).unwrap_err().to_string();
            assert_eq!(error, format!("price-candidates answered {found} values, 4 rows of 2 columns were asked for"));
        }
        assert!(ASKED.costs(&PriceColumn::CostMicros, &[-1], &[], &mut [1]).is_err());
    }

    #[test]
    fn a_hash_sees_order_and_length() {
        let all = [hash(&[]), hash(&[0]), hash(&[0, 0]), hash(&[1, 2]), hash(&[2, 1])];
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
    }
}
