//! Requests that come close together share one call.
//!
//! What must not enter: AWS, and what a request is about.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

/// When a batch closes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// No new request came for this long.
    pub(crate) idle: Duration,
    /// The first request has waited this long.
    pub(crate) max: Duration,
    /// It holds this many.
    pub(crate) items: usize,
}

type Answers<O> = Pin<Box<dyn Future<Output = Vec<O>> + Send>>;

/// Gathers requests by key and answers each from one common call.
pub(crate) struct Batcher<K, I, O> {
    window: Window,
    open: Mutex<HashMap<K, Open<I, O>>>,
    /// Answers in the order of the requests.
    run: Box<dyn Fn(K, Vec<I>) -> Answers<O> + Send + Sync>,
}

struct Open<I, O> {
    requests: Vec<(I, oneshot::Sender<O>)>,
    first: Instant,
    last: Instant,
    full: Arc<Notify>,
}

impl<K, I, O> Batcher<K, I, O>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    I: Send + 'static,
    O: Send + 'static,
{
    pub(crate) fn new<F>(window: Window, run: impl Fn(K, Vec<I>) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Vec<O>> + Send + 'static,
    {
        Arc::new(Self { window, open: Mutex::default(), run: Box::new(move |key, items| Box::pin(run(key, items))) })
    }

    /// The answer to this request; `None` when the batch died with it.
    pub(crate) async fn ask(self: &Arc<Self>, key: K, request: I) -> Option<O> {
        let (answer, waiting) = oneshot::channel();
        let opened = self.with(|open| {
            let now = Instant::now();
            let fresh = !open.contains_key(&key);
            let batch =
                open.entry(key.clone()).or_insert_with(|| Open { requests: Vec::new(), first: now, last: now, full: Arc::default() });
            batch.requests.push((request, answer));
            batch.last = now;
            if batch.requests.len() >= self.window.items {
                batch.full.notify_one();
            }
            fresh
        });
        if opened {
            // A task of its own: the batch outlives the caller that happened to come first.
            tokio::spawn(self.clone().serve(key));
        }
        waiting.await.ok()
    }

    async fn serve(self: Arc<Self>, key: K) {
        while let Some((due, full)) = self.with(|open| open.get(&key).and_then(|batch| self.due(batch))) {
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = full.notified() => {}
            }
        }
        // Nobody else takes the batch out: one task serves each.
        let Some(batch) = self.with(|open| open.remove(&key)) else { return };
        let (requests, callers): (Vec<I>, Vec<_>) = batch.requests.into_iter().unzip();
        for (answer, caller) in (self.run)(key, requests).await.into_iter().zip(callers) {
            // A caller that went away needs no answer.
            let _ = caller.send(answer);
        }
    }

    /// When to look again; `None` when the batch closes now.
    fn due(&self, batch: &Open<I, O>) -> Option<(Instant, Arc<Notify>)> {
        let due = (batch.last + self.window.idle).min(batch.first + self.window.max);
        let open = batch.requests.len() < self.window.items && due > Instant::now();
        open.then(|| (due, batch.full.clone()))
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<K, Open<I, O>>) -> T) -> T {
        // Whoever panicked left whole batches behind.
        change(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K, I, O> std::fmt::Debug for Batcher<K, I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batcher").field("window", &self.window).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Calls = Arc<Mutex<Vec<Vec<u32>>>>;

    fn batcher(window: Window) -> (Arc<Batcher<&'static str, u32, u32>>, Calls) {
        let calls = Calls::default();
        let seen = calls.clone();
        let batcher = Batcher::new(window, move |_, items: Vec<u32>| {
            seen.lock().unwrap().push(items.clone());
            async move { items.into_iter().map(|n| n * 10).collect() }
        });
        (batcher, calls)
    }

    const WIDE: Window = Window { idle: Duration::from_millis(20), max: Duration::from_millis(500), items: 100 };

    #[tokio::test]
    async fn requests_of_one_key_share_a_call_and_each_gets_its_answer() {
        let (batcher, calls) = batcher(WIDE);
        let (a, b, c) = tokio::join!(batcher.ask("x", 1), batcher.ask("x", 2), batcher.ask("y", 3));
        assert_eq!((a, b, c), (Some(10), Some(20), Some(30)));
        let mut calls = calls.lock().unwrap().clone();
        calls.sort();
        assert_eq!(calls, [vec![1, 2], vec![3]]);
    }

    #[tokio::test]
    async fn a_full_batch_does_not_wait() {
        let (batcher, calls) = batcher(Window { idle: Duration::from_mins(1), max: Duration::from_mins(1), items: 2 });
        assert_eq!(tokio::join!(batcher.ask("x", 1), batcher.ask("x", 2)), (Some(10), Some(20)));
        assert_eq!(calls.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_batch_closes_at_the_latest_after_its_maximum() {
        let (batcher, calls) = batcher(Window { idle: Duration::from_millis(400), max: Duration::from_millis(600), items: 100 });
        let late = async {
            tokio::time::sleep(Duration::from_millis(250)).await;
            batcher.ask("x", 2).await
        };
        let later = async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            batcher.ask("x", 3).await
        };
        assert_eq!(tokio::join!(batcher.ask("x", 1), late, later), (Some(10), Some(20), Some(30)));
        assert_eq!(*calls.lock().unwrap(), [vec![1, 2], vec![3]]);
    }

    #[tokio::test]
    async fn a_batch_outlives_the_caller_that_opened_it() {
        let (batcher, calls) = batcher(WIDE);
        let impatient = tokio::time::timeout(Duration::from_millis(1), batcher.ask("x", 1)).await;
        assert!(impatient.is_err());
        assert_eq!(batcher.ask("x", 2).await, Some(20));
        assert_eq!(*calls.lock().unwrap(), [vec![1, 2]]);
    }
}
