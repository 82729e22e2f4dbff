//! What people read: tables, ages, nothing that could steer their terminal.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;

use super::exit::Failure;

/// Widest cell that is printed whole.
const WIDEST: usize = 60;

/// Writes to stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::Unheard,
            _ => Failure::Local(format!("stdout: {error}")),
        })
}

/// Adds a character, escaped if it is a control character.
pub fn push_safe(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        control if control.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(control))),
        other => out.push(other),
    }
}

/// A text without control characters.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    text.chars()
        .for_each(|character| push_safe(&mut out, character));
    Cow::Owned(out)
}

/// A value in a cell: a string without its quotes, all else as JSON, on one line.
pub fn cell(value: &RawValue) -> String {
    let json = value.get();
    let text = serde_json::from_str::<String>(json).map_or(Cow::Borrowed(json), Cow::Owned);
    shorten(&safe(&text))
}

/// A text cut to what a cell holds.
pub fn shorten(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}

/// Rows under a heading, columns as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings.
    pub fn new(heading: &[&str]) -> Self {
        Self {
            rows: vec![heading.iter().map(|name| (*name).to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows
            .push(cells.iter().map(|cell| safe(cell).into_owned()).collect());
    }

    /// The text; the heading bold on a terminal.
    pub fn text(&self) -> String {
        self.draw(colour())
    }

    fn draw(&self, colour: bool) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            let line = line.trim_end();
            if index == 0 && colour {
                out.push_str(&format!("\u{1b}[1m{line}\u{1b}[0m\n"));
            } else {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }
}

/// Colour on a terminal only, and not where it is unwanted.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A time of the wire as people say it: "3 min ago", "in 40 s".
pub fn when(time: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    seconds(time).map_or_else(|| safe(time).into_owned(), |then| relative(then - now))
}

/// The same, of a time that may be missing.
pub fn when_some(time: Option<&str>) -> String {
    time.map(when).unwrap_or_default()
}

fn relative(distance: i64) -> String {
    let length = distance.unsigned_abs();
    let text = match length {
        0..=90 => format!("{length} s"),
        91..=5_400 => format!("{} min", (length + 30) / 60),
        5_401..=129_600 => format!("{} h", (length + 1_800) / 3_600),
        _ => format!("{} days", (length + 43_200) / 86_400),
    };
    match distance {
        0 => "just now".to_owned(),
        1.. => format!("in {text}"),
        _ => format!("{text} ago"),
    }
}

/// Seconds since 1970 of `2026-11-29T14:40:12.123456+00:00`, which is UTC on the wire.
fn seconds(time: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        time.get(range)
            .and_then(|digits| digits.parse::<i64>().ok())
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !time.ends_with("+00:00") && !time.ends_with('Z') {
        return None;
    }
    // Days from civil, with the year beginning in March so that the leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100
        + day_of_year
        - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (time, wanted) in [
            ("1970-01-01T00:00:00+00:00", 0),
            ("2000-02-29T23:59:59.5+00:00", 951_868_799),
            ("2026-11-29T14:40:12.123456+00:00", 1_795_963_212),
            ("2024-03-01T00:00:00Z", 1_709_251_200),
        ] {
            assert_eq!(seconds(time), Some(wanted), "{time}");
        }
        for bad in ["", "now", "2026-11-29", "2026-11-29T14:40:12+02:00"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        for (distance, wanted) in [
            (0, "just now"),
            (-1, "1 s ago"),
            (-180, "3 min ago"),
            (40, "in 40 s"),
            (-7_200, "2 h ago"),
            (-400_000, "5 days ago"),
        ] {
            assert_eq!(relative(distance), wanted);
        }
    }

    #[test]
    fn tables() {
        let mut table = Table::new(&["FIELD", "V"]);
        table.row(vec!["a\u{1b}[2J".to_owned(), "1".to_owned()]);
        table.row(vec!["b".to_owned(), String::new()]);
        assert_eq!(table.draw(false), "FIELD       V\na\\u001b[2J  1\nb\n");
        assert!(table.draw(true).starts_with("\u{1b}[1mFIELD"));
    }
}
