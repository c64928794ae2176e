//! A bar on standard error, for runs that take a while and somebody watches.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use whittle_model::Timestamp;

use crate::out::clock;

/// A run that is over sooner shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far a story has come.
pub struct Progress {
    started: Instant,
    watched: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Shows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now(), watched: std::io::stderr().is_terminal(), bar: None }
    }

    /// The story stands at its `nth` line of `lines`, at `now`.
    pub fn show(&mut self, now: Timestamp, nth: usize, lines: usize) {
        if !self.watched || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let lines = u64::try_from(lines).unwrap_or(0);
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{bar:30} line {pos} of {len}, {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(lines).with_style(style)
        });
        bar.set_position(u64::try_from(nth + 1).unwrap_or(0));
        bar.set_message(clock(now));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
