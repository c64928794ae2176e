//! When a policy that keeps failing is asked again. Time is given. What must not enter: what counts as a
//! failure.

use whittle_model::{Duration, Timestamp};

/// Failures in a row before it rests: one bad plan is not yet a broken policy.
const PATIENCE: u32 = 3;

/// The first rest; each further failure doubles it.
const FIRST: Duration = Duration::minutes(1);

/// The longest rest: a broken policy costs one discarded plan an hour.
const LONGEST: Duration = Duration::minutes(60);

/// How a policy has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rest {
    failures: u32,
    until: Option<Timestamp>,
}

impl Rest {
    /// As it was noted: failures in a row, and until when it rests.
    #[must_use]
    pub const fn of(failures: u32, until: Option<Timestamp>) -> Self {
        Self { failures, until }
    }

    /// Until when it rests or rested; `None` when it never had to.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        self.until
    }

    /// It failed. After a rest, one failure is enough for the next, longer one.
    pub fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= PATIENCE {
            let doublings = (self.failures - PATIENCE).min(16);
            let rest = FIRST.0.saturating_mul(1 << doublings).min(LONGEST.0);
            self.until = Some(now.plus(Duration(rest)));
        }
    }

    /// It answered a whole round.
    pub const fn answered(&mut self) {
        *self = Self { failures: 0, until: None };
    }

    /// Until when it rests; `None` when it may be asked.
    #[must_use]
    pub fn rests(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| now < *until)
    }

    /// Failures in a row.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_up_to_an_hour_and_end_with_an_answer() {
        let mut rest = Rest::default();
        let mut now = Timestamp(0);
        let mut rests = Vec::new();
        for _ in 0..10 {
            rest.failed(now);
            let until = rest.rests(now).unwrap_or(now);
            rests.push(until.since(now).as_seconds());
            now = until;
            assert_eq!(rest.rests(now), None);
        }
        assert_eq!(rests, [0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        rest.answered();
        rest.failed(now);
        assert_eq!((rest.rests(now), rest.failures()), (None, 1));
    }
}
