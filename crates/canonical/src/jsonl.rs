//! The line forms of the `canonical` commands: one JSON line in, one out. Pure; the caller reads and writes.
//!
//! A line of the vectors may be given as it stands: what it says beside the input (`name`, the expected
//! answers) is passed over. Any other member makes the line invalid, so that a mistyped name never
//! changes what is frozen in silence.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::action::{freeze_action, is_tool_name, verify_action};
use crate::display::{self, Warning};
use crate::error::ErrorCode;
use crate::json::{Text, read_arguments, read_flat};
use crate::plan::verify_plan;

/// What bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An action.
    Action,
    /// A plan header.
    Plan,
}

const INVALID_LINE: &str = r#"{"error":"INVALID_LINE"}"#;

/// Members of the vectors that are no input.
const PASSED_OVER: [&str; 5] = ["name", "canonical", "digest", "effect_digest", "error"];

type Line = BTreeMap<String, Text>;

/// `{"tool", "arguments_json" | "arguments_json_b64", "rationale"?, "tool_digest"?}` to
/// `{"canonical","digest","effect_digest"}` or `{"error"}`.
#[must_use]
pub fn digest(line: &[u8]) -> String {
    read(line, &["tool", "arguments_json", "arguments_json_b64", "rationale", "tool_digest"])
        .and_then(|line| digest_of(&line))
        .unwrap_or_else(|| INVALID_LINE.to_owned())
}

fn digest_of(line: &Line) -> Option<String> {
    let tool = line.get("tool")?;
    let (arguments, lone_arguments) = match (line.get("arguments_json"), line.get("arguments_json_b64")) {
        (Some(given), None) => (given.text.as_bytes().to_vec(), given.lone_surrogate),
        (None, Some(raw)) => (STANDARD.decode(&raw.text).ok()?, false),
        _ => return None,
    };
    // What is no hex is no digest of 32 bytes either.
    let tool_digest = line.get("tool_digest").map_or(Some(Vec::new()), |d| hex::decode(&d.text).ok());
    let tool_digest = tool_digest.unwrap_or_else(|| vec![0]);
    if tool.lone_surrogate || !is_tool_name(&tool.text) {
        return Some(error(ErrorCode::InvalidToolName));
    }
    // Such a text has no bytes that could be read further.
    if lone_arguments {
        return Some(error(ErrorCode::LoneSurrogate));
    }
    let rationale = line.get("rationale");
    if rationale.is_some_and(|r| r.lone_surrogate) {
        return Some(error(read_arguments(&arguments).err().map_or(ErrorCode::LoneSurrogate, |e| e.code)));
    }
    let rationale = rationale.map_or("", |r| r.text.as_str());
    Some(match freeze_action(&tool.text, &arguments, rationale, Some(&tool_digest)) {
        Err(fault) => error(fault.code),
        Ok(frozen) => format!(
            r#"{{"canonical":"{}","digest":"{}","effect_digest":"{}"}}"#,
            STANDARD.encode(frozen.bytes()),
            frozen.digest(),
            frozen.effect_digest(),
        ),
    })
}

/// `{"bytes"}` to `{"ok":true,"digest"}` or `{"error"}`.
#[must_use]
pub fn verify(kind: Kind, line: &[u8]) -> String {
    let Some(bytes) = bytes_of(line) else { return INVALID_LINE.to_owned() };
    let found = match kind {
        Kind::Action => verify_action(&bytes).map(|frozen| frozen.digest()),
        Kind::Plan => verify_plan(&bytes).map(|frozen| frozen.digest()),
    };
    match found {
        Ok(digest) => format!(r#"{{"ok":true,"digest":"{digest}"}}"#),
        Err(fault) => error(fault.code),
    }
}

/// `{"bytes"}` to `{"text","warnings":[{"code","place","message"}…]}` or `{"error"}`.
#[must_use]
pub fn show(kind: Kind, line: &[u8]) -> String {
    let Some(bytes) = bytes_of(line) else { return INVALID_LINE.to_owned() };
    let shown = match kind {
        Kind::Action => verify_action(&bytes)
            .map(|frozen| (display::action_text(&frozen), display::warnings_for_action(&frozen, None))),
        Kind::Plan => verify_plan(&bytes)
            .map(|frozen| (display::plan_text(&frozen), display::warnings_for_plan(&frozen))),
    };
    match shown {
        Ok((text, warnings)) => {
            let warnings: Vec<String> = warnings.iter().map(warning).collect();
            format!(r#"{{"text":{},"warnings":[{}]}}"#, string(&text), warnings.join(","))
        }
        Err(fault) => error(fault.code),
    }
}

fn warning(w: &Warning) -> String {
    format!(
        r#"{{"code":"{}","place":{},"message":{}}}"#,
        w.code.as_str(),
        string(&display::escape(&w.place)),
        string(&w.message),
    )
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn read(line: &[u8], names: &[&str]) -> Option<Line> {
    let line = read_flat(line)?;
    let known = |name: &String| names.contains(&name.as_str()) || PASSED_OVER.contains(&name.as_str());
    line.keys().all(known).then_some(line)
}

fn bytes_of(line: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(&read(line, &["bytes"])?.get("bytes")?.text).ok()
}

fn error(code: ErrorCode) -> String {
    format!(r#"{{"error":"{code}"}}"#)
}
