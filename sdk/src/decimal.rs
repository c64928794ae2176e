//! Decimal numbers of a configuration, exact. What must not enter: binary fractions.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A decimal number of a configuration with at most `PLACES` decimals, kept as an integer: `"0.085"` or
/// `0.085`, as text or as number. Money and percentages stay what was written.
///
/// ```
/// use whittle_sdk::{Decimal, serde_json};
/// let percent: Decimal<3> = serde_json::from_str("12.5").unwrap();
/// assert_eq!(percent.units(), 12_500);
/// let error = serde_json::from_str::<Decimal<3>>("\"0.1234\"").unwrap_err();
/// assert!(error.to_string().starts_with("0.1234 has more than 3 decimals"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Decimal<const PLACES: usize>(i64);

/// Dollars; their units are micro-dollars.
///
/// ```
/// use whittle_sdk::{Dollars, serde_json};
/// let price: Dollars = serde_json::from_str("\"0.085\"").unwrap();
/// assert_eq!(price.units(), 85_000);
/// ```
pub type Dollars = Decimal<6>;

impl<const PLACES: usize> Decimal<PLACES> {
    /// From a number of the smallest units.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Dollars::of_units(1_500_000).to_string(), "1.5");
    /// ```
    #[must_use]
    pub const fn of_units(units: i64) -> Self {
        Self(units)
    }

    /// How many of the smallest units it is: of micro-dollars, where it is dollars.
    ///
    /// ```
    /// assert_eq!(whittle_sdk::Dollars::of_units(7).units(), 7);
    /// ```
    #[must_use]
    pub const fn units(self) -> i64 {
        self.0
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return Err(format!("{text:?} is no decimal number: write it like \"0.085\""));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > PLACES {
            return Err(format!("{text} has more than {PLACES} decimals"));
        }
        let units = format!("{whole}{fraction:0<PLACES$}").parse::<i64>().map_err(|_| format!("{text} is too large"))?;
        Ok(Self(if negative { -units } else { units }))
    }
}

impl<const PLACES: usize> fmt::Display for Decimal<PLACES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>width$}", self.0.unsigned_abs(), width = PLACES + 1);
        let (whole, fraction) = digits.split_at(digits.len() - PLACES);
        let fraction = fraction.trim_end_matches('0');
        let (sign, point) = (if self.0 < 0 { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

struct Reader<const PLACES: usize>;

impl<const PLACES: usize> Visitor<'_> for Reader<PLACES> {
    type Value = Decimal<PLACES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal number, as text or number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Decimal::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }

    // The shortest text that reads back as the same double is what was written.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }
}

impl<'de, const PLACES: usize> Deserialize<'de> for Decimal<PLACES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

impl<const PLACES: usize> JsonSchema for Decimal<PLACES> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("Decimal{PLACES}"))
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(json: &str) -> Result<i64, String> {
        serde_json::from_str::<Dollars>(json).map(Dollars::units).map_err(|error| error.to_string())
    }

    #[test]
    fn text_and_numbers_mean_the_same_to_the_last_unit() {
        for (text, units) in [("0.1", 100_000), ("0.000001", 1), ("12", 12_000_000), ("-3.25", -3_250_000), ("0.10", 100_000)] {
            assert_eq!(dollars(text), Ok(units));
            assert_eq!(dollars(&format!("\"{text}\"")), Ok(units));
        }
        for micros in (0..3_000_000).step_by(7) {
            let written = Dollars::of_units(micros).to_string();
            assert_eq!(dollars(&written), Ok(micros), "{written}");
        }
        assert_eq!(Dollars::of_units(-1).to_string(), "-0.000001");
    }

    #[test]
    fn what_is_no_decimal_number_is_refused() {
        for text in
            ["\"\"", "\".5\"", "\"1.\"", "\"1e3\"", "\"$1\"", "\"--1\"", "0.0000001", "1e300", "true", "\"9999999999999\"", "\"1_0\""]
        {
            assert!(dollars(text).is_err(), "{text}");
        }
    }
}
