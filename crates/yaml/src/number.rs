//! The form of numbers and of JSON text. Knows no file.

use std::fmt::Write as _;

use crate::{Kind, Node};

/// What a plain scalar's text is taken for.
pub(crate) enum Looks {
    Json,
    /// A number to some YAML readers and text to others.
    Unclear,
    Text,
}

/// Sorts plain text into JSON numbers, text, and what only YAML calls a number.
pub(crate) fn looks_like(text: &str) -> Looks {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Looks::Unclear;
    }
    if let Some(rest) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0o")) {
        let all = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit());
        return if all { Looks::Unclear } else { Looks::Text };
    }
    if unsigned.contains('_') && unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        return if unsigned.starts_with('_') { Looks::Text } else { Looks::Unclear };
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_digits = exponent.map(|e| e.strip_prefix(['-', '+']).unwrap_or(e));
    let number = digits(whole)
        && fraction.is_none_or(digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty))
        && exponent_digits.is_none_or(|e| digits(e) && !e.is_empty());
    if !number {
        return Looks::Text;
    }
    let json = !text.starts_with('+')
        && (whole == "0" || !(whole.is_empty() || whole.starts_with('0')))
        && fraction.is_none_or(|f| !f.is_empty());
    if json { Looks::Json } else { Looks::Unclear }
}

/// Writes a node as JSON, members sorted by name.
pub(crate) fn write_json(node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Null => out.push_str("null"),
        Kind::Bool(true) => out.push_str("true"),
        Kind::Bool(false) => out.push_str("false"),
        Kind::Number(text) => out.push_str(text),
        Kind::Text(text) => write_text(text, out),
        Kind::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Kind::Map(entries) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|a, b| a.1.cmp(&b.1));
            out.push('{');
            for (at, (_, name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
