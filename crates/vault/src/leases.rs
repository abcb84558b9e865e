//! Leases and accessors: look at one, end one. Must not know who held them.

use serde::Deserialize;
use vaultrs::api::token::requests::{LookupTokenAccessorRequest, RevokeTokenAccessorRequest};

use crate::call::Call;
use crate::{Client, Error, Kind, endpoints};

/// A live lease.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LeaseState {
    /// Seconds left.
    #[serde(rename = "ttl")]
    pub ttl_s: i64,
    /// Whether it could be renewed.
    pub renewable: bool,
}

/// A live token, seen by its accessor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AccessorState {
    /// Seconds left.
    #[serde(rename = "ttl")]
    pub ttl_s: u64,
    /// Its policies.
    pub policies: Vec<String>,
    /// Where it was made, such as `auth/approle/login`.
    pub path: String,
}

impl Client {
    /// Ends a lease and waits until its secret is gone at the third party. A lease that is not there any
    /// more is a success.
    ///
    /// # Errors
    /// `BadName` when this is no lease id; `BadRequest` or `ServerError` when the third party cannot be
    /// asked, so that the lease may live on to its end: try again.
    pub async fn revoke_lease(&self, lease_id: &str) -> Result<(), Error> {
        let call = Call::new("revoke-lease", self.sessions.by()).engine();
        let lease_id = id(lease_id, &call)?;
        self.sessions.call(&call, &endpoints::RevokeLease { lease_id, sync: true }).await.map(drop)
    }

    /// Whether a lease lives.
    ///
    /// # Errors
    /// `NotFound` when it does not.
    pub async fn lookup_lease(&self, lease_id: &str) -> Result<LeaseState, Error> {
        let call = Call::new("lookup-lease", self.sessions.by());
        let lease_id = id(lease_id, &call)?;
        self.sessions.call(&call, &endpoints::LookupLease { lease_id }).await.map_err(gone)?.data()
    }

    /// Ends the token of an accessor with all its leases; a wrapping token's too. One that is not there
    /// any more is a success.
    ///
    /// # Errors
    /// As any call.
    pub async fn revoke_accessor(&self, accessor: &str) -> Result<(), Error> {
        let call = Call::new("revoke-accessor", self.sessions.by());
        let request = RevokeTokenAccessorRequest { accessor: id(accessor, &call)? };
        match self.sessions.call(&call, &request).await.map_err(gone) {
            Err(error) if error.kind() != Kind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the token of an accessor lives.
    ///
    /// # Errors
    /// `NotFound` when it does not. Some releases of Vault answer 403 then, which stays `Refused`.
    pub async fn lookup_accessor(&self, accessor: &str) -> Result<AccessorState, Error> {
        let call = Call::new("lookup-accessor", self.sessions.by());
        let request = LookupTokenAccessorRequest { accessor: id(accessor, &call)? };
        self.sessions.call(&call, &request).await.map_err(gone)?.data()
    }
}

/// Lease ids and accessors are one visible line.
fn id(text: &str, call: &Call) -> Result<String, Error> {
    if (1..=512).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(Error::new(Kind::BadName, call.name))
    }
}

/// Vault answers 400 for a lease or accessor that it does not know.
fn gone(error: Error) -> Error {
    match error.kind() {
        Kind::BadRequest => Error::new(Kind::NotFound, error.call()),
        _ => error,
    }
}
