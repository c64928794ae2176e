//! How often spot capacity was taken back, by offering: interruptions and the instance hours they were counted over.
//! Both fade, so that last month's market does not speak for today's.
//!
//! What must not enter: floating point; the figures are compared and go into checkpoints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, OfferingKey, Timestamp};

use crate::world::World;

/// The weight of what was seen halves in this time: long enough to see a rare event twice, short enough to forget a
/// shortage that is over.
const HALF_LIFE: Duration = Duration::hours(14 * 24);
/// What an hour leaves of a weight, in parts of 2^32: 2^(-1/336).
const AFTER_AN_HOUR: u64 = 4_286_116_177;
/// As many offerings are remembered; those with the least exposure go first.
const MOST: usize = 4096;
/// Counts are kept in thousandths.
const UNIT: i64 = 1000;

/// What is known of an offering, as of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Seen {
    /// Interruptions, in thousandths.
    interruptions: i64,
    /// Instance hours, in thousandths.
    hours: i64,
    at: Timestamp,
}

/// What is known of all offerings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Interruptions(BTreeMap<OfferingKey, Seen>);

impl Interruptions {
    /// An instance of the offering ran from `since` to `now`, and was taken back or not.
    pub(crate) fn note(&mut self, offering: &OfferingKey, since: Timestamp, now: Timestamp, taken_back: bool) {
        let known = self.0.get(offering).copied().unwrap_or_default();
        let mut seen = faded(known, now);
        let hours = i128::from(now.since(since).0.max(0)) * i128::from(UNIT) / i128::from(Duration::hours(1).0);
        seen.hours = seen.hours.saturating_add(i64::try_from(hours).unwrap_or(i64::MAX));
        seen.interruptions = seen.interruptions.saturating_add(if taken_back { UNIT } else { 0 });
        self.0.insert(offering.clone(), seen);
        if self.0.len() > MOST {
            let least = self.0.iter().min_by_key(|(key, seen)| (faded(**seen, now).hours, (*key).clone())).map(|(key, _)| key.clone());
            if let Some(least) = least {
                self.0.remove(&least);
            }
        }
    }

    /// Interruptions and instance hours of an offering, both faded and rounded.
    pub(crate) fn of(&self, offering: &OfferingKey, now: Timestamp) -> (i64, i64) {
        let seen = self.0.get(offering).map(|seen| faded(*seen, now)).unwrap_or_default();
        ((seen.interruptions + UNIT / 2) / UNIT, (seen.hours + UNIT / 2) / UNIT)
    }

    /// All offerings with interruptions a thousand instance hours, and the hours behind the figure.
    pub(crate) fn rates(&self, now: Timestamp) -> impl Iterator<Item = (&OfferingKey, i64, i64)> {
        self.0.iter().map(move |(key, seen)| {
            let seen = faded(*seen, now);
            let rate =
                if seen.hours > 0 { i64::try_from(i128::from(seen.interruptions) * 1000 / i128::from(seen.hours)).unwrap_or(0) } else { 0 };
            (key, rate, seen.hours / UNIT)
        })
    }

    pub(crate) fn list(&self) -> SeenList {
        SeenList(self.0.iter().map(|(key, seen)| (key.clone(), *seen)).collect())
    }

    pub(crate) fn of_list(list: SeenList) -> Self {
        Self(list.0.into_iter().collect())
    }
}

impl World {
    /// How often an offering was taken back, and over how many instance hours; both fade by half in a fortnight. Hours
    /// of instances that run count once these have ended.
    #[must_use]
    pub fn interruptions(&self, offering: &OfferingKey, now: Timestamp) -> (i64, i64) {
        self.interruptions.of(offering, now)
    }

    /// All offerings of which something is known: interruptions a thousand instance hours, and the hours they were
    /// counted over.
    pub fn interruption_rates(&self, now: Timestamp) -> impl Iterator<Item = (&OfferingKey, i64, i64)> {
        self.interruptions.rates(now)
    }
}

/// For a checkpoint: JSON has no keys of more than one part.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SeenList(Vec<(OfferingKey, Seen)>);

/// What is left of it at `now`, by whole hours since.
fn faded(seen: Seen, now: Timestamp) -> Seen {
    let hour = Duration::hours(1).0;
    let hours = (now.since(seen.at).0 / hour).max(0);
    if hours == 0 {
        return seen;
    }
    let halved = hours / (HALF_LIFE.0 / hour);
    let keep = |value: i64| {
        let value = if halved > 62 { 0 } else { value >> halved };
        i64::try_from((i128::from(value) * i128::from(power(hours % (HALF_LIFE.0 / hour)))) >> 32).unwrap_or(0)
    };
    Seen { interruptions: keep(seen.interruptions), hours: keep(seen.hours), at: seen.at.plus(Duration(hours * hour)) }
}

/// [`AFTER_AN_HOUR`] to a power, in parts of 2^32.
fn power(mut exponent: i64) -> u64 {
    let (mut result, mut base) = (1_u128 << 32, u128::from(AFTER_AN_HOUR));
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = (result * base) >> 32;
        }
        base = (base * base) >> 32;
        exponent >>= 1;
    }
    u64::try_from(result).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use whittle_model::CapacityType;

    use super::*;

    fn key(name: &str) -> OfferingKey {
        OfferingKey { instance_type: name.into(), zone: "a".into(), capacity_type: CapacityType::Spot }
    }

    fn hours(hours: i64) -> Timestamp {
        Timestamp(Duration::hours(hours).0)
    }

    #[test]
    fn counts_fade_by_half_in_a_fortnight() {
        let mut all = Interruptions::default();
        for n in 0..8 {
            all.note(&key("x"), hours(0), hours(100), n % 2 == 0);
        }
        assert_eq!(all.of(&key("x"), hours(100)), (4, 800));
        assert_eq!(all.of(&key("x"), hours(100 + 14 * 24)), (2, 400));
        assert_eq!(all.of(&key("x"), hours(100 + 28 * 24)), (1, 200));
        let (_, week) = all.of(&key("x"), hours(100 + 7 * 24));
        assert!((560..=570).contains(&week), "{week}");
        assert_eq!(all.of(&key("x"), hours(1_000_000)), (0, 0));
        assert_eq!(all.of(&key("y"), hours(100)), (0, 0));
        assert_eq!(all.rates(hours(100)).map(|(_, rate, hours)| (rate, hours)).collect::<Vec<_>>(), [(5, 800)]);
        assert_eq!(Interruptions::of_list(all.list()), all);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut all = Interruptions::default();
        for n in 0..MOST + 10 {
            all.note(&key(&format!("t{n:05}")), hours(0), hours(i64::try_from(n).unwrap_or(0) + 1), false);
        }
        assert_eq!(all.0.len(), MOST);
        assert_eq!(all.of(&key("t00000"), hours(5000)), (0, 0), "the least exposed goes");
    }
}
