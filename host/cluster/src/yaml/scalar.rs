//! What a plain scalar means, as `kubectl` reads it: YAML 1.1 booleans, decimal, octal and
//! hexadecimal integers, floats, null. Timestamps stay text.

/// The meaning of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plain {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or exponent, or beyond 64 bits.
    Float(f64),
    /// Anything else.
    Text,
}

/// The meaning of `text` written without quotes.
#[must_use]
pub fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => return Plain::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => return Plain::Bool(false),
        _ => {}
    }
    match text.as_bytes() {
        [b'+' | b'-' | b'.', b'0'..=b'9' | b'.', ..] | [b'0'..=b'9', ..] => number(text),
        _ => Plain::Text,
    }
}

fn number(text: &str) -> Plain {
    let (sign, digits) = match text.as_bytes()[0] {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let based =
        [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, base)| digits.strip_prefix(prefix).map(|rest| (rest, base)));
    let (body, base) = match based {
        Some(found) => found,
        // A leading zero makes an octal number in YAML 1.1.
        None if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| (b'0'..=b'7').contains(&b)) => (&digits[1..], 8),
        None => (digits, 10),
    };
    if !body.starts_with(['+', '-'])
        && let Ok(whole) = i64::from_str_radix(&format!("{sign}{body}"), base)
    {
        return Plain::Int(whole);
    }
    // Rust's float grammar also takes words such as `inf`, which the first byte has ruled out.
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    match format!("{sign}{digits}").parse() {
        Ok(float) if plain => Plain::Float(float),
        _ => Plain::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_kubectl_reads() {
        for (text, meaning) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("yes", Plain::Bool(true)),
            ("Off", Plain::Bool(false)),
            ("5", Plain::Int(5)),
            ("-5", Plain::Int(-5)),
            ("+5", Plain::Int(5)),
            ("0x1F", Plain::Int(31)),
            ("010", Plain::Int(8)),
            ("08", Plain::Int(8)),
            ("0", Plain::Int(0)),
            ("0.5", Plain::Float(0.5)),
            (".5", Plain::Float(0.5)),
            ("1e3", Plain::Float(1000.0)),
            ("99999999999999999999", Plain::Float(1e20)),
            ("100m", Plain::Text),
            ("10%", Plain::Text),
            ("1.2.3", Plain::Text),
            ("2024-01-01", Plain::Text),
            ("inf", Plain::Text),
            ("-", Plain::Text),
            ("0x-1", Plain::Text),
            ("default", Plain::Text),
        ] {
            assert_eq!(resolve(text), meaning, "{text}");
        }
    }
}
