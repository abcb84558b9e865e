//! Following item changes from a sequence number on, without end and without polling.

use std::sync::Arc;

use exequatur_fault::Fault;
use exequatur_proto::approval::v1::WatchApprovalsResponse;
use tokio::sync::mpsc;

use super::App;

/// Events read at a time, and kept for a slow reader.
const BATCH: u32 = 64;

impl App {
    /// Events after `sequence`, first the stored ones, then each as it is committed. Ends when the
    /// receiver is dropped.
    #[must_use]
    pub fn follow(self: &Arc<Self>, sequence: u64) -> mpsc::Receiver<Result<WatchApprovalsResponse, Fault>> {
        let (sender, receiver) = mpsc::channel(64);
        let app = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(fault) = app.feed(sequence, &sender).await {
                // The reader is gone: nobody is left to tell.
                drop(sender.send(Err(fault)).await);
            }
        });
        receiver
    }

    async fn feed(
        &self,
        mut sequence: u64,
        sender: &mpsc::Sender<Result<WatchApprovalsResponse, Fault>>,
    ) -> Result<(), Fault> {
        // Subscribed before the first read, so that nothing falls between.
        let mut bell = self.events.subscribe();
        loop {
            bell.borrow_and_update();
            loop {
                let events = self.rows.events_after(sequence, BATCH).await?;
                if events.is_empty() {
                    break;
                }
                for event in events {
                    sequence = event.sequence;
                    if sender.send(Ok(event)).await.is_err() {
                        return Ok(());
                    }
                }
            }
            tokio::select! {
                rung = bell.changed() => if rung.is_err() { return Ok(()) },
                () = sender.closed() => return Ok(()),
            }
        }
    }
}
