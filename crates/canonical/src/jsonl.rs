//! The line forms of the `canonical` commands: one JSON line in, one out. Pure; the caller reads and writes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::action::{freeze_action, verify_action};
use crate::display::{self, Warning};
use crate::error::{CanonicalError, ErrorCode};
use crate::json::read_value;
use crate::plan::verify_plan;
use crate::value::{Object, Value};

/// What bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An action.
    Action,
    /// A plan header.
    Plan,
}

const INVALID_LINE: &str = r#"{"error":"INVALID_LINE"}"#;

/// `{"tool", "arguments_json" | "arguments_json_b64", "rationale"?, "tool_digest"?}` to
/// `{"canonical","digest","effect_digest"}` or `{"error"}`. Other members are passed over.
#[must_use]
pub fn digest(line: &[u8]) -> String {
    match read_value(line) {
        Ok(Value::Object(object)) => digest_of(&object).unwrap_or_else(|| INVALID_LINE.to_owned()),
        // A rationale is text of the action; every other lone surrogate only spoils the line.
        Err(CanonicalError { code: ErrorCode::LoneSurrogate, pointer: Some(at) }) if at == "/rationale" => {
            error(ErrorCode::LoneSurrogate)
        }
        _ => INVALID_LINE.to_owned(),
    }
}

fn digest_of(line: &Object) -> Option<String> {
    let tool = line.get("tool")?.as_str()?;
    let arguments = match (line.get("arguments_json"), line.get("arguments_json_b64")) {
        (Some(text), None) => text.as_str()?.as_bytes().to_vec(),
        (None, Some(raw)) => STANDARD.decode(raw.as_str()?).ok()?,
        _ => return None,
    };
    let rationale = optional(line, "rationale")?;
    // What is no hex is no digest of 32 bytes either.
    let tool_digest = hex::decode(optional(line, "tool_digest")?).unwrap_or_else(|_| vec![0]);
    Some(match freeze_action(tool, &arguments, rationale, Some(&tool_digest)) {
        Err(fault) => error(fault.code),
        Ok(frozen) => json!({
            "canonical": STANDARD.encode(frozen.bytes()),
            "digest": frozen.digest().to_string(),
            "effect_digest": frozen.effect_digest().to_string(),
        })
        .to_string(),
    })
}

fn optional<'a>(line: &'a Object, name: &str) -> Option<&'a str> {
    line.get(name).map_or(Some(""), Value::as_str)
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
        Ok(digest) => json!({"ok": true, "digest": digest.to_string()}).to_string(),
        Err(fault) => error(fault.code),
    }
}

/// `{"bytes"}` to `{"text","warnings":[{"code","place"}…]}` or `{"error"}`.
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
        Ok((text, warnings)) => json!({"text": text, "warnings": list(&warnings)}).to_string(),
        Err(fault) => error(fault.code),
    }
}

fn list(warnings: &[Warning]) -> Vec<serde_json::Value> {
    warnings.iter().map(|w| json!({"code": w.code.as_str(), "place": display::escape(&w.place)})).collect()
}

fn bytes_of(line: &[u8]) -> Option<Vec<u8>> {
    let line = read_value(line).ok()?;
    STANDARD.decode(line.as_object()?.get("bytes")?.as_str()?).ok()
}

fn error(code: ErrorCode) -> String {
    json!({"error": code.as_str()}).to_string()
}
