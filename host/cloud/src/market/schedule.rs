//! When each part of the market is read again.

use whittle_model::{Duration, Timestamp};

use crate::error::CloudError;

/// Types, offerings and prices change rarely; Karpenter's interval.
pub const INTERVAL: Duration = Duration::minutes(12 * 60);
/// After a first failure. Others wait for what was not read, and an answer of throttling is waited for in the call.
const FIRST_RETRY: Duration = Duration::minutes(1);
/// Retries wait twice as long each time, up to 32 minutes.
const DOUBLINGS: u32 = 5;

/// What is read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Types,
    Offers,
    ListPrices,
    SpotPrices,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    /// `None` for never.
    at: Option<Timestamp>,
    /// Failures in a row.
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    parts: [Due; 4],
}

impl Schedule {
    /// Everything is due; the price list only when it can be read at all.
    pub(crate) fn new(reads_list: bool) -> Self {
        let now = Due { at: Some(Timestamp(i64::MIN)), failures: 0 };
        let mut parts = [now; 4];
        if !reads_list {
            parts[Part::ListPrices as usize].at = None;
        }
        Self { parts }
    }

    pub(crate) fn is_due(&self, part: Part, now: Timestamp) -> bool {
        self.parts[part as usize].at.is_some_and(|at| at <= now)
    }

    /// Plans the next reading of `part` by what this one came to, if there was one.
    pub(crate) fn note<T>(
        &mut self,
        part: Part,
        reading: Option<Result<T, CloudError>>,
        now: Timestamp,
        failures: &mut Vec<CloudError>,
    ) -> Option<T> {
        let due = &mut self.parts[part as usize];
        match reading? {
            Ok(read) => {
                *due = Due { at: Some(now.plus(INTERVAL)), failures: 0 };
                Some(read)
            }
            Err(failure) => {
                let wait = Duration(FIRST_RETRY.0 << due.failures.min(DOUBLINGS));
                *due = Due { at: Some(now.plus(wait)), failures: due.failures.saturating_add(1) };
                failures.push(failure);
                None
            }
        }
    }

    /// How long until the next part is due.
    pub(crate) fn next(&self, now: Timestamp) -> Duration {
        let soonest = self.parts.iter().filter_map(|due| due.at).min();
        soonest.map_or(INTERVAL, |at| at.since(now)).max(Duration(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn minutes(minutes: i64) -> Timestamp {
        Timestamp(0).plus(Duration::minutes(minutes))
    }

    fn failed() -> Result<(), CloudError> {
        Err(CloudError::local("read", "it", ErrorKind::Other, "no"))
    }

    #[test]
    fn failures_are_retried_ever_later_and_success_waits_for_twelve_hours() {
        let mut schedule = Schedule::new(true);
        let mut failures = Vec::new();
        for part in [Part::Types, Part::Offers, Part::ListPrices] {
            assert_eq!(schedule.note(part, Some(Ok(7)), minutes(0), &mut failures), Some(7));
        }
        let mut at = 0;
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert!(schedule.is_due(Part::SpotPrices, minutes(at)));
            assert_eq!(schedule.note(Part::SpotPrices, Some(failed()), minutes(at), &mut failures), None);
            assert!(!schedule.is_due(Part::SpotPrices, minutes(at)));
            let wait = schedule.next(minutes(at)).0 / 60_000;
            waits.push(wait);
            at += wait;
        }
        assert_eq!((waits, failures.len()), (vec![1, 2, 4, 8, 16, 32, 32, 32], 8));
        schedule.note(Part::SpotPrices, Some(Ok(())), minutes(at), &mut failures);
        schedule.note(Part::SpotPrices, Some(failed()), minutes(800), &mut failures);
        assert_eq!(schedule.next(minutes(800)), Duration(0), "the others have waited for 12 hours");
        assert!(!schedule.is_due(Part::SpotPrices, minutes(800)) && schedule.is_due(Part::SpotPrices, minutes(801)));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_never_due() {
        let schedule = Schedule::new(false);
        assert!(!schedule.is_due(Part::ListPrices, minutes(1_000_000)));
        assert!(schedule.is_due(Part::Types, minutes(0)));
    }
}
