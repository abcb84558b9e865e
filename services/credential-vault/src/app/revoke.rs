//! Ending leases: given back by the connector, or overdue because it died. What Vault made for them is
//! revoked from the outbox, so that it is not forgotten while Vault is away.

use std::sync::Arc;
use std::time::Duration;

use exequatur_fault::Fault;
use exequatur_ledger::outbox::{self, Message};
use exequatur_proto::ledger::v1::log_entry::Body;
use tokio::sync::watch;

use super::App;
use super::lease::event;

/// Time between two looks for overdue leases.
const INTERVAL: Duration = Duration::from_secs(10);
/// Overdue leases that one look ends.
const BATCH: u32 = 100;

impl App {
    /// Marks a lease as ended, once, and owes Vault the revocation.
    pub(super) async fn end_lease(
        &self,
        tenant: &str,
        lease: &str,
        vault_lease: &str,
        how: &str,
    ) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let ended = self.catalog.give_back(&mut tx, tenant, lease, vault_lease).await?;
        // Also of a lease that ended before its connector could tell; revoking twice changes nothing.
        let known = ended.as_ref().map_or(vault_lease, |lease| lease.vault_lease.as_str());
        if !known.is_empty() {
            outbox::push(&mut tx, "revoke", known, known.as_bytes()).await?;
        }
        if let Some(lease) = ended {
            let entry = event(how, &lease, Vec::new(), Vec::new());
            self.ledger.append(&mut tx, tenant, Body::Lease(entry)).await?;
        }
        tx.commit().await?;
        self.wake.notify_one();
        Ok(())
    }

    /// Delivers one message of the outbox.
    ///
    /// # Errors
    /// An outage: the message stays.
    pub async fn deliver(&self, message: Message) -> Result<(), Fault> {
        let lease = String::from_utf8(message.payload).map_err(Fault::internal)?;
        match &self.vault {
            Some(vault) => vault.revoke(&lease).await,
            None => Err(Fault::internal("a lease of Vault is to be revoked and Vault is not configured")),
        }
    }

    /// Ends overdue leases until told to stop: the connector died with them, and what Vault gave for
    /// them ends by its own time to live.
    pub async fn sweep(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        loop {
            if let Err(fault) = self.sweep_once().await {
                tracing::warn!(reason = fault.reason_str(), "overdue leases could not be ended");
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
        }
    }

    async fn sweep_once(&self) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let overdue = self.catalog.overdue(&mut tx, BATCH).await?;
        drop(tx);
        for lease in overdue {
            self.end_lease(&lease.tenant, &lease.lease, &lease.vault_lease, "expired").await?;
        }
        Ok(())
    }
}
