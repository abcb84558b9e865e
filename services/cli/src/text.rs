//! Text for people: tables and labelled values in which everything from outside is escaped.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Escapes text from outside for a terminal.
pub(crate) fn escape(text: &str) -> String {
    exequatur_canonical::display::escape(text)
}

/// Escapes each line of a text that may have several.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// Rows under headings, each column as wide as its widest cell.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; every cell is escaped.
    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| escape(cell.as_ref())).collect());
    }

    /// The text.
    pub(crate) fn render(&self, empty: &str) -> String {
        if self.rows.is_empty() {
            return empty.to_owned();
        }
        let mut widths: Vec<usize> = self.headings.iter().map(|h| h.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let headings: Vec<String> = self.headings.iter().map(|h| (*h).to_uppercase()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                line.push_str(cell);
                let missing = width.saturating_sub(cell.chars().count()).saturating_add(2);
                line.extend(std::iter::repeat_n(' ', missing));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// `label  value` lines; every value is escaped.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, value) in pairs {
        let missing = width.saturating_sub(label.chars().count()).saturating_add(2);
        text.push_str(label);
        text.extend(std::iter::repeat_n(' ', missing));
        text.push_str(&escape(value));
        text.push('\n');
    }
    text
}

/// RFC 3339 in UTC.
pub(crate) fn instant(at: Option<&prost_types::Timestamp>) -> Option<String> {
    let at = at?;
    let nanos = i128::from(at.seconds).saturating_mul(1_000_000_000).saturating_add(i128::from(at.nanos));
    OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?.format(&Rfc3339).ok()
}

/// `30s`, `15m`, `24h`, `30d`, or plain seconds.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.strip_suffix(unit).unwrap_or_default();
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(format!("`{text}` is no duration: write 30s, 15m, 24h or 30d")),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    let seconds = seconds.filter(|s| *s <= 366 * 86_400 * 100);
    seconds
        .map(std::time::Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is no duration: write 30s, 15m, 24h or 30d"))
}

/// The word of an enum value: its name without the type's prefix.
pub(crate) fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("90").unwrap().as_secs(), 90);
        assert_eq!(duration("15m").unwrap().as_secs(), 900);
        assert_eq!(duration("30d").unwrap().as_secs(), 2_592_000);
        for wrong in ["", "m", "-1s", "1 h", "1w", "1.5h", "99999999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tables_escape_what_is_put_in() {
        let mut table = Table::new(&["a", "b"]);
        table.row(["x\u{1b}[2J", "y"]);
        let text = table.render("");
        assert!(!text.contains('\u{1b}'));
        assert!(text.starts_with("A "));
    }
}
