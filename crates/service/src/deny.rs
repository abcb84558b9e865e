//! Text from outside on its way into a log line: short, and without anything that a terminal obeys.

/// At most 120 characters, others than printable ASCII as `?`.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(120).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}
