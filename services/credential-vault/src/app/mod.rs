//! credential-vault's use cases, one per file; the only place of its rules. Knows no transport.

use std::sync::Arc;

use exequatur_ledger::Ledger;
use exequatur_statement::Trust;
use exequatur_store::Store;
use tokio::sync::Notify;

use crate::backend::Backend;
use crate::store::CatalogStore;

mod catalog;
mod lease;
mod refusals;
mod reseal;
mod reuse;
mod revoke;

pub use refusals::Call;

/// What the use cases stand on.
pub struct App {
    /// The database.
    pub store: Store,
    /// The catalog in it.
    pub catalog: Arc<dyn CatalogStore>,
    /// HashiCorp Vault or OpenBao; `None`: this zone is not configured for it.
    pub vault: Option<Arc<dyn Backend>>,
    /// Wakes the outbox.
    pub wake: Arc<Notify>,
    /// The zone's log.
    pub ledger: Ledger,
    /// The trust bundle in force.
    pub trust: Trust,
}

/// Whether a name is `[a-z0-9][a-z0-9._-]{0,62}`.
pub(crate) fn is_name(name: &str) -> bool {
    let head = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 63
        && name.bytes().next().is_some_and(head)
        && name.bytes().all(|b| head(b) || b"._-".contains(&b))
}
