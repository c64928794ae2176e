//! Points and spans of time as integers of milliseconds: exact, ordered, without a clock.

use serde::{Deserialize, Serialize};

use crate::go_duration;

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

/// Days from the epoch to a date of the proleptic Gregorian calendar, with the year beginning in March.
/// Source: <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days from the epoch; the inverse of [`days_from_civil`].
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (years + era * 400 + if month <= 2 { 1 } else { 0 }, month, day)
}

impl Timestamp {
    /// Year, month and day of month in UTC.
    #[must_use]
    pub const fn date(self) -> (i64, i64, i64) {
        civil_from_days(self.0.div_euclid(86_400_000))
    }

    /// In RFC 3339, UTC, whole seconds rounded down: `2026-11-30T14:00:00Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let ((year, month, day), of_day) = (self.date(), self.0.div_euclid(1000).rem_euclid(86_400));
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// The time that `text` names in RFC 3339; fractions beyond milliseconds are cut off.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to).filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse::<i64>().ok()
        };
        let is = |at: usize, any: &[u8]| text.as_bytes().get(at).is_some_and(|b| any.contains(b));
        if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (fraction, zone) = text.get(19..).map(|rest| rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len())))?;
        let millis = match fraction.strip_prefix('.') {
            Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => format!("{digits}00")[..3].parse().ok()?,
            Some(_) => return None,
            None if fraction.is_empty() => 0,
            None => return None,
        };
        let days = days_from_civil(year, month, day);
        Some(Self((days * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?) * 1000 + millis))
    }
}

/// Seconds east of UTC: `Z`, `+02:00`.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let two = |text: &str| text.parse::<i64>().ok().filter(|_| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()));
    Some(sign * (two(hours)? * 3600 + two(minutes)? * 60))
}

impl Duration {
    /// The span that `text` names the way Go writes them, such as `30m`, `1h30m` or `1.5h`; `None` if it names none.
    /// What is smaller than a millisecond is rounded down.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        go_duration::parse(text).map(|nanos| Self(nanos / 1_000_000))
    }

    /// A span of whole hours.
    #[must_use]
    pub const fn hours(hours: i64) -> Self {
        Self::minutes(hours.saturating_mul(60))
    }

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
    fn spans_are_read_as_go_reads_them() {
        for (text, millis) in [
            ("30m", Some(1_800_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            (".5s", Some(500)),
            ("90s", Some(90_000)),
            ("100ms", Some(100)),
            ("1us", Some(0)),
            ("-2m", Some(-120_000)),
            ("0", Some(0)),
            ("soon", None),
            ("true", None),
            ("", None),
            ("-", None),
            ("5", None),
            ("5 m", None),
            ("1d", None),
            (".s", None),
            ("99999999999999999999999999999h", None),
        ] {
            assert_eq!(Duration::parse(text), millis.map(Duration), "{text:?}");
        }
    }

    #[test]
    fn times_are_written_and_read_in_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696_000, "2000-02-29T12:34:56Z"),
            (1_796_047_200_000, "2026-11-30T14:00:00Z"),
            (-1000, "1969-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp(millis).rfc3339(), text);
            assert_eq!(Timestamp::parse_rfc3339(text), Some(Timestamp(millis)), "{text}");
        }
        for (text, millis) in [
            ("2026-11-30T16:00:00+02:00", Some(1_796_047_200_000)),
            ("2026-11-30T14:00:00.25Z", Some(1_796_047_200_250)),
            ("2026-11-30T14:00:00", None),
            ("2026-11-30", None),
            ("2026-13-30T14:00:00Z", None),
            ("2026-11-30T14:00:00.Z", None),
            ("2026-11-30T14:00:00+2:00", None),
            ("soon", None),
        ] {
            assert_eq!(Timestamp::parse_rfc3339(text), millis.map(Timestamp), "{text}");
        }
    }

    #[test]
    fn spans_read_as_people_write_them() {
        for (millis, text) in [(0, "0s"), (500, "500ms"), (1500, "1.500s"), (90_000, "1m30s"), (7_200_000, "2h"), (-5000, "-5s")] {
            assert_eq!(Duration(millis).to_string(), text);
        }
    }
}
