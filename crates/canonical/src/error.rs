//! Why something has no canonical bytes. Knows the specification's codes and nothing of transport.

use std::fmt;

use crate::escape::escape;

/// The codes of docs/spec/canonical-v1.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// Not JSON by RFC 8259.
    InvalidJson,
    /// The top level is not an object.
    NotAnObject,
    /// Two equal names in one object.
    DuplicateName,
    /// An escape that leaves half of a surrogate pair.
    LoneSurrogate,
    /// More than 32 nested containers.
    TooDeep,
    /// More than 1 MiB of canonical bytes.
    TooLarge,
    /// An integer beyond 64 bits, or a number whose nearest double is infinite.
    NumberOutOfRange,
    /// Negative zero in any spelling.
    NegativeZero,
    /// No double prints as this decimal.
    NumberNotExact,
    /// Not `[A-Za-z][A-Za-z0-9_.\-/]{0,127}`.
    InvalidToolName,
    /// Neither empty nor 32 bytes.
    InvalidToolDigest,
    /// Bytes that are not the canonical encoding of anything.
    NotCanonical,
}

impl ErrorCode {
    /// The specification's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "INVALID_UTF8",
            Self::InvalidJson => "INVALID_JSON",
            Self::NotAnObject => "NOT_AN_OBJECT",
            Self::DuplicateName => "DUPLICATE_NAME",
            Self::LoneSurrogate => "LONE_SURROGATE",
            Self::TooDeep => "TOO_DEEP",
            Self::TooLarge => "TOO_LARGE",
            Self::NumberOutOfRange => "NUMBER_OUT_OF_RANGE",
            Self::NegativeZero => "NEGATIVE_ZERO",
            Self::NumberNotExact => "NUMBER_NOT_EXACT",
            Self::InvalidToolName => "INVALID_TOOL_NAME",
            Self::InvalidToolDigest => "INVALID_TOOL_DIGEST",
            Self::NotCanonical => "NOT_CANONICAL",
        }
    }

    /// What the sender can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "send the JSON text as UTF-8",
            Self::InvalidJson => "send strict JSON (RFC 8259): no comments, no trailing commas, no NaN",
            Self::NotAnObject => "send the arguments as one JSON object",
            Self::DuplicateName => "name each member of an object once",
            Self::LoneSurrogate => "write both halves of the surrogate pair, or neither",
            Self::TooDeep => "nest at most 32 objects and lists",
            Self::TooLarge => "one action has at most 1,048,576 bytes: send less, or a reference to it",
            Self::NumberOutOfRange => "send a number that 64 bits hold, or send it as a string",
            Self::NegativeZero => "send 0 without the minus sign",
            Self::NumberNotExact => {
                "a double would change this number: send fewer digits, or send it as a string"
            }
            Self::InvalidToolName => {
                "a tool name is a letter, then at most 127 letters, digits, `_`, `.`, `-` or `/`"
            }
            Self::InvalidToolDigest => "the tool digest is the 32 bytes of the definition's digest",
            Self::NotCanonical => "send the bytes exactly as they were frozen",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error, with a JSON Pointer where it has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalError {
    /// The code.
    pub code: ErrorCode,
    /// Where, in the arguments. Raw text from outside: escape it before showing it, as `Display` does.
    pub pointer: Option<String>,
}

impl CanonicalError {
    pub(crate) const fn new(code: ErrorCode) -> Self {
        Self { code, pointer: None }
    }

    pub(crate) const fn at(code: ErrorCode, pointer: String) -> Self {
        Self { code, pointer: Some(pointer) }
    }
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())?;
        if let Some(pointer) = self.pointer.as_deref().filter(|pointer| !pointer.is_empty()) {
            write!(f, " at `{}`", escape(pointer))?;
        }
        write!(f, ": {}", self.code.advice())
    }
}

impl std::error::Error for CanonicalError {}
