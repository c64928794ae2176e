//! Committed spend: how much of it the mix uses, and what is left for a candidate. What must not enter:
//! other discounts; a committed dollar is spent at the commitment's own rate on the list price.

use whittle_sdk::prelude::*;

use crate::MOST;
use crate::book::{Patterns, WHOLE, part};
use crate::config::Commitment;

/// What is covered counts this part in the rank: it costs nothing more, yet of two covered types the
/// cheaper leaves more of the commitment to others. Less than spot ever costs of on-demand.
const COVERED_IN_RANK: i64 = 10;

/// By what the mix is counted: each node belongs to one pool, so none counts twice.
const MIX_KEY: &str = "node-pool";

/// One commitment.
#[derive(Debug)]
struct One {
    per_hour: i64,
    /// What of the list price it asks for, in thousandths of a percent.
    rate: i64,
    families: (Patterns, PerWord<bool>),
    zones: (Patterns, PerWord<bool>),
    ways: (Patterns, PerWord<bool>),
}

/// All commitments, in the order they are used up.
#[derive(Debug)]
pub(crate) struct Commitments(Vec<One>);

impl Commitments {
    /// `None` without any: then the mix is not asked for.
    pub(crate) fn new(all: &[Commitment], setup: &mut Setup) -> Result<Option<Self>, String> {
        if all.is_empty() {
            return Ok(None);
        }
        let mut commitments = Vec::new();
        for (number, one) in all.iter().enumerate() {
            let place = |field: &str| format!("commitments[{number}].{field}");
            if !(0..=MOST).contains(&one.per_hour.units()) {
                return Err(format!("{}: {} is not between 0 and 1000000", place("perHour"), one.per_hour));
            }
            if !(0..WHOLE).contains(&one.percent.units()) {
                return Err(format!("{}: {} is not between 0 and 100", place("percent"), one.percent));
            }
            let patterns = |list, field| Ok::<_, String>((Patterns::new(list, &place(field))?, PerWord::default()));
            commitments.push(One {
                per_hour: one.per_hour.units(),
                rate: WHOLE - one.percent.units(),
                families: patterns(&one.families, "families")?,
                zones: patterns(&one.zones, "zones")?,
                ways: patterns(&one.capacity_types, "capacityTypes")?,
            });
        }
        setup
            .candidates([CandidateColumn::Mix, CandidateColumn::Family, CandidateColumn::Zone, CandidateColumn::CapacityType])
            .candidates([CandidateColumn::ListMicros])
            .mix([MixRowColumn::Key, MixRowColumn::CapacityType, MixRowColumn::Zone, MixRowColumn::Family, MixRowColumn::ListMicros])
            .mix_key(MIX_KEY);
        Ok(Some(Self(commitments)))
    }

    pub(crate) fn forget_words(&mut self) {
        for one in &mut self.0 {
            one.families.1.clear();
            one.zones.1.clear();
            one.ways.1.clear();
        }
    }

    /// Takes off what is covered; answers what that counts in the rank.
    pub(crate) fn cover(&mut self, tables: &Tables, costs: &mut [i64]) -> Vec<i64> {
        let left = self.left(tables);
        let (mixes, lists) = (tables.column(&CandidateColumn::Mix), tables.column(&CandidateColumn::ListMicros));
        let families = tables.column(&CandidateColumn::Family);
        let (zones, ways) = (tables.column(&CandidateColumn::Zone), tables.column(&CandidateColumn::CapacityType));
        let mut in_rank = vec![0; costs.len()];
        let mut known: (i64, &[i64]) = (-1, &[]);
        for (row, cost) in costs.iter_mut().enumerate() {
            if known.0 != mixes[row] {
                known = (mixes[row], left.iter().find(|(mix, _)| *mix == mixes[row]).map_or(&[], |(_, left)| &left[..]));
            }
            let list = lists[row].clamp(0, MOST);
            let (mut uncovered, mut spent) = (list, 0);
            for (number, one) in self.0.iter_mut().enumerate() {
                let left = known.1.get(number).copied().unwrap_or(one.per_hour);
                if uncovered > 0 && left > 0 && one.covers(tables, (families[row], zones[row], ways[row])) {
                    let used = one.cover(&mut uncovered, left);
                    spent += used;
                }
            }
            if list > 0 {
                *cost = share(*cost, uncovered, list);
            }
            in_rank[row] = spent * COVERED_IN_RANK / 100;
        }
        in_rank
    }

    /// What is left of each commitment beside each mix.
    fn left(&mut self, tables: &Tables) -> Vec<(i64, Vec<i64>)> {
        let column = |column| tables.column(&column);
        let (mixes, keys, lists) = (column(MixRowColumn::Mix), column(MixRowColumn::Key), column(MixRowColumn::ListMicros));
        let (families, zones, ways) = (column(MixRowColumn::Family), column(MixRowColumn::Zone), column(MixRowColumn::CapacityType));
        let key = tables.word(MIX_KEY);
        let mut all: Vec<(i64, Vec<i64>)> = Vec::new();
        for row in (0..mixes.len()).filter(|row| Some(keys[*row]) == key) {
            if all.last().is_none_or(|(mix, _)| *mix != mixes[row]) {
                all.push((mixes[row], self.0.iter().map(|one| one.per_hour).collect()));
            }
            let Some((_, left)) = all.last_mut() else { continue };
            let mut uncovered = lists[row].clamp(0, MOST);
            for (one, left) in self.0.iter_mut().zip(left) {
                if *left > 0 && one.covers(tables, (families[row], zones[row], ways[row])) {
                    *left -= one.cover(&mut uncovered, *left);
                }
            }
        }
        all
    }
}

impl One {
    fn covers(&mut self, tables: &Tables, (family, zone, way): (i64, i64, i64)) -> bool {
        let fits = |(patterns, known): &mut (Patterns, PerWord<bool>), word| known.get(tables, word, |text| patterns.fit(text));
        fits(&mut self.ways, way) && fits(&mut self.families, family) && fits(&mut self.zones, zone)
    }

    /// Covers as much of a list price as `left` pays for; answers the committed money that takes.
    fn cover(&self, uncovered: &mut i64, left: i64) -> i64 {
        let wanted = part(*uncovered, self.rate);
        if wanted <= left {
            *uncovered = 0;
            return wanted;
        }
        *uncovered -= share(*uncovered, left, wanted);
        left
    }
}

/// `amount` x `over` / `under`, rounded down; `over` is at most `under`, which is above 0.
fn share(amount: i64, over: i64, under: i64) -> i64 {
    // Divisions of 128 bits cost a guest some hundred instructions.
    const SMALL: i64 = 1 << 31;
    if amount < SMALL && over < SMALL {
        return amount * over / under;
    }
    i64::try_from(i128::from(amount) * i128::from(over) / i128::from(under)).unwrap_or(amount)
}
