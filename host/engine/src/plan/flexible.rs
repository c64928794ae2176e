//! What `minValues` asks of a claim: among the types it may still become there are so many distinct values of a
//! key. What remains is counted after every cut: by requirements, by what pods take, by limits, by the length of
//! the list.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;
use whittle_model::{CapacityType, InstanceType, Offering, Requirements, keys};

use super::amounts::fits_on_top;
use super::states::State;
use super::tables::Row;

/// Numbers of values, one for each key that a pool asks distinct values of.
pub(crate) type Counts = SmallVec<[usize; 2]>;

/// What a claim has left: a state, and whether it will be of one capacity type, as claims are that say what to buy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'s> {
    pub(crate) state: &'s State,
    pub(crate) one_way: bool,
}

/// What a pool asks for.
#[derive(Debug, Default)]
pub(crate) struct Flexibility {
    wishes: Vec<Wish>,
    /// The offerings of each capacity type.
    ways: Vec<FixedBitSet>,
}

/// One key of it.
#[derive(Debug)]
struct Wish {
    key: String,
    least: usize,
    names: Vec<String>,
    values: Values,
}

/// The values that types have of a key, by number.
#[derive(Debug)]
enum Values {
    /// By row.
    OfType(Vec<SmallVec<[u32; 1]>>),
    /// By offering.
    OfOffering(Vec<u32>),
}

/// A key with fewer values than its pool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) key: String,
    pub(crate) wanted: usize,
    pub(crate) have: usize,
}

