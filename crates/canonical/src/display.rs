//! What a person sees (specification section 6): a pure, injective function of canonical bytes.

use crate::action::FrozenAction;
use crate::plan::FrozenPlan;
use crate::value::{Object, Value};

pub use crate::escape::{escape, is_hidden};
pub use crate::warning::{Warning, WarningCode, warnings_for_action, warnings_for_plan, warnings_for_text};

/// Bytes of text that a plan may need to be shown whole; beyond, nobody can approve it.
pub const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The display text of an action.
#[must_use]
pub fn action_text(frozen: &FrozenAction) -> String {
    let action = frozen.action();
    let mut out = String::new();
    line(&mut out, "tool", &quoted(&action.tool));
    line(&mut out, "definition", &action.tool_digest.map_or_else(|| "none".to_owned(), |d| d.to_string()));
    line(&mut out, "rationale", &quoted(&action.rationale));
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
        line(&mut out, name, &quoted(value));
    }
    let at = header.proposed_at;
    line(&mut out, "proposed at", &format!("{}.{:09} s since 1970-01-01T00:00:00Z", at.seconds, at.nanos));
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

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

fn indent(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn object(out: &mut String, members: &Object, depth: usize) {
    if members.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (name, member) in members.iter() {
        indent(out, depth + 1);
        out.push_str(&format!("{}: ", quoted(name)));
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
        Value::String(text) => out.push_str(&quoted(text)),
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
