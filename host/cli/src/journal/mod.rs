//! Journals on the command line: what a simulation writes, and what `replay` and `explain` read. What
//! must not enter: the format of a journal, and what is decided.

mod judges;
mod memory;
mod record;

use whittle_model::{Duration, Timestamp};

pub use judges::Loaded;
pub use memory::Memory;
pub use record::Recording;

/// Times of a simulation are spans since its story began; later than this they are dates.
const DATES_FROM: i64 = 1_000_000_000_000;

/// A time of a journal, as people read it: `1m30s` into a story, or `2026-11-30T10:00:00Z`.
#[must_use]
pub fn clock(at: Timestamp) -> String {
    let date = (at.0 >= DATES_FROM).then(|| jiff::Timestamp::from_second(at.0.div_euclid(1000)).ok()).flatten();
    date.map_or_else(|| at.since(Timestamp(0)).to_string(), |date| date.to_string())
}

/// From one time to another: `1m30s to 4m`, with its length where these are dates.
#[must_use]
pub fn span(from: i64, to: i64) -> String {
    let long = if to >= DATES_FROM { format!(" ({})", Duration::seconds(to.saturating_sub(from) / 1000)) } else { String::new() };
    format!("{} to {}{long}", clock(Timestamp(from)), clock(Timestamp(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_of_a_story_or_dates() {
        assert_eq!([clock(Timestamp(90_000)), clock(Timestamp(1_796_000_000_500))], ["1m30s", "2026-11-30T00:53:20Z"]);
        assert_eq!(span(0, 61_000), "0s to 1m1s");
        assert_eq!(span(1_796_000_000_000, 1_796_000_090_000), "2026-11-30T00:53:20Z to 2026-11-30T00:54:50Z (1m30s)");
    }
}
