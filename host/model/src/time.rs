//! Points and spans of time as integers of milliseconds: exact, ordered, without a clock.

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since the Unix epoch. In a simulation, since the story began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

/// A span of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Duration(pub i64);

impl Timestamp {
    /// The point `span` later; saturates at the end of time.
    #[must_use]
    pub const fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span since `earlier`; negative when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// A span of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// A span of whole minutes.
    #[must_use]
    pub const fn minutes(minutes: i64) -> Self {
        Self::seconds(minutes.saturating_mul(60))
    }

    /// The whole seconds of this span, rounded down.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl std::fmt::Display for Duration {
    /// As people write it: `1m30s`, `2h`, `500ms`, `0s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, all) = if self.0 < 0 { ("-", self.0.unsigned_abs()) } else { ("", self.0.unsigned_abs()) };
        f.write_str(sign)?;
        let (hours, minutes, seconds, millis) = (all / 3_600_000, all / 60_000 % 60, all / 1000 % 60, all % 1000);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if millis > 0 && hours == 0 && minutes == 0 {
            return if seconds > 0 { write!(f, "{seconds}.{millis:03}s") } else { write!(f, "{millis}ms") };
        }
        if seconds > 0 || (hours == 0 && minutes == 0) {
            write!(f, "{seconds}s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (millis, text) in [(0, "0s"), (500, "500ms"), (1500, "1.500s"), (90_000, "1m30s"), (7_200_000, "2h"), (-5000, "-5s")] {
            assert_eq!(Duration(millis).to_string(), text);
        }
    }
}
