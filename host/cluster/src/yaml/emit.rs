//! A tree back into text: block style, two spaces, quotes only where they are needed or were
//! written. Equal trees give equal text.

use super::{Data, Plain, Scalar, Style, Yaml, resolve};

/// The text of a document, ending in a new line.
#[must_use]
pub fn emit(root: &Yaml) -> String {
    let mut out = String::new();
    block(&mut out, root, 0);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes `value` where a line has just begun, indented by `indent` spaces.
fn block(out: &mut String, value: &Yaml, indent: usize) {
    match &value.data {
        Data::Scalar(scalar) => write_scalar(out, scalar, indent),
        Data::Sequence(items) if items.is_empty() => out.push_str("[]\n"),
        Data::Mapping(entries) if entries.is_empty() => out.push_str("{}\n"),
        Data::Sequence(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str("- ");
                block(out, item, indent + 2);
            }
        }
        Data::Mapping(entries) => {
            for (at, entry) in entries.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str(&inline(&entry.key));
                out.push(':');
                after_key(out, &entry.value, indent);
            }
        }
    }
}

fn after_key(out: &mut String, value: &Yaml, indent: usize) {
    let nested = match &value.data {
        Data::Scalar(_) => false,
        Data::Sequence(items) => !items.is_empty(),
        Data::Mapping(entries) => !entries.is_empty(),
    };
    if nested {
        out.push('\n');
        pad(out, indent + 2);
    } else {
        out.push(' ');
    }
    block(out, value, indent + 2);
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(out: &mut String, scalar: &Scalar, indent: usize) {
    let text = scalar.text.as_str();
    match scalar.style {
        Style::Plain if plain_is_safe(text) => out.push_str(text),
        Style::Block if block_is_safe(text) => return write_block(out, text, indent),
        Style::Plain | Style::Quoted | Style::Block => out.push_str(&quoted(text)),
    }
    out.push('\n');
}

/// A key, or a text that stands within a line.
fn inline(text: &str) -> String {
    if plain_is_safe(text) && resolve(text) == Plain::Text { text.to_owned() } else { quoted(text) }
}

/// Whether a plain scalar reads back as the same text in every place.
fn plain_is_safe(text: &str) -> bool {
    let opens = text.starts_with(|c: char| "-?:,[]{}#&*!|>'\"%@`".contains(c)) && resolve(text) == Plain::Text;
    !(opens
        || text == "<<"
        || text.trim() != text
        || text.contains(": ")
        || text.contains(" #")
        || text.ends_with(':')
        || text.starts_with("---")
        || text.starts_with("...")
        || text.contains(|c: char| c.is_control() || c == '\u{feff}' || c == '\u{2028}' || c == '\u{2029}' || c == '\u{85}'))
}

/// Whether a literal block keeps the text: ordinary characters, and a first line with something on it
/// that is not indented (an indented one would set the block's indentation).
fn block_is_safe(text: &str) -> bool {
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
        && !text.contains(|c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{feff}' || c == '\u{2028}' || c == '\u{2029}')
}

fn write_block(out: &mut String, text: &str, indent: usize) {
    out.push_str("|\n");
    for line in text.lines() {
        if !line.is_empty() {
            pad(out, indent.max(2));
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}') => {
                let code = u32::from(c);
                out.push_str(&if code <= 0xff { format!("\\x{code:02x}") } else { format!("\\u{code:04x}") });
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "../../tests_unit/emit.rs"]
mod tests;
