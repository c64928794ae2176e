//! Answers that stay good for a while. The time is handed in, so that tests own it.
//!
//! What must not enter: clocks, timers, what the answers mean.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use whittle_model::{Duration, Timestamp};

/// An answer that is out of date is kept this long, for the case that AWS does not answer.
const KEPT: Duration = Duration::minutes(24 * 60);

/// Answers by the question that was asked.
#[derive(Debug)]
pub(super) struct Cache<V> {
    entries: Mutex<BTreeMap<String, Entry<V>>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    made: Timestamp,
    until: Timestamp,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<V: Clone> Cache<V> {
    /// The answer, while it is good.
    pub(super) fn fresh(&self, question: &str, now: Timestamp) -> Option<V> {
        self.lock().get(question).filter(|entry| now < entry.until).map(|entry| entry.value.clone())
    }

    /// The answer, however old.
    pub(super) fn last(&self, question: &str) -> Option<V> {
        self.lock().get(question).map(|entry| entry.value.clone())
    }

    /// When the answer was given.
    pub(super) fn made(&self, question: &str) -> Option<Timestamp> {
        self.lock().get(question).map(|entry| entry.made)
    }

    /// Until when the answer is good.
    pub(super) fn until(&self, question: &str) -> Option<Timestamp> {
        self.lock().get(question).map(|entry| entry.until)
    }

    /// Keeps an answer for `good` from now on.
    pub(super) fn put(&self, question: &str, value: V, now: Timestamp, good: Duration) {
        let mut entries = self.lock();
        entries.retain(|_, entry| now < entry.until.plus(KEPT));
        entries.insert(question.to_owned(), Entry { value, made: now, until: now.plus(good) });
    }

    /// Forgets an answer.
    pub(super) fn forget(&self, question: &str) {
        self.lock().remove(question);
    }

    /// The questions whose answers are such.
    pub(super) fn questions(&self, such: impl Fn(&V) -> bool) -> Vec<String> {
        self.lock().iter().filter(|(_, entry)| such(&entry.value)).map(|(question, _)| question.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry<V>>> {
        // Each change is one call of the map: a panic elsewhere cannot have left it half made.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_for_its_time_and_kept_for_a_day_more() {
        let cache = Cache::default();
        let at = |minutes| Timestamp(0).plus(Duration::minutes(minutes));
        cache.put("a", 1, at(0), Duration::minutes(5));
        assert_eq!((cache.fresh("a", at(4)), cache.fresh("a", at(5)), cache.last("a")), (Some(1), None, Some(1)));
        assert_eq!((cache.made("a"), cache.until("a")), (Some(at(0)), Some(at(5))));
        cache.put("b", 2, at(24 * 60 + 4), Duration::minutes(1));
        assert_eq!(cache.last("a"), Some(1));
        cache.put("b", 2, at(24 * 60 + 5), Duration::minutes(1));
        assert_eq!(cache.last("a"), None);
        assert_eq!(cache.questions(|value| *value == 2), ["b"]);
        cache.forget("b");
        assert_eq!(cache.last("b"), None);
    }
}
