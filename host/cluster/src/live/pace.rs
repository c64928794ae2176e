//! Requests at the pace that was agreed on: a bucket of tokens in front of the client, and a limit on how long an answer may
//! take to begin.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// The API server itself gives up on a request after a minute; watches answer at once and stream on.
const ANSWER: Duration = Duration::from_secs(60);

/// A bucket that refills by one token each `gap` and holds `burst` of them.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    gap: Duration,
    depth: Duration,
    /// When the bucket would be full again, were nothing taken.
    full: Arc<Mutex<Instant>>,
}

impl Pace {
    /// `qps` requests a second, `burst` at once; both at least 1.
    pub fn new(qps: u32, burst: u32) -> Self {
        let gap = Duration::from_secs(1) / qps.max(1);
        Self { gap, depth: gap * (burst.max(1) - 1), full: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Takes a token: when the request may go.
    fn take(&self) -> Instant {
        let now = Instant::now();
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (*full).max(now);
        *full = before + self.gap;
        now + before.duration_since(now).saturating_sub(self.depth)
    }
}

impl<S> Layer<S> for Pace {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced { inner, pace: self.clone() }
    }
}

/// A client's service that keeps the pace.
pub(super) struct Paced<S> {
    inner: S,
    pace: Pace,
}

impl<S, B> Service<Request<Body>> for Paced<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (at, answer) = (self.pace.take(), self.inner.call(request));
        Box::pin(async move {
            tokio::time::sleep_until(at).await;
            tokio::time::timeout(ANSWER, answer).await?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let (pace, start) = (Pace::new(10, 3), Instant::now());
        let waits: Vec<u128> = (0..6).map(|_| pace.take().duration_since(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        tokio::time::advance(Duration::from_secs(10)).await;
        let now = Instant::now();
        let waits: Vec<u128> = (0..4).map(|_| pace.take().duration_since(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "a rest fills the bucket no higher than the burst");
    }
}
