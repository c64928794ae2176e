//! The answer for programs: one JSON object a line. A contract: names and units stay.

use std::io::{self, Write};

use serde::Serialize;
use whittle_model::Timestamp;
use whittle_sim::{Summary, TimelineEvent};

#[derive(Serialize)]
struct Line<'a> {
    /// Seconds of the story.
    at: f64,
    event: &'a TimelineEvent,
}

#[derive(Serialize)]
struct Last<'a> {
    summary: Complete<'a>,
}

#[derive(Serialize)]
struct Complete<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    partial: bool,
    /// What was assumed, set aside, skipped or not used in reading the input.
    notes: &'a [String],
}

/// Writes events as they happen.
pub struct Stream<'a> {
    out: &'a mut dyn Write,
    failure: Option<io::Error>,
}

impl<'a> Stream<'a> {
    /// To `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out, failure: None }
    }

    /// Writes one; after a failure nothing more.
    pub fn event(&mut self, at: Timestamp, event: &TimelineEvent) {
        if self.failure.is_none() {
            self.failure = line(self.out, &Line { at: seconds(at), event }).err();
        }
    }

    /// What kept it from writing.
    #[must_use]
    pub fn failure(self) -> Option<io::Error> {
        self.failure
    }
}

/// Writes the last line.
///
/// # Errors
/// When it cannot be written.
pub fn summary(out: &mut dyn Write, summary: &Summary, notes: &[String], partial: bool) -> io::Result<()> {
    line(out, &Last { summary: Complete { summary, partial, notes } })
}

/// Writes one object on a line of its own.
///
/// # Errors
/// When it cannot be written.
pub fn line<T: Serialize>(out: &mut dyn Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn seconds(at: Timestamp) -> f64 {
    // Exact: a story is shorter than 2^53 milliseconds.
    at.0 as f64 / 1000.0
}
