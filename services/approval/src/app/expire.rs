//! Closing waits and windows that are over. Nothing relies on it being done: every use checks time
//! again. A reserved item never expires.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item};
use exequatur_store::Tx;
use tokio::sync::watch;

use super::App;
use super::change::{Cause, Changes};
use crate::store::Card;

/// Time between two sweeps.
const EVERY: Duration = Duration::from_secs(1);
/// Approvals in one sweep.
const BATCH: u32 = 64;

impl App {
    /// Closes what is over now.
    ///
    /// # Errors
    /// The store's and the clock's.
    pub async fn expire_due(&self) -> Result<(), Fault> {
        let now = self.store.clock().now()?;
        for approval in self.rows.due(now, BATCH).await? {
            let mut tx = self.store.begin().await?;
            if let Some(mut card) = self.rows.by_id(&mut tx, &approval).await?
                && self.expire_card(&mut tx, &mut card).await?
            {
                self.commit(tx).await?;
            }
        }
        Ok(())
    }

    /// Sweeps until told to stop.
    pub async fn sweep(&self, mut shutdown: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = shutdown.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            match self.expire_due().await {
                Ok(()) => {}
                Err(fault) if fault.reason() == Reason::ClockUntrusted => {
                    tracing::warn!(reason = fault.reason_str(), "nothing expires until the clock is trusted");
                }
                Err(fault) => tracing::error!(reason = fault.reason_str(), "the sweep failed: {fault}"),
            }
        }
    }

    /// Expires what is over of one approval; `false`: nothing was, and nothing was written.
    pub(crate) async fn expire_card(&self, tx: &mut Tx, card: &mut Card) -> Result<bool, Fault> {
        let now = tx.now();
        let waited = card.approval.expires_at.is_some_and(|end| end <= now);
        let approval = card.approval.clone();
        let mut changes = Changes::default();
        for item in &mut card.items {
            let over = match item.state {
                Item::Pending => waited,
                Item::Approved => item.ends_at.is_none_or(|end| end <= now),
                _ => false,
            };
            if over {
                item.ends_at = None;
                let cause = Cause { actor: &self.zones.own, reason: "EXPIRED", ..Cause::default() };
                self.transit(tx, &approval, item, Event::Expire, cause, &mut changes).await?;
            }
        }
        let changed = !changes.is_empty();
        self.conclude(tx, card, changes).await?;
        Ok(changed)
    }
}
