//! Vault's answers, whole and not yet read; each engine takes its secret out. Must not send.

use serde::de::DeserializeOwned;
use vaultrs::api::EndpointResult;
use zeroize::Zeroizing;

use crate::{Error, Kind};

/// A secret's longest value, as of a sealed one.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;

/// A whole answer, not yet read.
pub struct Answer {
    call: &'static str,
    body: Zeroizing<Vec<u8>>,
}

impl Answer {
    pub(crate) const fn new(call: &'static str, body: Zeroizing<Vec<u8>>) -> Self {
        Self { call, body }
    }

    pub(crate) const fn error(&self, kind: Kind) -> Error {
        Error::new(kind, self.call)
    }

    /// The outer form. The parser's message would quote the answer, so it is dropped.
    pub(crate) fn outer<T: DeserializeOwned>(&self) -> Result<EndpointResult<T>, Error> {
        serde_json::from_slice(&self.body).map_err(|_| self.error(Kind::Malformed))
    }

    /// The part `data`.
    pub(crate) fn data<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.outer()?.data.ok_or_else(|| self.error(Kind::Malformed))
    }

    #[cfg(feature = "setup")]
    pub(crate) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// All of it, for operators' calls.
    #[cfg(feature = "setup")]
    pub(crate) fn plain<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|_| self.error(Kind::Malformed))
    }
}
