//! What one call to Vault needs besides its endpoint. Must not know sessions.

use tokio::time::Instant;

use crate::breaker::Lane;
use crate::classify::Meaning;

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The word in errors.
    pub(crate) name: &'static str,
    pub(crate) lane: Lane,
    pub(crate) meaning: Meaning,
    /// When it must have ended.
    pub(crate) by: Instant,
    /// Ask for a wrapped answer that lives so many seconds.
    pub(crate) wrap_s: Option<u32>,
}

impl Call {
    pub(crate) const fn new(name: &'static str, by: Instant) -> Self {
        Self { name, lane: Lane::Vault, meaning: Meaning::Ordinary, by, wrap_s: None }
    }

    pub(crate) const fn engine(self) -> Self {
        Self { lane: Lane::Engine, ..self }
    }

    pub(crate) const fn wrapped(self, ttl_s: u32) -> Self {
        Self { wrap_s: Some(ttl_s), ..self }
    }

    /// The same limits, another word; always about Vault itself.
    pub(crate) const fn named(self, name: &'static str) -> Self {
        Self::new(name, self.by)
    }
}
