//! Times and sizes with their units.

use exequatur_yaml::{FileError, Kind, Node};

/// `500ms`, `10s`, `5m`.
pub(crate) fn milliseconds(node: &Node) -> Result<u32, FileError> {
    with_unit(node, &[("ms", 1), ("s", 1000), ("m", 60_000)], "a time such as `500ms`, `10s` or `5m`")
}

/// `90s`, `15m`, `24h`, `7d`.
pub(crate) fn seconds(node: &Node) -> Result<u32, FileError> {
    with_unit(node, &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)], "a time such as `90s`, `24h` or `7d`")
}

/// `65536`, `64KiB`, `1MiB`.
pub(crate) fn bytes(node: &Node) -> Result<u32, FileError> {
    let wanted = "a size such as `65536`, `64KiB` or `1MiB`";
    if let Kind::Number(text) = &node.kind {
        return text.parse().map_err(|_| node.error(format!("must be {wanted}")));
    }
    with_unit(node, &[("KiB", 1024), ("MiB", 1 << 20)], wanted)
}

fn with_unit(node: &Node, units: &[(&str, u32)], wanted: &str) -> Result<u32, FileError> {
    let wrong = || node.error(format!("must be {wanted}"));
    let Kind::Text(text) = &node.kind else { return Err(wrong()) };
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    number.parse::<u32>().ok().and_then(|n| n.checked_mul(*factor)).ok_or_else(wrong)
}

/// A plain whole number.
pub(crate) fn count(node: &Node) -> Result<u32, FileError> {
    let Kind::Number(text) = &node.kind else { return Err(node.error("must be a whole number")) };
    text.parse().map_err(|_| node.error("must be a whole number"))
}
