//! Durations as Go writes them: `1h15m30.918s`, `300ms`, `-1.5h`, `0`.
//! Grammar: <https://pkg.go.dev/time#ParseDuration>.
//!
//! What must not enter: other spellings of time.

/// Nanoseconds; `None` when the text is no duration or too long for Go.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    loop {
        let (nanos, left) = part(rest)?;
        total = total.checked_add(nanos)?;
        rest = left;
        if rest.is_empty() {
            break;
        }
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// One number with its unit, and what follows it.
fn part(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(end);
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let nanos: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    // Digits beyond the fifteenth are less than a nanosecond of any unit.
    let fraction = fraction.get(..15).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let amount = digits(whole)?.checked_mul(nanos)?.checked_add(digits(fraction)? * nanos / scale)?;
    Some((amount, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("30s", Some(30_000_000_000)),
            ("1h15m30.918s", Some(4_530_918_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("-2m", Some(-120_000_000_000)),
            ("+5ms", Some(5_000_000)),
            ("1us", Some(1_000)),
            ("1µs", Some(1_000)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("", None),
            ("30", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("3 s", None),
            ("1d", None),
            ("-", None),
        ] {
            assert_eq!(parse(text), nanos, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+]?([0-9.µhmsnu]|\\PC){0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn nanoseconds_read_as_what_they_are(nanos: i64) {
            proptest::prop_assert_eq!(parse(&format!("{nanos}ns")), Some(nanos));
        }
    }
}
