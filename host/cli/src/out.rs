//! How answers look: colours, tables, money, amounts and time. Nothing is decided here, and nothing
//! knows what is shown.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use whittle_model::{Micros, Timestamp};

/// Headings.
pub const HEAD: Style = Style::new().bold();
/// Side remarks.
pub const FAINT: Style = Style::new().dimmed();
/// What went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What needs a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// `text` in a style. The stream it is written to takes the style out where it does not belong.
#[must_use]
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The widest a line should be.
pub const WIDTH: usize = 120;

/// `text` in lines of at most [`WIDTH`], broken at blanks; the first is indented by `first`, the
/// others by `rest`.
#[must_use]
pub fn wrapped(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![" ".repeat(first)];
    let mut begun = false;
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line, and lines are only added");
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{}{word}", " ".repeat(rest)));
        } else {
            if begun {
                line.push(' ');
            }
            line.push_str(word);
        }
        begun = true;
    }
    lines
}

/// The side a column leans on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// How wide a table of these would be.
#[must_use]
pub fn table_width(columns: &[(&str, Side)], rows: &[Vec<String>]) -> usize {
    let widest = |at: usize, name: &str| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0).max(name.len());
    columns.iter().enumerate().map(|(at, (name, _))| widest(at, name) + 2).sum()
}

/// Writes rows under a heading, without frame, each line indented by two and without blanks at its
/// end.
///
/// # Errors
/// When it cannot be written.
pub fn table(out: &mut dyn Write, columns: &[(&str, Side)], rows: &[Vec<String>]) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|(name, _)| *name));
    for row in rows {
        table.add_row(row);
    }
    for (column, (_, side)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match side {
            Side::Left => CellAlignment::Left,
            Side::Right => CellAlignment::Right,
        });
    }
    for (number, line) in table.lines().enumerate() {
        let line = line.trim_end();
        match number {
            0 => writeln!(out, "  {}", styled(HEAD, line))?,
            _ => writeln!(out, "  {line}")?,
        }
    }
    Ok(())
}

/// A price as a column shows it: `$0.0850`, with `~` when it is another region's.
#[must_use]
pub fn price(price: Micros, borrowed: bool) -> String {
    if borrowed { format!("~{price}") } else { price.to_string() }
}

/// Since the story began: `0m01s`, `12m30s`, `1h02m03s`.
#[must_use]
pub fn clock(at: Timestamp) -> String {
    let seconds = at.0.max(0) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}h{minutes:02}m{seconds:02}s") } else { format!("{minutes}m{seconds:02}s") }
}

/// `part` of `whole` in percent, rounded half up; `-` of nothing.
#[must_use]
pub fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "-".to_owned();
    }
    let rounded = (i128::from(part) * 200 + i128::from(whole)).div_euclid(i128::from(whole) * 2);
    format!("{rounded} %")
}

/// How much `amount` lies above (`+`) or below (`-`) `base`, in percent with one decimal.
#[must_use]
pub fn against(amount: i64, base: i64) -> String {
    if base <= 0 {
        return "-".to_owned();
    }
    let difference = i128::from(amount) - i128::from(base);
    let tenths = (difference.abs() * 2000 + i128::from(base)) / (i128::from(base) * 2);
    let sign = if tenths == 0 {
        ""
    } else if difference < 0 {
        "-"
    } else {
        "+"
    };
    format!("{sign}{}.{} %", tenths / 10, tenths % 10)
}

/// Bytes in the largest unit that leaves at most one decimal of them unsaid: `7.1Gi`, `512Mi`.
#[must_use]
pub fn bytes(amount: i64) -> String {
    for (unit, suffix) in [(1i64 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")] {
        if amount >= unit {
            // Rounded down: a table must not promise room that is not there.
            let tenths = i128::from(amount) * 10 / i128::from(unit);
            return if tenths % 10 == 0 { format!("{}{suffix}", tenths / 10) } else { format!("{}.{}{suffix}", tenths / 10, tenths % 10) };
        }
    }
    amount.to_string()
}

/// `1 pod`, `2 pods`.
#[must_use]
pub fn count(number: usize, one: &str) -> String {
    match (number, one) {
        (1, _) => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(clock(Timestamp(1_400)), "0m01s");
        assert_eq!(clock(Timestamp(3_723_000)), "1h02m03s");
        assert_eq!([percent(1, 2), percent(2, 3), percent(0, 0)], ["50 %", "67 %", "-"]);
        assert_eq!([against(110, 100), against(900, 1000), against(5, 5)], ["+10.0 %", "-10.0 %", "0.0 %"]);
        assert_eq!([bytes(512 << 20), bytes((1 << 30) + (1 << 29)), bytes(100)], ["512Mi", "1.5Gi", "100"]);
        assert_eq!([count(1, "pod"), count(3, "pod")], ["1 pod", "3 pods"]);
        assert_eq!(price(Micros(85_000), true), "~$0.0850");
    }

    #[test]
    fn long_lines_break_at_blanks() {
        let text = format!("{} {} c", "a".repeat(70), "b".repeat(60));
        assert_eq!(wrapped(&text, 2, 4), [format!("  {}", "a".repeat(70)), format!("    {} c", "b".repeat(60))]);
        assert_eq!(wrapped("a  b", 0, 0), ["a  b"]);
    }

    #[test]
    fn tables_lean_and_end_without_blanks() {
        let mut out = Vec::new();
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "100".to_owned()]];
        table(&mut out, &[("NAME", Side::Left), ("N", Side::Right)], &rows).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert_eq!(plain, "  NAME    N\n  a       1\n  long  100\n");
    }
}
