//! Writes to one object go one after the other, those to different objects side by side up to a bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// How many writes are under way at once: enough to create the claims of a large batch within a second, few
/// enough to stay below the API server's fair share of one client.
const AT_ONCE: usize = 64;

/// The lanes, one for each object that is being written.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Mutex<HashMap<String, Lane>>,
    bound: Arc<Semaphore>,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    lock: Arc<tokio::sync::Mutex<()>>,
    latest: u64,
}

/// The right to write one object.
pub(super) struct Turn<'a> {
    lanes: &'a Lanes,
    object: String,
    number: u64,
    guard: Option<OwnedMutexGuard<()>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { lanes: Mutex::default(), bound: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Lanes {
    /// Waits for the turn to write `object`. Turns come in the order in which they are asked for.
    pub(super) async fn turn(&self, object: String, number: u64) -> Turn<'_> {
        let lock = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            let lane = lanes.entry(object.clone()).or_default();
            lane.latest = lane.latest.max(number);
            Arc::clone(&lane.lock)
        };
        let guard = lock.lock_owned().await;
        let permit = Arc::clone(&self.bound).acquire_owned().await.ok();
        Turn { lanes: self, object, number, guard: Some(guard), _permit: permit }
    }

    /// Waits until every write that is under way has come to its end.
    pub(super) async fn settled(&self) {
        let all = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        drop(self.bound.acquire_many(all).await);
    }
}

impl Turn<'_> {
    /// Whether a later order with a number of its own waits behind this one.
    pub(super) fn overtaken(&self) -> bool {
        let lanes = self.lanes.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.get(&self.object).is_some_and(|lane| lane.latest > self.number)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut lanes = self.lanes.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own share is one; another belongs to somebody who waits.
        if lanes.get(&self.object).is_some_and(|lane| Arc::strong_count(&lane.lock) == 1) {
            lanes.remove(&self.object);
        }
    }
}
