//! Why a statement or a key is not acceptable.

use std::fmt;

use exequatur_proto::errors::v1::Reason;

/// Why a statement, a key or a bundle is not acceptable. Never holds key material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementError(String);

impl StatementError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// The stable reason.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        Reason::StatementInvalid
    }
}

impl fmt::Display for StatementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StatementError {}
