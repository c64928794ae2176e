//! What was ordered and has not shown its effect yet. An order is not given twice while its answer
//! may be under way, and is given again when none came.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, Timestamp};

/// Doors answer within seconds; an order without effect after this long was lost.
const LOST_AFTER: Duration = Duration::seconds(30);

/// A launch may wait for a batch and for EC2; asking again early would only be adopted.
const LAUNCH_LOST_AFTER: Duration = Duration::seconds(120);

/// The first wait after a launch that failed for another reason than capacity; it doubles.
const FIRST_BACK_OFF: Duration = Duration::seconds(1);

/// Kinds of orders, one at a time for each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Order {
    Create,
    Launch,
    Register,
    Initialize,
    Nominate,
    Delete,
    Cordon,
    Evict,
    Terminate,
    ReleaseNode,
    ReleaseClaim,
}

/// Orders by kind and object, with the time from which they may be given again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    given: BTreeSet<(Order, String)>,
    again: BTreeMap<String, Timestamp>,
    failures: BTreeMap<String, u32>,
    /// Claims that were ordered and that the watch has not shown.
    pub(crate) unseen: BTreeSet<String>,
    /// Claims whose instance has ended.
    pub(crate) ended: BTreeSet<String>,
}

impl Ledger {
    /// Whether the order may be given now; if so it counts as given.
    pub(crate) fn admit(&mut self, order: Order, object: &str, now: Timestamp) -> bool {
        if self.again.get(&key(order, object)).is_some_and(|at| *at > now) {
            return false;
        }
        let wait = if order == Order::Launch { LAUNCH_LOST_AFTER } else { LOST_AFTER };
        self.given.insert((order, object.to_owned()));
        self.again.insert(key(order, object), now.plus(wait));
        true
    }

    /// Whether the order was given and neither answered nor forgotten.
    pub(crate) fn outstanding(&self, order: Order, object: &str) -> bool {
        self.given.contains(&(order, object.to_owned()))
    }

    /// The order has shown its effect.
    pub(crate) fn done(&mut self, order: Order, object: &str) {
        self.given.remove(&(order, object.to_owned()));
        self.again.remove(&key(order, object));
    }

    /// The launch failed: it may be ordered again after a wait that doubles each time.
    pub(crate) fn launch_failed(&mut self, claim: &str, now: Timestamp) {
        let failures = self.failures.entry(claim.to_owned()).or_default();
        let wait = Duration(FIRST_BACK_OFF.0 << (*failures).min(6));
        *failures += 1;
        self.given.remove(&(Order::Launch, claim.to_owned()));
        self.again.insert(key(Order::Launch, claim), now.plus(wait));
    }

    /// Forgets every order about an object that is gone.
    pub(crate) fn forget(&mut self, object: &str) {
        let gone: Vec<(Order, String)> = self.given.iter().filter(|(_, o)| o == object).cloned().collect();
        for (order, object) in gone {
            self.done(order, &object);
        }
        self.again.remove(&key(Order::Launch, object));
        self.failures.remove(object);
        self.unseen.remove(object);
        self.ended.remove(object);
    }

    /// When the next order may be given again.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.again.values().copied().filter(|at| *at > now).min()
    }
}

fn key(order: Order, object: &str) -> String {
    format!("{order:?} {object}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_given_once_until_it_is_lost_or_done() {
        let mut ledger = Ledger::default();
        assert!(ledger.admit(Order::Delete, "a", Timestamp(0)));
        assert!(!ledger.admit(Order::Delete, "a", Timestamp(29_999)));
        assert!(ledger.admit(Order::Cordon, "a", Timestamp(0)), "another kind of order");
        assert!(ledger.admit(Order::Delete, "a", Timestamp(30_000)), "the first was lost");
        ledger.done(Order::Delete, "a");
        assert!(ledger.admit(Order::Delete, "a", Timestamp(30_001)));
        ledger.forget("a");
        assert_eq!(ledger.next(Timestamp(0)), None);
    }

    #[test]
    fn failed_launches_back_off() {
        let mut ledger = Ledger::default();
        let mut now = Timestamp(0);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(ledger.admit(Order::Launch, "a", now));
            ledger.launch_failed("a", now);
            assert_eq!(ledger.next(now), Some(now.plus(Duration::seconds(seconds))));
            now = now.plus(Duration::seconds(seconds));
        }
    }
}
