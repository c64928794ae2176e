//! Kubernetes quantities: every legal form, kept exactly, compared by value.
//!
//! Grammar: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

use serde::{Deserialize, Serialize};

/// A parsed quantity in nano-units (10^-9): `100m` is 10^8, `1Ki` is 1024 x 10^9. Equal amounts
/// are equal however they were written. Digits finer than a nano round away from zero, as
/// Kubernetes does; amounts beyond 2^63-1 whole units saturate there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Quantity(i128);

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There are no digits where a number should stand.
    #[error("{0:?} is not a quantity: it needs a number such as 500m, 1.5 or 2Gi")]
    NoNumber(String),
    /// The number is followed by letters that are no unit.
    #[error(
        "{text:?} is not a quantity: unknown unit {unit:?}, use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
    )]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// What stands where a unit should.
        unit: String,
    },
}

const NANO: i128 = 1_000_000_000;
const LARGEST: i128 = (i64::MAX as i128) * NANO;

impl Quantity {
    /// A number of whole units.
    #[must_use]
    pub const fn units(units: i64) -> Self {
        Self(units as i128 * NANO)
    }

    /// Parses a quantity such as `500m`, `1.5`, `2Gi`, `1e3`, `-1`, `.5` or `12E`.
    ///
    /// # Errors
    /// When there is no number, or what follows it is no unit.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let no_number = || QuantityError::NoNumber(text.to_owned());
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.bytes().position(|b| !b.is_ascii_digit() && b != b'.').unwrap_or(unsigned.len());
        let (number, unit) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(no_number());
        }
        let unit = Unit::parse(unit).ok_or_else(|| QuantityError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned() })?;
        let nanos = scale(whole, fraction, unit).min(LARGEST);
        Ok(Self(if negative { -nanos } else { nanos }))
    }

    /// Thousandths of a unit, rounded up: CPU is counted so.
    #[must_use]
    pub fn milli_ceil(self) -> i64 {
        saturate(ceil_div(self.0, NANO / 1000))
    }

    /// Whole units, rounded up: bytes, pods and devices are counted so.
    #[must_use]
    pub fn units_ceil(self) -> i64 {
        saturate(ceil_div(self.0, NANO))
    }

    /// Whether the amount is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }
}

/// What a number is multiplied with: `10^power` or `2^power`.
#[derive(Clone, Copy)]
enum Unit {
    Decimal(i32),
    Binary(u32),
}

impl Unit {
    fn parse(text: &str) -> Option<Self> {
        let unit = match text {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => {
                let exponent = text.strip_prefix(['e', 'E'])?;
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                // Beyond four digits every amount has long become zero or the largest.
                let significant = digits.trim_start_matches('0');
                let size: i32 = if significant.len() > 4 { 9999 } else { significant.parse().unwrap_or(0) };
                Self::Decimal(if exponent.starts_with('-') { -size } else { size })
            }
        };
        Some(unit)
    }
}

/// The digits as nano-units, rounded away from zero, at most [`LARGEST`]. Exact for any number of
/// digits: the part before the point is summed up by Horner's rule, and so is, from its far end,
/// the part behind it, where nested floors equal the floor of the whole and only whether anything
/// was cut off has to be kept.
fn scale(whole: &str, fraction: &str, unit: Unit) -> i128 {
    let (exponent, factor) = match unit {
        Unit::Decimal(exponent) => (exponent, NANO),
        Unit::Binary(bits) => (0, NANO << bits),
    };
    let digits: Vec<i128> = whole.bytes().chain(fraction.bytes()).map(|b| i128::from(b - b'0')).collect();
    if digits.iter().all(|d| *d == 0) {
        return 0;
    }
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(i64::from(exponent));
    let before = usize::try_from(point).unwrap_or(0);
    let zeros_behind = usize::try_from(point.saturating_neg()).unwrap_or(0);

    let padding = std::iter::repeat_n(0, before.saturating_sub(digits.len()));
    let mut units: i128 = 0;
    for digit in digits.iter().copied().take(before).chain(padding) {
        units = (units * 10 + digit).min(LARGEST);
    }
    let (mut behind, mut cut) = (0, false);
    for digit in std::iter::repeat_n(0, zeros_behind).chain(digits.iter().copied().skip(before)).rev() {
        let sum: i128 = behind + digit * factor;
        cut |= sum % 10 != 0;
        behind = sum / 10;
    }
    units.saturating_mul(factor).saturating_add(behind + i128::from(cut))
}

fn ceil_div(amount: i128, by: i128) -> i128 {
    let floor = amount.div_euclid(by);
    if amount.rem_euclid(by) > 0 { floor + 1 } else { floor }
}

fn saturate(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
#[path = "../tests_unit/quantity.rs"]
mod tests;
