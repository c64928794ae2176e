//! Runs checked formulas on the cells of a row, as CEL defines its operators: integers do not wrap, and
//! `&&` and `||` do not care for a fault on one side when the other side decides. What must not enter:
//! types that do not fit; they were refused when the policy was configured.

use std::cmp::Ordering;

use whittle_sdk::Reason;

use crate::columns::Sheet;
use crate::typed::{Ask, Bool, Double, Int, Number, Order, Sum, Text};

/// A division by zero, or a number too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault;

/// The value of a formula, or that there is none.
pub(crate) type Value<T> = Result<T, Fault>;

/// What a fault is told as.
pub(crate) trait Outcome<T> {
    /// The value, or this reason.
    fn or_reason(self, reason: Reason) -> Result<T, Reason>;
}

impl<T> Outcome<T> for Value<T> {
    fn or_reason(self, reason: Reason) -> Result<T, Reason> {
        self.map_err(|Fault| reason)
    }
}

impl Order {
    /// What is not a number is equal to nothing, and neither less nor greater than anything: a fault, as in the
    /// interpreter of the `cel` crate.
    fn holds<T: PartialOrd>(self, left: &T, right: &T) -> Value<bool> {
        let order = left.partial_cmp(right);
        match self {
            Self::Equal => Ok(order == Some(Ordering::Equal)),
            Self::NotEqual => Ok(order != Some(Ordering::Equal)),
            Self::Less => order.map(Ordering::is_lt).ok_or(Fault),
            Self::LessEqual => order.map(Ordering::is_le).ok_or(Fault),
            Self::Greater => order.map(Ordering::is_gt).ok_or(Fault),
            Self::GreaterEqual => order.map(Ordering::is_ge).ok_or(Fault),
        }
    }
}

impl Int {
    pub(crate) fn run(&self, sheet: &Sheet<'_>, row: usize) -> Value<i64> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Column(place) => Ok(sheet.int(*place, row)),
            Self::Negative(value) => value.run(sheet, row)?.checked_neg().ok_or(Fault),
            Self::Sum(sum, left, right) => {
                let (left, right) = (left.run(sheet, row)?, right.run(sheet, row)?);
                let value = match sum {
                    Sum::Add => left.checked_add(right),
                    Sum::Subtract => left.checked_sub(right),
                    Sum::Multiply => left.checked_mul(right),
                    Sum::Divide => left.checked_div(right),
                    Sum::Modulo => left.checked_rem(right),
                };
                value.ok_or(Fault)
            }
            Self::Of(double) => truncated(double.run(sheet, row)?),
            Self::If(when, yes, no) => if when.run(sheet, row)? { yes } else { no }.run(sheet, row),
        }
    }
}

/// 2^63, the first double that is no integer of ours.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// A double without its fraction, when that is an integer of 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "what does not fit is a fault")]
fn truncated(value: f64) -> Value<i64> {
    if value > -TOO_LARGE && value < TOO_LARGE { Ok(value as i64) } else { Err(Fault) }
}

impl Double {
    #[expect(clippy::cast_precision_loss, reason = "CEL's double(int) rounds as this cast does")]
    pub(crate) fn run(&self, sheet: &Sheet<'_>, row: usize) -> Value<f64> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Negative(value) => Ok(-value.run(sheet, row)?),
            Self::Sum(sum, left, right) => {
                let (left, right) = (left.run(sheet, row)?, right.run(sheet, row)?);
                match sum {
                    Sum::Add => Ok(left + right),
                    Sum::Subtract => Ok(left - right),
                    Sum::Multiply => Ok(left * right),
                    Sum::Divide => Ok(left / right),
                    Sum::Modulo => Err(Fault),
                }
            }
            Self::Of(int) => Ok(int.run(sheet, row)? as f64),
            Self::If(when, yes, no) => if when.run(sheet, row)? { yes } else { no }.run(sheet, row),
        }
    }
}

impl Text {
    pub(crate) fn run<'a>(&'a self, sheet: &Sheet<'a>, row: usize) -> Value<&'a str> {
        match self {
            Self::Literal(text) => Ok(text),
            Self::Column(place) => Ok(sheet.text(*place, row)),
            Self::If(when, yes, no) => if when.run(sheet, row)? { yes } else { no }.run(sheet, row),
        }
    }
}

impl Bool {
    pub(crate) fn run(&self, sheet: &Sheet<'_>, row: usize) -> Value<bool> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Column(place) => Ok(sheet.int(*place, row) != 0),
            Self::Not(value) => Ok(!value.run(sheet, row)?),
            Self::And(left, right) => decided(left, right, false, sheet, row),
            Self::Or(left, right) => decided(left, right, true, sheet, row),
            Self::If(when, yes, no) => if when.run(sheet, row)? { yes } else { no }.run(sheet, row),
            Self::Bools(order, left, right) => order.holds(&left.run(sheet, row)?, &right.run(sheet, row)?),
            Self::Ints(order, left, right) => order.holds(&left.run(sheet, row)?, &right.run(sheet, row)?),
            Self::Doubles(order, left, right) => order.holds(&left.run(sheet, row)?, &right.run(sheet, row)?),
            Self::Texts(order, left, right) => order.holds(&left.run(sheet, row)?, &right.run(sheet, row)?),
            Self::IntIn(value, list) => {
                let value = value.run(sheet, row)?;
                list.iter().map(|item| item.run(sheet, row)).collect::<Value<Vec<_>>>().map(|list| list.contains(&value))
            }
            Self::TextIn(value, list) => {
                let value = value.run(sheet, row)?;
                list.iter().map(|item| item.run(sheet, row)).collect::<Value<Vec<_>>>().map(|list| list.contains(&value))
            }
            Self::Ask(ask, text, part) => {
                let (text, part) = (text.run(sheet, row)?, part.run(sheet, row)?);
                Ok(match ask {
                    Ask::Contains => text.contains(part),
                    Ask::StartsWith => text.starts_with(part),
                    Ask::EndsWith => text.ends_with(part),
                })
            }
        }
    }
}

/// `&&`, which false decides, and `||`, which true does.
fn decided(left: &Bool, right: &Bool, decides: bool, sheet: &Sheet<'_>, row: usize) -> Value<bool> {
    match left.run(sheet, row) {
        Ok(value) if value == decides => Ok(decides),
        Ok(_) => right.run(sheet, row),
        Err(fault) => match right.run(sheet, row) {
            Ok(value) if value == decides => Ok(decides),
            Ok(_) | Err(_) => Err(fault),
        },
    }
}

impl Number {
    /// Micro-dollars; a double is rounded to the nearest.
    pub(crate) fn micros(&self, sheet: &Sheet<'_>, row: usize) -> Value<i64> {
        match self {
            Self::Int(int) => int.run(sheet, row),
            Self::Double(double) => {
                let value = double.run(sheet, row)?;
                truncated(if value < 0.0 { value - 0.5 } else { value + 0.5 })
            }
        }
    }
}
