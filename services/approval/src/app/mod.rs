//! Approval's use cases, one per file; the only place of its rules. Knows no transport.

use std::sync::Arc;

pub(crate) use exequatur_door::{mismatch, present, refused};
use exequatur_fault::Fault;
use exequatur_ledger::Ledger;
use exequatur_proto::statement::v1::Header;
use exequatur_statement::{SigningKey, Trust};
use exequatur_store::{Store, Tx};
use tokio::sync::watch;

mod change;
mod checked;
mod decide;
mod expire;
mod inbox;
mod open;
mod own;
mod refusals;
mod release;
mod reserve;
mod reviewers;
mod watch_events;
mod withdraw;

pub use inbox::ListRequest;
pub use open::{MAX_SHOWN_BYTES, Opened};
pub use refusals::Subject;

use crate::store::ApprovalStore;

/// SPIFFE IDs that approval writes into and expects in statements.
#[derive(Debug, Clone)]
pub struct Zones {
    /// Trust domain.
    pub realm: String,
    /// This zone.
    pub own: String,
    /// Who signs warrants.
    pub governance: String,
    /// Who executes and signs outcomes.
    pub connector: String,
    /// Whom reservations are for.
    pub credential_vault: String,
}

impl Zones {
    /// Of a realm.
    #[must_use]
    pub fn of(realm: &str) -> Self {
        let zone = |name: &str| format!("spiffe://{realm}/zone/{name}");
        Self {
            realm: realm.to_owned(),
            own: zone("approval"),
            governance: zone("governance"),
            connector: zone("connector"),
            credential_vault: zone("credential-vault"),
        }
    }
}

/// What the use cases stand on.
pub struct App {
    pub(crate) store: Store,
    pub(crate) rows: Arc<dyn ApprovalStore>,
    pub(crate) ledger: Ledger,
    pub(crate) trust: Trust,
    pub(crate) decision_key: Arc<SigningKey>,
    pub(crate) reservation_key: Arc<SigningKey>,
    pub(crate) zones: Zones,
    /// Rings after every committed event.
    events: watch::Sender<()>,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        store: Store,
        rows: Arc<dyn ApprovalStore>,
        ledger: Ledger,
        trust: Trust,
        decision_key: Arc<SigningKey>,
        reservation_key: Arc<SigningKey>,
        zones: Zones,
    ) -> Self {
        Self {
            store,
            rows,
            ledger,
            trust,
            decision_key,
            reservation_key,
            zones,
            events: watch::Sender::new(()),
        }
    }

    /// Commits, then wakes those who watch.
    async fn commit(&self, tx: Tx) -> Result<(), Fault> {
        tx.commit().await?;
        self.events.send_replace(());
        Ok(())
    }

    fn header(&self, tx: &Tx, audience: &str, tenant: &str, life: std::time::Duration) -> Header {
        let now = tx.now();
        Header {
            issuer: self.zones.own.clone(),
            audience: audience.to_owned(),
            tenant: tenant.to_owned(),
            id: uuid::Uuid::now_v7().to_string(),
            issued_at: Some(now.to_proto()),
            expires_at: Some(now.saturating_add(life).to_proto()),
        }
    }
}

/// 32 bytes, or a fault that names the field.
pub(crate) fn digest(bytes: &[u8], field: &str) -> Result<exequatur_canonical::Digest, Fault> {
    exequatur_canonical::Digest::from_slice(bytes)
        .map_err(|_| Fault::field(field, format!("`{field}` must be 32 bytes")))
}
