//! Pools whose moves failed rest before the next: one that cannot be helped must not keep the others waiting, nor buy and
//! throw away for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, Timestamp};

/// The first rest; it doubles with each failure in a row.
const FIRST: Duration = Duration::minutes(1);
/// It doubles so often at most: to a little more than an hour.
const DOUBLINGS: u32 = 6;

/// Failures are in a row when no more than this lies between a rest and the next of them.
const FORGOTTEN: Duration = Duration::minutes(120);

/// Rests by pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rests(BTreeMap<String, Rest>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Rest {
    failures: u32,
    until: Timestamp,
}

impl Rests {
    /// A move of these pools failed.
    pub(super) fn failed(&mut self, pools: &[String], now: Timestamp) {
        let mut pools: Vec<&String> = pools.iter().collect();
        pools.sort_unstable();
        pools.dedup();
        for pool in pools {
            let rest = self.0.entry(pool.clone()).or_insert(Rest { failures: 0, until: now });
            if now.since(rest.until) > FORGOTTEN {
                rest.failures = 0;
            }
            rest.until = now.plus(Duration(FIRST.0 << rest.failures.min(DOUBLINGS)));
            rest.failures += 1;
        }
    }

    /// A move of these pools came to its end.
    pub(super) fn worked(&mut self, pools: &[String]) {
        for pool in pools {
            self.0.remove(pool);
        }
    }

    /// Whether a pool rests.
    pub(super) fn rests(&self, pool: &str, now: Timestamp) -> bool {
        self.0.get(pool).is_some_and(|rest| rest.until > now)
    }

    /// When the next rest is over.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.values().map(|rest| rest.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_and_end() {
        let (mut rests, pools) = (Rests::default(), ["a".to_owned(), "a".to_owned()]);
        let mut now = Timestamp(0);
        for minutes in [1, 2, 4, 8, 16, 32, 64, 64] {
            rests.failed(&pools, now);
            assert_eq!(rests.next(now), Some(now.plus(Duration::minutes(minutes))));
            assert!(rests.rests("a", now) && !rests.rests("b", now));
            now = now.plus(Duration::minutes(minutes));
            assert!(!rests.rests("a", now));
        }
        now = now.plus(Duration::minutes(121));
        rests.failed(&pools, now);
        assert_eq!(rests.next(now), Some(now.plus(FIRST)), "that was long ago");
        rests.worked(&pools);
        assert_eq!(rests, Rests::default());
    }
}
