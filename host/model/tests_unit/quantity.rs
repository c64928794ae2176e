//! Quantities against an oracle that shares nothing with the parser: schoolbook arithmetic on
//! decimal digits of any length.

use proptest::prelude::*;

use super::*;

/// A non-negative integer, least significant decimal digit first, without leading zeros.
type Digits = Vec<u8>;

fn trimmed(mut digits: Digits) -> Digits {
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits
}

fn times(number: &[u8], by: u64) -> Digits {
    let (mut product, mut carry) = (Vec::new(), 0u128);
    for digit in number {
        let sum = u128::from(*digit) * u128::from(by) + carry;
        product.push(u8::try_from(sum % 10).unwrap());
        carry = sum / 10;
    }
    while carry > 0 {
        product.push(u8::try_from(carry % 10).unwrap());
        carry /= 10;
    }
    trimmed(product)
}

fn plus_one(number: &[u8]) -> Digits {
    let mut sum = number.to_vec();
    for place in 0.. {
        match sum.get_mut(place) {
            Some(9) => sum[place] = 0,
            Some(digit) => {
                *digit += 1;
                break;
            }
            None => {
                sum.push(1);
                break;
            }
        }
    }
    sum
}

/// What `digits x 10^power x multiplier` is in nano-units, rounded up and capped, the slow way.
fn oracle(number: &str, multiplier: u64, exponent: i64) -> i128 {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: Digits = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').rev().collect();
    let mut product = times(&trimmed(digits), multiplier);
    let power = exponent + 9 - i64::try_from(fraction.len()).unwrap();
    if product.is_empty() {
        return 0;
    }
    if power >= 0 {
        let zeros = usize::try_from(power.min(60)).unwrap();
        product.splice(0..0, std::iter::repeat_n(0, zeros));
    } else {
        let cut = usize::try_from(-power).unwrap().min(product.len());
        let rest: Digits = product.drain(..cut).collect();
        if rest.iter().any(|d| *d != 0) {
            product = plus_one(&product);
        }
    }
    let product = trimmed(product);
    if product.len() > 30 {
        return LARGEST;
    }
    product.iter().rev().fold(0i128, |n, d| n * 10 + i128::from(*d)).min(LARGEST)
}

/// Every unit with its multiplier and its power of ten.
const UNITS: [(&str, u64, i64); 16] = [
    ("n", 1, -9),
    ("u", 1, -6),
    ("m", 1, -3),
    ("", 1, 0),
    ("k", 1, 3),
    ("M", 1, 6),
    ("G", 1, 9),
    ("T", 1, 12),
    ("P", 1, 15),
    ("E", 1, 18),
    ("Ki", 1 << 10, 0),
    ("Mi", 1 << 20, 0),
    ("Gi", 1 << 30, 0),
    ("Ti", 1 << 40, 0),
    ("Pi", 1 << 50, 0),
    ("Ei", 1 << 60, 0),
];

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[0-9]{1,4}(\\.[0-9]{0,4})?",
        2 => "0{0,12}[0-9]{0,30}\\.0{0,30}[0-9]{1,40}",
        1 => "[0-9]{1,60}\\.?",
        1 => "\\.[0-9]{1,3}",
        1 => "9{1,25}\\.9{1,45}",
    ]
}

fn sign() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just("+"), 1 => Just("-")]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_unit_equals_the_oracle(sign in sign(), number in number(), unit in 0..UNITS.len()) {
        let (suffix, multiplier, exponent) = UNITS[unit];
        let amount = oracle(&number, multiplier, exponent);
        let wanted = if sign == "-" { -amount } else { amount };
        prop_assert_eq!(Quantity::parse(&format!("{sign}{number}{suffix}")), Ok(Quantity(wanted)));
    }

    #[test]
    fn every_exponent_equals_the_oracle(number in number(), letter in "[eE]", plus in "\\+?", exponent in -60i64..60) {
        let plus = if exponent < 0 { String::new() } else { plus };
        let text = format!("{number}{letter}{plus}{exponent}");
        prop_assert_eq!(Quantity::parse(&text), Ok(Quantity(oracle(&number, 1, exponent))), "{}", text);
    }

    #[test]
    fn order_is_that_of_the_amounts(a in number(), b in number(), left in 0..UNITS.len(), right in 0..UNITS.len()) {
        let ((a_unit, a_by, a_power), (b_unit, b_by, b_power)) = (UNITS[left], UNITS[right]);
        let (x, y) = (Quantity::parse(&format!("{a}{a_unit}")).unwrap(), Quantity::parse(&format!("{b}{b_unit}")).unwrap());
        prop_assert_eq!(x.cmp(&y), oracle(&a, a_by, a_power).cmp(&oracle(&b, b_by, b_power)));
    }

    #[test]
    fn counting_rounds_up_and_never_past_one(number in "[0-9]{1,9}(\\.[0-9]{1,12})?", unit in 0..UNITS.len()) {
        let quantity = Quantity::parse(&format!("{number}{}", UNITS[unit].0)).unwrap();
        for (counted, size) in [(quantity.milli_ceil(), NANO / 1000), (quantity.units_ceil(), NANO)] {
            let counted = i128::from(counted);
            let fits = counted * size >= quantity.0 && (counted - 1) * size < quantity.0;
            prop_assert!(fits || counted == i128::from(i64::MAX), "{quantity:?} {counted}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_or_is_in_the_grammar(text in "[-+.0-9eEikKmMGnux ]{0,6}") {
        prop_assert_eq!(Quantity::parse(&text).is_ok(), in_grammar(&text), "{}", text);
    }

    #[test]
    fn serialization_keeps_the_amount(number in number(), unit in 0..UNITS.len()) {
        let quantity = Quantity::parse(&format!("{number}{}", UNITS[unit].0)).unwrap();
        let json = serde_json::to_string(&quantity).unwrap();
        prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity, "{}", json);
    }
}

