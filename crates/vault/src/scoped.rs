//! Scoped hand-over: one party mints a batch token that may read one path from one network, the other
//! reads with it. Must not check the network: Vault does, by the token role's `token_bound_cidrs`.

use crate::call::Call;
use crate::paths::is_name;
use crate::{Client, Error, Kind, Opened, SecretPath, Token, endpoints};

/// Lives are whole steps of so many seconds, since Vault's policy can only list the allowed ones.
pub const SCOPED_TTL_STEP_S: u32 = 10;
/// The longest life: the longest time-out of a tool plus 30 s.
pub const SCOPED_TTL_MAX_S: u32 = 330;

/// A batch token. It has no accessor and cannot be revoked; it ends by its life.
#[derive(Debug)]
pub struct ScopedToken {
    /// Reads one path.
    pub token: Token,
    /// Life in seconds.
    pub ttl_s: u64,
}

impl Client {
    /// Mints a token of the token role `role` with the one policy `policy` (see
    /// [`crate::scoped_policy`]). `ttl_s` is 1 to 330 seconds, rounded up to tens, at least 40.
    ///
    /// # Errors
    /// `BadRequest` for another `ttl_s` or when the role does not allow the policy; `Malformed` when the
    /// role gives anything but an orphan batch token with exactly this policy; `Refused`.
    pub async fn mint_scoped(&self, role: &str, policy: &str, ttl_s: u32) -> Result<ScopedToken, Error> {
        let call = Call::new("mint-scoped", self.sessions.by());
        if !is_name(role) {
            return Err(Error::new(Kind::BadName, call.name));
        }
        if !(1..=SCOPED_TTL_MAX_S).contains(&ttl_s) {
            return Err(Error::new(Kind::BadRequest, call.name));
        }
        let ttl_s = ttl_s.next_multiple_of(SCOPED_TTL_STEP_S).max(40);
        let mint = endpoints::Mint {
            role: role.to_owned(),
            policies: vec![policy.to_owned()],
            ttl: format!("{ttl_s}s"),
        };
        let answer = self.sessions.call(&call, &mint).await?;
        let outer = answer.outer::<serde_json::Value>()?;
        let auth = outer.auth.ok_or_else(|| answer.error(Kind::Malformed))?;
        let token = Token::new(auth.client_token).map_err(|_| answer.error(Kind::Malformed))?;
        let as_asked = auth.token_type == "batch"
            && auth.orphan
            && auth.policies == [policy]
            && auth.lease_duration <= u64::from(ttl_s);
        if as_asked {
            Ok(ScopedToken { token, ttl_s: auth.lease_duration })
        } else {
            Err(answer.error(Kind::Malformed))
        }
    }

    /// Reads a credential with a given token; `version` and `field` are for engines that have them. The
    /// lease of a dynamic secret cannot outlive the token.
    ///
    /// # Errors
    /// `Refused` when the token does not allow it, from this address, or any more; `NotFound` also for a
    /// deleted version; `ServerError` when the engine cannot reach its third party; `NotFound` or
    /// `BadRequest` when there is no such role; `MissingField`, `TooLarge` (over 64 KiB), `Malformed`.
    pub async fn read_with(
        &self,
        token: &Token,
        path: &SecretPath,
        version: Option<u64>,
        field: &str,
    ) -> Result<Opened, Error> {
        let call = Call::new("read-scoped", self.sessions.by()).engine();
        let read = endpoints::Read { path: path.as_str().to_owned(), version };
        let answer = self.sessions.link().send(&call, &read, Some(token)).await?;
        path.engine.open(&answer, field)
    }
}
