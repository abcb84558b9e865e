//! Freezing and verifying actions, with the error order of specification section 4.

use crate::decode;
use crate::digest::{Digest, digest_parts};
use crate::encode;
use crate::error::{CanonicalError, ErrorCode};
use crate::json::read_arguments;
use crate::value::{Object, Value};

/// Bytes that one action may have.
pub const MAX_ACTION_BYTES: usize = 1 << 20;

/// One exact action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Object,
    /// The agent's reason.
    pub rationale: String,
    /// Digest of the definition proposed against; absent only in vectors and tools.
    pub tool_digest: Option<Digest>,
}

/// An action with its bytes and digests; made only by freezing and verifying.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenAction {
    action: Action,
    bytes: Vec<u8>,
    digest: Digest,
    effect_digest: Digest,
}

impl FrozenAction {
    /// The canonical bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What they say.
    #[must_use]
    pub const fn action(&self) -> &Action {
        &self.action
    }

    /// What is approved, executed and recorded.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The same for two actions that would do the same; never authorizes anything.
    #[must_use]
    pub const fn effect_digest(&self) -> Digest {
        self.effect_digest
    }
}

/// Whether a tool's name is `[A-Za-z][A-Za-z0-9_.\-/]{0,127}`.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 128
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/'))
}

/// Freezes a tool call whose arguments are JSON text.
///
/// # Errors
/// The first fault in the order of the specification.
pub fn freeze_action(
    tool: &str,
    arguments_json: &[u8],
    rationale: &str,
    tool_digest: Option<&[u8]>,
) -> Result<FrozenAction, CanonicalError> {
    if !is_tool_name(tool) {
        return Err(CanonicalError::new(ErrorCode::InvalidToolName));
    }
    let arguments = read_arguments(arguments_json)?;
    let tool_digest = match tool_digest {
        None | Some([]) => None,
        Some(raw) => {
            Some(Digest::from_slice(raw).map_err(|_| CanonicalError::new(ErrorCode::InvalidToolDigest))?)
        }
    };
    freeze_value_action(Action {
        tool: tool.to_owned(),
        arguments,
        rationale: rationale.to_owned(),
        tool_digest,
    })
}

/// Freezes an action whose arguments are values, for instance after defaults were filled in.
///
/// # Errors
/// `INVALID_TOOL_NAME`, `TOO_DEEP`, `TOO_LARGE`, or `NOT_CANONICAL` for a value outside the model's bounds.
pub fn freeze_value_action(action: Action) -> Result<FrozenAction, CanonicalError> {
    if !is_tool_name(&action.tool) {
        return Err(CanonicalError::new(ErrorCode::InvalidToolName));
    }
    bounds(&action.arguments, 1)?;
    let encode::EncodedAction { bytes, rationale_len, tool_digest_len } = encode::action(&action);
    if bytes.len() > MAX_ACTION_BYTES {
        return Err(CanonicalError::new(ErrorCode::TooLarge));
    }
    let after_at = bytes.len().saturating_sub(tool_digest_len);
    let before = bytes.get(..after_at.saturating_sub(rationale_len)).unwrap_or_default();
    let after = bytes.get(after_at..).unwrap_or_default();
    let digest = digest_parts("exequatur.action.v1", &[&bytes]);
    let effect_digest = digest_parts("exequatur.effect.v1", &[before, after]);
    Ok(FrozenAction { action, bytes, digest, effect_digest })
}

/// Checks an action's bytes.
///
/// # Errors
/// `NOT_CANONICAL`, whatever is wrong.
pub fn verify_action(bytes: &[u8]) -> Result<FrozenAction, CanonicalError> {
    let not_canonical = || CanonicalError::new(ErrorCode::NotCanonical);
    if bytes.len() > MAX_ACTION_BYTES {
        return Err(not_canonical());
    }
    let raw = decode::action(bytes).ok_or_else(not_canonical)?;
    let tool_digest = match raw.tool_digest.as_slice() {
        [] => None,
        digest => Some(Digest::from_slice(digest).map_err(|_| not_canonical())?),
    };
    let action = Action { tool: raw.tool, arguments: raw.arguments, rationale: raw.rationale, tool_digest };
    let frozen = freeze_value_action(action).map_err(|_| not_canonical())?;
    if frozen.bytes == bytes { Ok(frozen) } else { Err(not_canonical()) }
}

fn bounds(object: &Object, depth: usize) -> Result<(), CanonicalError> {
    if depth > crate::json::MAX_DEPTH {
        return Err(CanonicalError::new(ErrorCode::TooDeep));
    }
    object.iter().try_for_each(|(_, value)| value_bounds(value, depth))
}

fn value_bounds(value: &Value, depth: usize) -> Result<(), CanonicalError> {
    match value {
        Value::Object(object) => bounds(object, depth + 1),
        Value::List(_) if depth + 1 > crate::json::MAX_DEPTH => Err(CanonicalError::new(ErrorCode::TooDeep)),
        Value::List(items) => items.iter().try_for_each(|item| value_bounds(item, depth + 1)),
        Value::Double(n) if !n.is_finite() || (*n == 0.0 && n.is_sign_negative()) => {
            Err(CanonicalError::new(ErrorCode::NotCanonical))
        }
        Value::Uint(n) if i64::try_from(*n).is_ok() => Err(CanonicalError::new(ErrorCode::NotCanonical)),
        _ => Ok(()),
    }
}
