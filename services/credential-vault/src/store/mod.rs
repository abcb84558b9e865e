//! The catalog's store contract. Every write is inside the caller's transaction, with its log entry.

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_proto::credential::v1::Reuse;
use exequatur_store::Tx;

mod sqlite;
#[cfg(test)]
mod suite;

pub use sqlite::{MIGRATIONS, Sqlite};

/// A catalog entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub credential: String,
    /// Newest version; 0: pinned but no value yet.
    pub version: u64,
    /// When it last changed.
    pub updated_at: UnixMillis,
    /// Tools that it serves.
    pub pins: Vec<Pin>,
    /// Where the newest version's bytes lead, and the bytes.
    pub newest: Option<(Backend, Vec<u8>)>,
}

/// An operator's leave to move a sealed value to another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reseal {
    /// Version that may be taken.
    pub version: u64,
    /// Key to seal it to.
    pub kid: String,
    /// Its end.
    pub expires_at: UnixMillis,
}

/// Where the bytes of a version lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A `SealedValue`.
    Sealed,
    /// A `VaultSource`.
    Vault,
}

impl Backend {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Vault => "vault",
        }
    }

    /// The backend of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Sealed, Self::Vault].into_iter().find(|b| b.as_str() == word)
    }
}

/// A tool that a credential serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The tool.
    pub tool: String,
    /// 32 bytes.
    pub tool_digest: Vec<u8>,
    /// `host:port`.
    pub destination: String,
    /// The protobuf number of the attestation.
    pub attestation: i32,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// UUIDv7.
    pub lease: String,
    /// Tenant.
    pub tenant: String,
    /// Credential.
    pub credential: String,
    /// Version handed over.
    pub version: u64,
    /// 32 bytes.
    pub plan_digest: Vec<u8>,
    /// Position in the plan.
    pub index: u32,
    /// 1..5.
    pub attempt: u32,
    /// Its end.
    pub expires_at: UnixMillis,
    /// Whether it was given back.
    pub returned: bool,
    /// Lease of a dynamic secret at Vault; empty: none is known.
    pub vault_lease: String,
    /// Run that it is for.
    pub run: String,
    /// For how many actions.
    pub reuse: Reuse,
    /// The connector has reported that it keeps the secret open for others.
    pub kept: bool,
    /// Lease that the secret was opened under before; empty: this one hands over.
    pub reuse_of: String,
}

/// Catalog, sealed values and leases.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// An entry with its pins.
    async fn entry(&self, tx: &mut Tx, tenant: &str, credential: &str) -> Result<Option<Entry>, Fault>;
    /// Entries after a name, in order.
    async fn entries(&self, tx: &mut Tx, tenant: &str, after: &str, limit: u32) -> Result<Vec<Entry>, Fault>;
    /// Adds a version if it is the newest plus one. False: it is not, and nothing was written.
    async fn put(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
        backend: Backend,
        value: &[u8],
    ) -> Result<bool, Fault>;
    /// Ciphertext or place of a version.
    async fn value(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
    ) -> Result<Option<(Backend, Vec<u8>)>, Fault>;
    /// Gives leave to reseal; replaces an older one of the credential.
    async fn allow_reseal(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        leave: &Reseal,
    ) -> Result<(), Fault>;
    /// The leave of a credential, ended or not.
    async fn reseal_leave(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
    ) -> Result<Option<Reseal>, Fault>;
    /// Replaces the bytes of a sealed version and ends the leave. False: there is no such version.
    async fn reseal(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
        value: &[u8],
    ) -> Result<bool, Fault>;
    /// Removes entry, values and pins; leases stay. Whether there was one.
    async fn remove(&self, tx: &mut Tx, tenant: &str, credential: &str) -> Result<bool, Fault>;
    /// Replaces all pins of a tool by these (credential, pin).
    async fn pin(&self, tx: &mut Tx, tenant: &str, tool: &str, pins: &[(String, Pin)]) -> Result<(), Fault>;
    /// Records a lease. False: this attempt already had one for the credential; nothing was written.
    async fn lease(&self, tx: &mut Tx, lease: &Lease) -> Result<bool, Fault>;
    /// Marks a lease as returned, with the lease at Vault that goes with it, and gives it. `None`: no
    /// such lease of the tenant, or already returned.
    async fn give_back(
        &self,
        tx: &mut Tx,
        tenant: &str,
        lease: &str,
        vault_lease: &str,
    ) -> Result<Option<Lease>, Fault>;
    /// One lease of a tenant.
    async fn find_lease(&self, tx: &mut Tx, tenant: &str, lease: &str) -> Result<Option<Lease>, Fault>;
    /// Marks an open lease as kept, with the lease at Vault that goes with it. False: it is returned, or
    /// was kept before.
    async fn keep(&self, tx: &mut Tx, tenant: &str, lease: &str, vault_lease: &str) -> Result<bool, Fault>;
    /// Leases that were not given back and ended before now, at most so many.
    async fn overdue(&self, tx: &mut Tx, limit: u32) -> Result<Vec<Lease>, Fault>;
}
