//! Wrapped hand-over: one party asks and gets a token, the other looks where it comes from and opens it
//! once. Must not fall back to anything.

use serde::Deserialize;
use vaultrs::api::sys::requests::WrappingLookupRequest;

use crate::call::Call;
use crate::{Client, Error, Kind, Opened, SecretPath, Token, endpoints};

/// A wrapping token's longest life, in seconds; the shipped policy refuses more.
pub const MAX_WRAP_TTL_S: u32 = 60;

/// A wrapped answer's token.
#[derive(Debug)]
pub struct WrappedToken {
    /// Opens the answer once.
    pub token: Token,
    /// Finds the token without being able to use it; for logs and sweepers.
    pub accessor: String,
    /// Which path was read.
    pub creation_path: String,
    /// Life in seconds.
    pub ttl_s: u64,
}

/// What Vault says of a wrapping token that was not opened yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WrappingState {
    /// Which path was read.
    pub creation_path: String,
    /// Life in seconds, counted from the creation.
    #[serde(rename = "creation_ttl")]
    pub ttl_s: u64,
}

impl Client {
    /// Reads a path so that only a wrapping token comes back; `version` pins a version of a KV secret.
    /// `ttl_s` is 1 to 60 seconds. A deleted version is noticed only by who unwraps.
    ///
    /// # Errors
    /// `BadRequest` for another `ttl_s`; `NotFound`, `Refused`, and all of login and connection.
    pub async fn read_wrapped(
        &self,
        path: &SecretPath,
        version: Option<u64>,
        ttl_s: u32,
    ) -> Result<WrappedToken, Error> {
        let call = Call::new("read-wrapped", self.sessions.by()).engine().wrapped(ttl_s);
        if !(1..=MAX_WRAP_TTL_S).contains(&ttl_s) {
            return Err(Error::new(Kind::BadRequest, call.name));
        }
        let read = endpoints::Read { path: path.as_str().to_owned(), version };
        let answer = self.sessions.call(&call, &read).await?;
        let outer = answer.outer::<serde_json::Value>()?;
        let info = outer.wrap_info.ok_or_else(|| answer.error(Kind::Malformed))?;
        if info.creation_path != path.as_str() || info.ttl > u64::from(ttl_s) {
            return Err(answer.error(Kind::Malformed));
        }
        Ok(WrappedToken {
            token: Token::new(info.token).map_err(|_| answer.error(Kind::Malformed))?,
            accessor: info.accessor,
            creation_path: info.creation_path,
            ttl_s: info.ttl,
        })
    }

    /// Where a wrapping token comes from; does not use it up and needs no login.
    ///
    /// # Errors
    /// `WrappingTokenUsed` when it is spent, expired or unknown.
    pub async fn lookup_wrapped(&self, token: &Token) -> Result<WrappingState, Error> {
        self.lookup(Call::new("lookup-wrapped", self.sessions.by()), token).await
    }

    /// Opens a wrapped read once; `field` is for engines that have fields. Needs no login.
    ///
    /// # Errors
    /// `PathMismatch`: the token is of another path and was not opened. `WrappingTokenUsed`: somebody
    /// else opened it, or it expired; raise an alarm. `NotFound`: the version is deleted.
    /// `MissingField`, `TooLarge` (over 64 KiB), `Malformed`.
    pub async fn unwrap(&self, token: &Token, expected: &SecretPath, field: &str) -> Result<Opened, Error> {
        let call = Call::new("unwrap", self.sessions.by());
        let state = self.lookup(call.named("lookup-wrapped"), token).await?;
        if state.creation_path != expected.as_str() {
            return Err(Error::new(Kind::PathMismatch, call.name));
        }
        let answer =
            self.sessions.link().send(&call, &endpoints::Unwrap {}, Some(token)).await.map_err(spent)?;
        expected.engine.open(&answer, field)
    }

    async fn lookup(&self, call: Call, token: &Token) -> Result<WrappingState, Error> {
        let request = WrappingLookupRequest { token: token.expose().to_owned() };
        self.sessions.link().send(&call, &request, None).await.map_err(spent)?.data()
    }
}

/// Vault answers 400, some releases 403, for a token that cannot be opened any more.
fn spent(error: Error) -> Error {
    match error.kind() {
        Kind::BadRequest | Kind::Refused => Error::new(Kind::WrappingTokenUsed, error.call()),
        _ => error,
    }
}
