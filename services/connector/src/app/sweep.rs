//! Rows that a dead process left: prepared ones are aborted, dispatched ones end in doubt. Runs at
//! start, now and then, and whenever somebody asks for such a row.

use std::sync::Arc;
use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::Journal;
use exequatur_store::Tx;
use tokio::sync::watch;

use super::execute::is_abandoned;
use super::finish::End;
use super::{App, Finished};
use crate::store::Row;

const INTERVAL: Duration = Duration::from_secs(1);

impl App {
    /// Settles one unfinished row if its time has come; `None`: not yet.
    pub(crate) async fn settle(&self, mut tx: Tx, row: Row) -> Result<Option<Finished>, Fault> {
        let end = match row.state {
            Journal::Prepared if is_abandoned(&row, tx.now()) => {
                let fault = Fault::new(Reason::Unavailable, "the connector stopped before anything was sent");
                End::aborted(&fault.retryable(true))
            }
            Journal::Dispatched if tx.now() > row.settle_at => End::unclear(&row),
            _ => return Ok(None),
        };
        let finished = self.end(&mut tx, &row, end, Vec::new()).await?;
        tx.commit().await?;
        self.wake.notify_one();
        Ok(finished)
    }

    /// Settles what can be settled, until told to stop.
    pub async fn sweep(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        loop {
            if let Err(fault) = self.sweep_once().await {
                tracing::warn!(reason = fault.reason_str(), "unfinished attempts could not be settled");
            }
            if let Err(fault) = self.give_back_closed().await {
                tracing::warn!(
                    reason = fault.reason_str(),
                    "secrets that were closed could not be given back"
                );
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = shutdown.wait_for(|stop| *stop) => break,
            }
        }
        // Told now, carried out by the next start.
        self.held.close(|_| true);
        if let Err(fault) = self.give_back_closed().await {
            tracing::warn!(reason = fault.reason_str(), "open secrets end by their leases' own life");
        }
    }

    async fn sweep_once(&self) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let rows = self.journal.unfinished(&mut tx).await?;
        drop(tx);
        for row in rows {
            // An attempt of this very process ends by itself.
            if !self.attempts().contains_key(&row.key) {
                let tx = self.store.begin().await?;
                self.settle(tx, row).await?;
            }
        }
        Ok(())
    }
}