impl Flexibility {
    /// What a pool with this template asks of these types and offerings.
    pub(crate) fn new(template: &Requirements, rows: &[&InstanceType], offers: &[&Offering]) -> Self {
        let asked = template.iter().filter_map(|want| want.min_values().filter(|least| *least > 0).map(|least| (want.key(), least)));
        let wishes: Vec<Wish> = asked.map(|(key, least)| wish(key, least, rows, offers)).collect();
        Self { ways: if wishes.is_empty() { Vec::new() } else { ways(offers) }, wishes }
    }

    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }

    /// How many values of each key remain among the rows of a state that have room for `used` and `need` together.
    /// Counting stops where all keys have enough.
    fn counts(&self, rows: &[Row<'_>], view: View<'_>, used: &[i64], need: &[i64]) -> Counts {
        let fitting = view.state.rows.ones().filter(|row| fits_on_top(used, need, &rows[*row].room));
        self.count(rows, view, fitting)
    }

    /// The same among these rows; of a claim of one capacity type, whichever of them has the most of what is asked for.
    fn count(&self, rows: &[Row<'_>], view: View<'_>, among: impl Iterator<Item = usize>) -> Counts {
        if !view.one_way || self.ways.len() < 2 {
            return self.tally(rows, view.state, among, &|_| true);
        }
        let among: Vec<usize> = among.collect();
        let wanted = |counts: &Counts| -> usize { self.wishes.iter().zip(counts).map(|(wish, have)| wish.least.min(*have)).sum() };
        let of_each = self.ways.iter().map(|way| {
            let open = |row: &&usize| rows[**row].offers.clone().any(|offer| way.contains(offer) && view.state.offers.contains(offer));
            self.tally(rows, view.state, among.iter().filter(open).copied(), &|offer| way.contains(offer))
        });
        of_each.max_by_key(wanted).unwrap_or_else(|| self.wishes.iter().map(|_| 0).collect())
    }

    fn tally(&self, rows: &[Row<'_>], state: &State, among: impl Iterator<Item = usize>, within: &dyn Fn(usize) -> bool) -> Counts {
        let mut seen: SmallVec<[FixedBitSet; 2]> = self.wishes.iter().map(|w| FixedBitSet::with_capacity(w.names.len())).collect();
        let mut counts: Counts = self.wishes.iter().map(|_| 0).collect();
        for row in among {
            let mut enough = true;
            for ((wish, seen), count) in self.wishes.iter().zip(&mut seen).zip(&mut counts) {
                wish.for_each(row, rows, (state, within), |value| *count += usize::from(!seen.put(value)));
                enough &= *count >= wish.least;
            }
            if enough {
                break;
            }
        }
        counts
    }

    /// Whether enough values remain for a claim in this state that holds `used` and takes `need` besides. `relax`
    /// is for a claim whose first pod alone leaves fewer than that: what it has left may not become less.
    pub(crate) fn keeps(&self, rows: &[Row<'_>], view: View<'_>, used: &[i64], need: &[i64], relax: Option<&Counts>) -> bool {
        let counts = self.counts(rows, view, used, need);
        let bar = |at: usize, least: usize| relax.map_or(least, |had| least.min(had[at]));
        self.wishes.iter().enumerate().zip(&counts).all(|((at, wish), count)| *count >= bar(at, wish.least))
    }

    /// How many values of each key remain for a claim in this state that holds `used`.
    pub(crate) fn left(&self, rows: &[Row<'_>], view: View<'_>, used: &[i64]) -> Counts {
        self.counts(rows, view, used, &SmallVec::<[i64; 5]>::from_elem(0, used.len()))
    }

    /// The keys of which fewer values remain among these rows of a state than asked for.
    pub(crate) fn shortages(&self, rows: &[Row<'_>], view: View<'_>, among: impl Iterator<Item = usize>) -> Vec<Shortage> {
        self.short_of(self.count(rows, view, among))
    }

    /// The same for a claim that names these offerings of a state, each with its row, and may become nothing else.
    pub(crate) fn shortages_of(&self, rows: &[Row<'_>], state: &State, offers: &[(u32, u32)]) -> Vec<Shortage> {
        let named: FixedBitSet = offers.iter().map(|(offer, _)| *offer as usize).collect();
        self.short_of(self.tally(rows, state, offers.iter().map(|(_, row)| *row as usize), &|offer| named.contains(offer)))
    }

    fn short_of(&self, counts: Counts) -> Vec<Shortage> {
        let short = self.wishes.iter().zip(counts).filter(|(wish, have)| *have < wish.least);
        short.map(|(wish, have)| Shortage { key: wish.key.clone(), wanted: wish.least, have }).collect()
    }

    /// Which of `candidates`, rows of a state from best to worst, to keep when only `most` may be: those that
    /// bring a value that is still wanted, then the best of the others. More than `most` answers when fewer do
    /// not have enough values. A row may come with the one offering of it that is meant.
    pub(crate) fn choose(&self, rows: &[Row<'_>], state: &State, candidates: &[(u32, Option<u32>)], most: usize) -> Vec<bool> {
        let mut kept = vec![false; candidates.len()];
        for wish in &self.wishes {
            let mut seen = FixedBitSet::with_capacity(wish.names.len());
            let mut count = 0;
            let mut look = |(row, only): &(u32, Option<u32>), count: &mut usize| {
                let within = |offer: usize| only.is_none_or(|only| only as usize == offer);
                wish.for_each(*row as usize, rows, (state, &within), |value| *count += usize::from(!seen.put(value)));
            };
            // What is kept for another key counts for this one too.
            for (one, _) in candidates.iter().zip(&kept).filter(|(_, kept)| **kept) {
                look(one, &mut count);
            }
            for (at, one) in candidates.iter().enumerate() {
                if count >= wish.least {
                    break;
                }
                let before = count;
                look(one, &mut count);
                kept[at] |= count > before;
            }
        }
        let mut room = most.saturating_sub(kept.iter().filter(|kept| **kept).count());
        for kept in kept.iter_mut().filter(|kept| !**kept) {
            *kept = room > 0;
            room = room.saturating_sub(1);
        }
        kept
    }
}

impl Wish {
    fn for_each(&self, row: usize, rows: &[Row<'_>], (state, within): (&State, &dyn Fn(usize) -> bool), mut see: impl FnMut(usize)) {
        match &self.values {
            Values::OfType(values) => match &values[row][..] {
                [one] => see(*one as usize),
                several => {
                    let wanted = state.requirements.get(&self.key);
                    let left = several.iter().filter(|v| wanted.is_none_or(|w| w.allows(&self.names[**v as usize])));
                    left.for_each(|value| see(*value as usize));
                }
            },
            Values::OfOffering(values) => {
                let left = rows[row].offers.clone().filter(|offer| state.offers.contains(*offer) && within(*offer));
                left.for_each(|offer| see(values[offer] as usize));
            }
        }
    }
}

fn ways(offers: &[&Offering]) -> Vec<FixedBitSet> {
    let mut ways: BTreeMap<CapacityType, FixedBitSet> = BTreeMap::new();
    for (number, offer) in offers.iter().enumerate() {
        ways.entry(offer.capacity_type).or_insert_with(|| FixedBitSet::with_capacity(offers.len())).insert(number);
    }
    ways.into_values().collect()
}

fn wish(key: &str, least: u32, rows: &[&InstanceType], offers: &[&Offering]) -> Wish {
    let mut names: Vec<String> = Vec::new();
    let mut number = |name: &str| {
        let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        u32::try_from(at).expect("a catalogue has fewer than 2^32 types")
    };
    let values = match key {
        keys::ZONE => Values::OfOffering(offers.iter().map(|o| number(&o.zone)).collect()),
        keys::ZONE_ID => Values::OfOffering(offers.iter().map(|o| number(&o.zone_id)).collect()),
        keys::CAPACITY_TYPE => Values::OfOffering(offers.iter().map(|o| number(o.capacity_type.name())).collect()),
        key => Values::OfType(
            rows.iter()
                .map(|of_type| match (of_type.labels.get(key), of_type.requirements.get(key)) {
                    (Some(value), _) => SmallVec::from_elem(number(value), 1),
                    (None, Some(several)) if several.operator() == whittle_model::Operator::In => {
                        several.values().iter().map(|value| number(value)).collect()
                    }
                    (None, _) => SmallVec::new(),
                })
                .collect(),
        ),
    };
    Wish { key: key.to_owned(), least: least as usize, names, values }
}

/// The requirements of a claim that has fewer values than its pool asks for: it asks for what it has.
pub(crate) fn lowered(requirements: &Requirements, shortages: &[Shortage]) -> Requirements {
    let mut lowered = requirements.clone();
    for short in shortages {
        if let Some(requirement) = lowered.remove(&short.key) {
            let least = u32::try_from(short.have).unwrap_or(u32::MAX);
            lowered.add(requirement.with_min_values(Some(least).filter(|n| *n > 0)));
        }
    }
    lowered
}
