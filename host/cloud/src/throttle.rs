//! A token bucket for each AWS action: the controller asks no faster than an account is allowed to, and slows down when
//! AWS still says that it is too fast.
//!
//! What must not enter: AWS types, decisions about what is worth a retry.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Tokens that a bucket holds, and how many come back in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    burst: f64,
    refill: f64,
}

/// Half of what AWS grants an account by default, which others in the account share.
/// Source: EC2 Developer Guide, "Request throttling for the Amazon EC2 API"; quotas of the other services.
fn rate_of(action: &str) -> Rate {
    let (burst, refill) = match action {
        "CreateFleet" | "CreateLaunchTemplate" | "DeleteLaunchTemplate" => (25.0, 2.5),
        "TerminateInstances" => (50.0, 2.5),
        "CreateTags" => (50.0, 5.0),
        "GetProducts" => (10.0, 5.0),
        "GetParameter" | "GetParameters" | "GetParametersByPath" => (20.0, 20.0),
        "ReceiveMessage" | "DeleteMessageBatch" => (200.0, 100.0),
        other if other.starts_with("Describe") => (50.0, 10.0),
        other if other.starts_with("Get") || other.starts_with("List") => (25.0, 5.0),
        _ => (20.0, 2.5),
    };
    Rate { burst, refill }
}

/// The buckets of all actions.
#[derive(Debug)]
pub(crate) struct Throttle {
    lanes: Mutex<HashMap<&'static str, Arc<Lane>>>,
    /// Refills are so many times faster than AWS's: more than once only in tests.
    speed: f64,
}

/// One action: callers wait in the order in which they came.
#[derive(Debug)]
struct Lane {
    turn: tokio::sync::Mutex<()>,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    rate: Rate,
    /// Part of `rate.refill` that comes back now: halved by each refusal, restored by each success.
    pace: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, pace: 1.0, tokens: rate.burst, filled: now }
    }

    fn fill(&mut self, now: Instant) {
        let gained = now.duration_since(self.filled).as_secs_f64() * self.rate.refill * self.pace;
        self.tokens = (self.tokens + gained).min(self.rate.burst);
        self.filled = now;
    }

    /// Takes a token, or says after how long there will be one at this pace.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return None;
        }
        Some(Duration::from_secs_f64((1.0 - self.tokens) / (self.rate.refill * self.pace)))
    }

    fn refused(&mut self, now: Instant) {
        self.fill(now);
        self.pace = (self.pace / 2.0).max(SLOWEST);
        self.tokens = self.tokens.min(0.0);
    }

    fn passed(&mut self, now: Instant) {
        self.fill(now);
        self.pace = (self.pace + 0.1).min(1.0);
    }
}

/// The slowest pace: one in eight of the documented rate. Slower than that, a scale-up would outlast its claims.
const SLOWEST: f64 = 1.0 / 8.0;
/// A caller looks this often whether the pace has changed.
const LOOK: Duration = Duration::from_millis(250);

impl Throttle {
    pub(crate) fn new(speed: f64) -> Self {
        Self { lanes: Mutex::default(), speed }
    }

    /// Waits until `action` may be called.
    pub(crate) async fn admit(&self, action: &'static str) {
        let lane = self.lane(action);
        let _turn = lane.turn.lock().await;
        while let Some(wait) = lane.with(Bucket::take) {
            // At least a moment, so that rounding never makes this a busy loop.
            tokio::time::sleep(wait.clamp(Duration::from_micros(100), LOOK)).await;
        }
    }

    /// AWS refused a call of `action` as too fast.
    pub(crate) fn refused(&self, action: &'static str) {
        self.lane(action).with(Bucket::refused);
    }

    /// A call of `action` went through.
    pub(crate) fn passed(&self, action: &'static str) {
        self.lane(action).with(Bucket::passed);
    }

    fn lane(&self, action: &'static str) -> Arc<Lane> {
        // Whoever panicked left whole lanes behind.
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || {
            let Rate { burst, refill } = rate_of(action);
            let bucket = Bucket::new(Rate { burst, refill: refill * self.speed }, Instant::now());
            Arc::new(Lane { turn: tokio::sync::Mutex::default(), bucket: Mutex::new(bucket) })
        };
        lanes.entry(action).or_insert_with(fresh).clone()
    }
}

impl Lane {
    fn with<T>(&self, change: impl FnOnce(&mut Bucket, Instant) -> T) -> T {
        // A panic elsewhere leaves a bucket that is still a bucket.
        change(&mut self.bucket.lock().unwrap_or_else(PoisonError::into_inner), Instant::now())
    }
}

/// How long to wait before retry number `attempt` (from 0): doubles from `first` to sixteen times that, and anything from
/// half of it to all of it, so that callers refused together do not return together.
pub(crate) fn back_off(first: Duration, attempt: u32) -> Duration {
    let longest = first * (1 << attempt.min(4));
    longest.mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn waits(bucket: &mut Bucket, now: Instant, times: usize) -> Vec<Option<u128>> {
        (0..times).map(|_| bucket.take(now).map(|wait| wait.as_millis())).collect()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let now = Instant::now();
        let mut bucket = Bucket::new(Rate { burst: 3.0, refill: 2.0 }, now);
        assert_eq!(waits(&mut bucket, now, 5), [None, None, None, Some(500), Some(500)]);
        assert_eq!(waits(&mut bucket, now + SECOND / 4, 1), [Some(250)]);
        assert_eq!(waits(&mut bucket, now + SECOND / 2, 2), [None, Some(500)]);
        assert_eq!(waits(&mut bucket, now + 60 * SECOND, 4), [None, None, None, Some(500)], "never fuller than full");
    }

    #[test]
    fn a_refusal_slows_down_and_success_restores() {
        let now = Instant::now();
        let mut bucket = Bucket::new(Rate { burst: 9.0, refill: 2.0 }, now);
        bucket.refused(now);
        assert_eq!(waits(&mut bucket, now, 1), [Some(1000)], "the burst is gone, and half the pace is left");
        for _ in 0..9 {
            bucket.refused(now);
        }
        assert_eq!(waits(&mut bucket, now, 1), [Some(4000)], "an eighth, and not less");
        for _ in 0..10 {
            bucket.passed(now);
        }
        assert_eq!(waits(&mut bucket, now, 1), [Some(500)]);
    }

    #[tokio::test]
    async fn each_action_has_its_own_bucket_and_callers_keep_their_order() {
        let throttle = Throttle::new(100.0);
        let begin = Instant::now();
        for _ in 0..25 {
            throttle.admit("CreateFleet").await;
        }
        throttle.admit("DescribeSubnets").await;
        assert!(begin.elapsed() < Duration::from_millis(90), "a burst without waiting");
        let served = Mutex::new(Vec::new());
        let caller = |n: u32| {
            let (throttle, served) = (&throttle, &served);
            async move {
                throttle.admit("CreateFleet").await;
                served.lock().unwrap().push(n);
            }
        };
        tokio::join!(caller(1), caller(2), caller(3), caller(4));
        assert!(begin.elapsed() >= Duration::from_millis(15), "four tokens at 250 a second");
        assert_eq!(*served.lock().unwrap(), [1, 2, 3, 4]);
    }

    #[test]
    fn back_off_grows_and_is_bounded() {
        for (attempt, longest) in [(0, 500), (1, 1000), (4, 8000), (30, 8000)] {
            let wait = back_off(Duration::from_millis(500), attempt).as_millis();
            assert!(wait >= longest / 2 && wait <= longest, "{attempt}: {wait}");
        }
    }
}
