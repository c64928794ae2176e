//! Discounts and fees, row by row. What must not enter: commitments, which depend on the mix.

use whittle_sdk::prelude::*;
use wildmatch::WildMatch;

use crate::MOST;
use crate::config::{Config, Which};

/// The most discounts and the most fees, so that which of them a word lets through is one machine word.
const MOST_ENTRIES: usize = 64;

/// A hundred percent, as [`whittle_sdk::Decimal`] of three places counts it.
pub(crate) const WHOLE: i64 = 100_000;

/// Entries by number.
type Set = u64;

/// Names, one of which has to fit; all do when there is none.
#[derive(Debug, Clone)]
pub(crate) struct Patterns(Vec<WildMatch>);

impl Patterns {
    pub(crate) fn new(list: &[String], place: &str) -> Result<Self, String> {
        if list.iter().any(String::is_empty) {
            return Err(format!("{place}: a name is empty"));
        }
        Ok(Self(list.iter().map(|pattern| WildMatch::new(pattern)).collect()))
    }

    pub(crate) fn fit(&self, text: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(text))
    }
}

/// A text column that entries speak of: which of them each word lets through.
#[derive(Debug)]
struct Texts {
    column: CandidateColumn,
    patterns: Vec<Patterns>,
    known: PerWord<Set>,
}

/// Entries that fit some offerings.
#[derive(Debug)]
struct Entries {
    values: Vec<i64>,
    texts: Vec<Texts>,
}

type List = fn(&Which) -> &Vec<String>;

const TEXTS: [(List, &str, CandidateColumn); 5] = [
    (|which| &which.instance_types, "instanceTypes", CandidateColumn::InstanceType),
    (|which| &which.families, "families", CandidateColumn::Family),
    (|which| &which.categories, "categories", CandidateColumn::Category),
    (|which| &which.zones, "zones", CandidateColumn::Zone),
    (|which| &which.capacity_types, "capacityTypes", CandidateColumn::CapacityType),
];

impl Entries {
    fn new(name: &str, all: &[(i64, &Which)], setup: &mut Setup) -> Result<Self, String> {
        if all.len() > MOST_ENTRIES {
            return Err(format!("{} {name}, at most {MOST_ENTRIES} are possible", all.len()));
        }
        let mut texts = Vec::new();
        for (list, field, column) in TEXTS {
            if all.iter().all(|(_, which)| list(which).is_empty()) {
                continue;
            }
            setup.candidates([column.clone()]);
            let patterns =
                |(number, (_, which)): (usize, &(i64, &Which))| Patterns::new(list(which), &format!("{name}[{number}].on.{field}"));
            let patterns = all.iter().enumerate().map(patterns).collect::<Result<_, _>>()?;
            texts.push(Texts { column, patterns, known: PerWord::default() });
        }
        Ok(Self { values: all.iter().map(|(value, _)| *value).collect(), texts })
    }

    /// Changes each cost by the values of the entries that fit its row, in order.
    fn apply(&mut self, tables: &Tables, costs: &mut [i64], change: impl Fn(i64, i64) -> i64) {
        if self.values.is_empty() {
            return;
        }
        let all = if self.values.len() == MOST_ENTRIES { Set::MAX } else { (1 << self.values.len()) - 1 };
        let mut fits: Vec<Set> = vec![all; costs.len()];
        for Texts { column, patterns, known } in &mut self.texts {
            for (set, word) in fits.iter_mut().zip(tables.column(column)) {
                *set &= known.get(tables, *word, |text| fitting(patterns, text));
            }
        }
        for (cost, mut set) in costs.iter_mut().zip(fits) {
            while set != 0 {
                *cost = change(*cost, self.values[set.trailing_zeros() as usize]);
                set &= set - 1;
            }
        }
    }
}

fn fitting(patterns: &[Patterns], text: &str) -> Set {
    patterns.iter().enumerate().filter(|(_, patterns)| patterns.fit(text)).fold(0, |set, (number, _)| set | 1 << number)
}

/// Discounts and fees.
#[derive(Debug)]
pub(crate) struct Book {
    discounts: Entries,
    fees: Entries,
}

impl Book {
    pub(crate) fn new(config: &Config, setup: &mut Setup) -> Result<Self, String> {
        for (number, discount) in config.discounts.iter().enumerate() {
            if !(-10 * WHOLE..=WHOLE).contains(&discount.percent.units()) {
                return Err(format!("discounts[{number}].percent: {} is not between -1000 and 100", discount.percent));
            }
        }
        for (number, fee) in config.fees.iter().enumerate() {
            if !(0..=MOST).contains(&fee.per_hour.units()) {
                return Err(format!("fees[{number}].perHour: {} is not between 0 and 1000000", fee.per_hour));
            }
        }
        let discounts: Vec<_> = config.discounts.iter().map(|entry| (WHOLE - entry.percent.units(), &entry.on)).collect();
        let fees: Vec<_> = config.fees.iter().map(|entry| (entry.per_hour.units(), &entry.on)).collect();
        Ok(Self { discounts: Entries::new("discounts", &discounts, setup)?, fees: Entries::new("fees", &fees, setup)? })
    }

    /// Words of another round have other numbers.
    pub(crate) fn forget_words(&mut self) {
        self.discounts.texts.iter_mut().chain(&mut self.fees.texts).for_each(|texts| texts.known.clear());
    }

    /// Takes discounts off.
    pub(crate) fn discount(&mut self, tables: &Tables, costs: &mut [i64]) {
        self.discounts.apply(tables, costs, |cost, left| part(cost.clamp(0, MOST), left));
    }

    /// Adds fees.
    pub(crate) fn charge(&mut self, tables: &Tables, costs: &mut [i64]) {
        self.fees.apply(tables, costs, |cost, fee| cost.clamp(0, MOST) + fee);
    }
}

/// A part of an amount in thousandths of a percent, rounded to the nearest. The amount is at most 10^12,
/// the part at most 1,100 %.
pub(crate) const fn part(amount: i64, percent: i64) -> i64 {
    (amount * percent + WHOLE / 2) / WHOLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_to_the_nearest() {
        assert_eq!([part(3, 50_000), part(1, 49_999), part(1_000_000, 72_500), part(0, WHOLE)], [2, 0, 725_000, 0]);
        assert_eq!(part(MOST, 11 * WHOLE), 11 * MOST);
    }
}
