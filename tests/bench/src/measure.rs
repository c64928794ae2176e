//! The clock: two runs side by side, alternating in one process, told as median and spread. What is
//! timed is up to the runs, each of which answers how long its timed part took.

use std::fmt;
use std::time::{Duration, Instant};

/// A pair is repeated this often when it is quick.
const ROUNDS: u32 = 11;
/// And at least this often when it is slow.
const FEWEST: u32 = 3;
/// A pair is slow when all rounds would take longer than this.
const PATIENCE: Duration = Duration::from_secs(15);

/// Durations of one run, shortest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times(Vec<Duration>);

impl Times {
    /// From durations in any order, of which there is at least one.
    #[must_use]
    pub fn new(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    /// The middle one; the upper of the two in the middle.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// The shortest that so many percent do not exceed.
    #[must_use]
    pub fn quantile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }

    /// The median in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.median().as_secs_f64()
    }

    /// Shortest, longest and number, as the end of a line.
    #[must_use]
    pub fn spread(&self) -> String {
        self.spread_in(Millis)
    }

    /// The same in a unit.
    #[must_use]
    pub fn spread_in<U: fmt::Display>(&self, unit: impl Fn(Duration) -> U) -> String {
        let at = |place: Option<&Duration>| unit(place.copied().unwrap_or_default());
        format!("{} to {}, {} rounds", at(self.0.first()), at(self.0.last()), self.0.len())
    }
}

/// Prints as milliseconds: three digits that matter, `9.13 ms`.
#[derive(Debug, Clone, Copy)]
pub struct Millis(pub Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_secs_f64() * 1000.0;
        let decimals = if millis < 10.0 { 2 } else { usize::from(millis < 100.0) };
        write!(f, "{millis:.decimals$} ms")
    }
}

/// Prints as microseconds, as [`Millis`] does.
#[derive(Debug, Clone, Copy)]
pub struct Micros(pub Duration);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_secs_f64() * 1e6;
        let decimals = if micros < 10.0 { 2 } else { usize::from(micros < 100.0) };
        write!(f, "{micros:.decimals$} µs")
    }
}

/// How long `run` takes, and what came of it.
pub fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = std::hint::black_box(run());
    (start.elapsed(), result)
}

/// How long `run` takes on average over `times` runs in a row: what is quicker than the clock's grain.
pub fn repeated<T>(times: u32, mut run: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        std::hint::black_box(run());
    }
    start.elapsed() / times.max(1)
}

/// Runs the two alternately, once to warm up and then in rounds, fewer of them when they are slow.
pub fn alternate(mut ours: impl FnMut() -> Duration, mut peer: impl FnMut() -> Duration) -> (Times, Times) {
    let [first, second] = in_turn([&mut ours, &mut peer]);
    (first, second)
}

/// Runs all of them in turn, once to warm up and then in rounds, fewer of them when they are slow.
pub fn in_turn<const RUNS: usize>(mut runs: [&mut dyn FnMut() -> Duration; RUNS]) -> [Times; RUNS] {
    let (once, _) = timed(|| runs.iter_mut().for_each(|run| _ = run()));
    let fitting = PATIENCE.as_secs_f64() / once.as_secs_f64();
    let rounds = (FEWEST..ROUNDS).rev().find(|n| f64::from(*n) <= fitting).map_or(FEWEST, |n| n + 1);
    let mut all: [Vec<Duration>; RUNS] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        runs.iter_mut().zip(&mut all).for_each(|(run, times)| times.push(run()));
    }
    all.map(Times::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_median_and_spread() {
        let times = Times::new([30, 10, 20, 1000].map(Duration::from_millis).to_vec());
        assert_eq!((times.median(), times.spread().as_str()), (Duration::from_millis(30), "10.0 ms to 1000 ms, 4 rounds"));
        assert_eq!(Millis(Duration::from_micros(9126)).to_string(), "9.13 ms");
    }

    #[test]
    fn quick_pairs_alternate_eleven_times_after_a_warm_up() {
        let order = std::cell::RefCell::new(String::new());
        let run = |name: char| {
            order.borrow_mut().push(name);
            Duration::from_millis(1)
        };
        let (ours, peer) = alternate(|| run('a'), || run('b'));
        assert_eq!((ours.0.len(), peer.0.len()), (11, 11));
        assert_eq!(order.into_inner(), "ab".repeat(12));
    }
}
