//! Money in integer micro-dollars: sums are exact and compare the same on every machine.

use serde::{Deserialize, Serialize};

/// Micro-dollars (10^-6 USD); as a price, per hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Micros(pub i64);

impl Micros {
    /// Parses a dollar amount such as `0.085`, `12` or `1.2345678`; digits beyond the sixth
    /// decimal round half up. `None` for anything but digits with at most one point.
    #[must_use]
    pub fn from_dollars(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let mut micros = 0i64;
        for place in 0..6 {
            let digit = fraction.as_bytes().get(place).map_or(0, |b| i64::from(b - b'0'));
            micros = micros * 10 + digit;
        }
        if fraction.as_bytes().get(6).is_some_and(|b| *b >= b'5') {
            micros += 1;
        }
        whole.checked_mul(1_000_000)?.checked_add(micros).map(Self)
    }
}

impl std::ops::Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Micros {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Micros {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), |a, b| a + b)
    }
}

impl std::fmt::Display for Micros {
    /// Dollars with four decimals, rounded half away from zero: `$0.0850`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.0.unsigned_abs().saturating_add(50) / 100;
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}${}.{:04}", all / 10_000, all % 10_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_parse_and_print() {
        for (text, micros) in [("0.085", 85_000), ("12", 12_000_000), (".5", 500_000), ("1.23456749", 1_234_567), ("0.0000005", 1)] {
            assert_eq!(Micros::from_dollars(text), Some(Micros(micros)), "{text}");
        }
        for bad in ["", ".", "-1", "1e3", "$1", "1.2.3"] {
            assert_eq!(Micros::from_dollars(bad), None, "{bad}");
        }
        assert_eq!(Micros(85_000).to_string(), "$0.0850");
        assert_eq!(Micros(-1_234_560).to_string(), "-$1.2346");
    }
}