/// The documented grammar, read character by character.
fn in_grammar(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number: String = unsigned.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let suffix = &unsigned[number.len()..];
    let digits = number.chars().filter(char::is_ascii_digit).count();
    let points = number.len() - digits;
    let exponent = suffix.strip_prefix(['e', 'E']).map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    let is_exponent = exponent.is_some_and(|e| !e.is_empty() && e.chars().all(|c| c.is_ascii_digit()));
    digits > 0 && points <= 1 && (is_exponent || UNITS.iter().any(|(unit, ..)| *unit == suffix))
}

#[test]
fn equal_amounts_are_equal() {
    for (left, right) in [
        ("1", "1000m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.", "1"),
        ("+1", "1"),
        ("1e3", "1k"),
        ("1E3", "1000"),
        ("1e-3", "1m"),
        ("1E-3", "1000u"),
        ("1E", "1e18"),
        ("1Ki", "1024"),
        ("1.5Gi", "1536Mi"),
        ("0.0009765625Ki", "1"),
        ("1Ei", "1152921504606846976"),
        ("-0", "0"),
        ("0Ei", "0n"),
        ("00012", "12"),
        ("1e0000000003", "1k"),
        ("0e999999", "0"),
    ] {
        assert_eq!(Quantity::parse(left), Quantity::parse(right), "{left} and {right}");
        assert!(Quantity::parse(left).is_ok(), "{left}");
    }
}

#[test]
fn amounts_finer_than_the_unit_round_up() {
    for (text, milli, units) in [
        ("1m", 1, 1),
        ("0.1m", 1, 1),
        ("1n", 1, 1),
        ("1e-30", 1, 1),
        ("100.5m", 101, 1),
        ("1500m", 1500, 2),
        ("128974848000m", 128_974_848_000, 128_974_848),
        ("128974848001m", 128_974_848_001, 128_974_849),
        ("0", 0, 0),
        ("-1500m", -1500, -1),
    ] {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!((quantity.milli_ceil(), quantity.units_ceil()), (milli, units), "{text}");
    }
}

#[test]
fn amounts_beyond_the_largest_stay_there() {
    for text in
        ["9223372036854775807", "9223372036854775808", "8Ei", "10E", "1e19", "1e400", "1e99999999999", "123456789012345678901234567890Ei"]
    {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity, Quantity::units(i64::MAX), "{text}");
        assert_eq!(Quantity::parse(&format!("-{text}")).unwrap(), Quantity(-LARGEST), "-{text}");
        assert_eq!((quantity.units_ceil(), quantity.milli_ceil()), (i64::MAX, i64::MAX), "{text}");
    }
    assert!(Quantity::parse("9223372036854775806").unwrap() < Quantity::units(i64::MAX));
}

#[test]
fn what_is_no_quantity_says_why() {
    for text in ["", " ", "+", "-", ".", "e3", "Ki", "m", "1.1.1", "--1", "+-1", " 1"] {
        assert_eq!(Quantity::parse(text), Err(QuantityError::NoNumber(text.to_owned())), "{text:?}");
    }
    for (text, unit) in [
        ("1 ", " "),
        ("1 Gi", " Gi"),
        ("1gi", "gi"),
        ("1K", "K"),
        ("1ki", "ki"),
        ("1Gib", "Gib"),
        ("1e", "e"),
        ("1e+", "e+"),
        ("1e1.5", "e1.5"),
        ("1e3Ki", "e3Ki"),
        ("1i", "i"),
        ("5mm", "mm"),
        ("2µ", "µ"),
        ("1,5", ",5"),
    ] {
        let wanted = Err(QuantityError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned() });
        assert_eq!(Quantity::parse(text), wanted, "{text:?}");
    }
    assert!(!Quantity::parse("0").unwrap().is_negative());
    assert!(Quantity::parse("-1n").unwrap().is_negative());
}
