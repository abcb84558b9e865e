//! What a person sees (specification section 6): a pure, injective function of canonical bytes.
//!
//! A real line break in the text is always the renderer's own. Inside a string it follows a shown
//! `\u{a}` and the next line starts with `| `, as no other line does; so nothing that was sent
//! can look like a line of the renderer.

use crate::action::FrozenAction;
use crate::plan::{FrozenPlan, Timestamp};
use crate::value::{Object, Value};

pub use crate::escape::{escape, is_hidden};
pub use crate::warning::{
    MAX_PLACE, MAX_WARNINGS, Warning, WarningCode, warnings_for_action, warnings_for_plan, warnings_for_text,
};

/// Bytes of text that a plan may need to be shown whole; beyond, nobody can approve it.
pub const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The display text of an action.
#[must_use]
pub fn action_text(frozen: &FrozenAction) -> String {
    let action = frozen.action();
    let mut out = String::new();
    line(&mut out, "tool", &quoted(&action.tool, LABEL));
    line(&mut out, "definition", &action.tool_digest.map_or_else(|| "none".to_owned(), |d| d.to_string()));
    line(&mut out, "rationale", &quoted(&action.rationale, LABEL));
    out.push_str("arguments   ");
    object(&mut out, &action.arguments, 0);
    out.push('\n');
    out
}

/// The display text of a plan header.
#[must_use]
pub fn plan_text(frozen: &FrozenPlan) -> String {
    let header = frozen.header();
    let mut out = String::new();
    for (name, value) in [
        ("realm", &header.realm),
        ("tenant", &header.tenant),
        ("plan", &header.plan),
        ("run", &header.run),
        ("agent", &header.agent),
        ("owner", &header.owner),
        ("context", &header.context),
    ] {
        line(&mut out, name, &quoted(value, LABEL));
    }
    line(&mut out, "proposed at", &instant(header.proposed_at));
    let failure = if header.continue_on_failure { "go on" } else { "stop" };
    line(&mut out, "on failure", failure);
    line(&mut out, "selection", if header.allow_partial { "any subset" } else { "all or nothing" });
    for (index, digest) in header.action_digests.iter().enumerate() {
        line(&mut out, &format!("action {index}"), &digest.to_string());
    }
    out
}

fn line(out: &mut String, name: &str, value: &str) {
    out.push_str(&format!("{name:<11} {value}\n"));
}

/// Columns that a label and the blank after it take.
const LABEL: usize = 12;

/// A string in quotes; what follows a line break of its own stands on a line of its own, `column` blanks in.
fn quoted(text: &str, column: usize) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (index, piece) in text.split_inclusive('\n').enumerate() {
        if index > 0 {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', column));
            out.push_str("| ");
        }
        out.push_str(&escape(piece));
    }
    out.push('"');
    out
}

/// A moment as RFC 3339 has it, or as numbers where RFC 3339 has no form.
fn instant(at: Timestamp) -> String {
    const DAY: i64 = 86_400;
    let (days, second) = (at.seconds.div_euclid(DAY), at.seconds.rem_euclid(DAY));
    let Some((year, month, day)) = civil(days) else {
        return format!("{} s and {} ns after 1970-01-01T00:00:00Z", at.seconds, at.nanos);
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if at.nanos == 0 { String::new() } else { format!(".{:09}", at.nanos) };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The proleptic Gregorian date of a day since 1970-01-01, within the years 1 to 9999.
fn civil(days: i64) -> Option<(i64, i64, i64)> {
    const FIRST: i64 = -719_162;
    const LAST: i64 = 2_932_896;
    if !(FIRST..=LAST).contains(&days) {
        return None;
    }
    // Counted from 0000-03-01, so that a leap day ends its year, in eras of 400 years.
    let (era, day_of_era) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Some((era * 400 + year_of_era + i64::from(month <= 2), month, day))
}

fn indent(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', column(depth)));
}

const fn column(depth: usize) -> usize {
    depth * 2
}

fn object(out: &mut String, members: &Object, depth: usize) {
    if members.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (name, member) in members.iter() {
        indent(out, depth + 1);
        out.push_str(&quoted(name, column(depth + 1)));
        out.push_str(": ");
        value(out, member, depth + 1);
    }
    indent(out, depth);
    out.push('}');
}

fn value(out: &mut String, shown: &Value, depth: usize) {
    match shown {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        // Debug always prints a point or an exponent: a double never looks like an integer.
        Value::Double(number) => out.push_str(&format!("{number:?}")),
        Value::String(text) => out.push_str(&quoted(text, column(depth + 1))),
        Value::Bytes(raw) => {
            out.push_str("bytes(");
            raw.iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
            out.push(')');
        }
        Value::List(items) if items.is_empty() => out.push_str("[]"),
        Value::List(items) => {
            out.push('[');
            for item in items {
                indent(out, depth + 1);
                value(out, item, depth + 1);
            }
            indent(out, depth);
            out.push(']');
        }
        Value::Object(members) => object(out, members, depth),
    }
}
