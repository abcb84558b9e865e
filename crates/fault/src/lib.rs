//! The one error of the plane: a stable reason, a text that is safe for the caller, whether a
//! retry helps and what became of the effect. Knows gRPC's form of it and nothing of any zone.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

pub use exequatur_proto::errors::v1::Reason;

mod status;
#[cfg(test)]
mod tests;

pub use status::DOMAIN;

/// What became of the outside effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// Surely nothing happened.
    #[default]
    None,
    /// It surely happened.
    Done,
    /// Nobody knows.
    Unknown,
}

impl Effect {
    /// The word used on the wire and by the CLI.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }
}

/// A refusal or failure that a caller may see. The source is for the log only.
#[derive(Debug)]
pub struct Fault {
    reason: Reason,
    message: String,
    retryable: bool,
    effect: Effect,
    metadata: BTreeMap<String, String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A fault; `message` is lower case, without full stop, safe for the caller, and says what to do.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let retryable = matches!(
            reason,
            Reason::Unavailable | Reason::Conflict | Reason::StorageFailed | Reason::DeadlineExceeded
        );
        Self {
            reason,
            message: message.into(),
            retryable,
            effect: Effect::None,
            metadata: BTreeMap::new(),
            source: None,
        }
    }

    /// A bad field of a request.
    #[must_use]
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Self::new(Reason::InvalidField, message).with("field", field)
    }

    /// Something that is not there, or not for this caller.
    #[must_use]
    pub fn not_found(kind: &str, id: &str) -> Self {
        Self::new(Reason::NotFound, format!("no such {kind}")).with("kind", kind).with("id", id)
    }

    /// A fault of ours; the text tells the caller nothing.
    #[must_use]
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Reason::Internal, "internal fault, see the service's log").caused_by(source)
    }

    /// Adds a metadata pair for machines.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Says whether the same call may be repeated.
    #[must_use]
    pub const fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Says what became of the effect.
    #[must_use]
    pub const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Keeps the cause for the log; it never reaches the caller.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The stable reason.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The reason's word, without prefix.
    #[must_use]
    pub fn reason_str(&self) -> &'static str {
        reason_str(self.reason)
    }

    /// The text for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may be repeated.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// What became of the effect.
    #[must_use]
    pub const fn effect_known(&self) -> Effect {
        self.effect
    }

    /// The pairs for machines.
    #[must_use]
    pub const fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason_str(), self.message)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|s| -> &(dyn Error + 'static) { s.as_ref() })
    }
}

/// The word of a reason: `DENIED_BY_RULE` for `REASON_DENIED_BY_RULE`.
#[must_use]
pub fn reason_str(reason: Reason) -> &'static str {
    let name = reason.as_str_name();
    name.strip_prefix("REASON_").unwrap_or(name)
}

/// The reason of a word; unknown words are `Unspecified`.
#[must_use]
pub fn reason_from_str(word: &str) -> Reason {
    Reason::from_str_name(&format!("REASON_{word}")).unwrap_or(Reason::Unspecified)
}
