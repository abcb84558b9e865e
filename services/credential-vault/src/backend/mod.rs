//! Where a credential's value comes from. Another kind of store is another implementation of
//! [`Backend`] and touches no rule.

mod sealed;
mod vault;

use std::time::Duration;

use async_trait::async_trait;
use exequatur_fault::Fault;
use exequatur_proto::credential::v1::{ScopedValue, SealedValue, WrappedValue};

pub use sealed::Sealed;
pub use vault::Vault;

/// What is asked for; everything about it was checked and the lease is durable.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Credential.
    pub credential: &'a str,
    /// What the catalog keeps of the version.
    pub version: &'a [u8],
    /// How long the attempt may need it.
    pub life: Duration,
}

/// A value on its way to the connector, closed to this zone.
pub enum Value {
    /// Ciphertext.
    Sealed(SealedValue),
    /// A wrapping token.
    Wrapped(WrappedValue),
    /// A token for one path.
    Scoped(ScopedValue),
}

/// A value, and what the log keeps of how it came. Not a secret.
pub struct Handed {
    /// The value.
    pub value: Value,
    /// Path that was asked of Vault; empty: none.
    pub path: String,
    /// Accessor of the token that Vault gave; empty: none.
    pub accessor: String,
}

/// A source of values that this zone hands over and cannot use itself.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The value of a credential at a version. Called once per lease, after the lease is durable.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED` for what no retry mends, `UNAVAILABLE` else.
    async fn hand_over(&self, order: Order<'_>) -> Result<Handed, Fault>;

    /// Whether a lease at Vault can be one of this credential.
    fn is_lease_of(&self, tenant: &str, credential: &str, vault_lease: &str) -> bool;

    /// Ends a dynamic secret. A repeat changes nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE`: try again.
    async fn revoke(&self, vault_lease: &str) -> Result<(), Fault>;
}
