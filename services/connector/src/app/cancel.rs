//! Cancelling a run, plan, action, tool or tenant: what is prepared is aborted, later warrants are
//! refused, and what was already sent is told.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::Journal;
use exequatur_proto::execution::v1::{ActionRef, CancelResponse};

use super::App;
use super::finish::End;
use crate::store::Subject;

impl App {
    /// Cancels; a repeat changes nothing.
    ///
    /// # Errors
    /// `STORAGE_FAILED`: nothing is cancelled then.
    pub async fn cancel(&self, tenant: &str, subject: &Subject) -> Result<CancelResponse, Fault> {
        let mut tx = self.store.begin().await?;
        self.journal.cancel(&mut tx, tenant, subject).await?;
        let mut response = CancelResponse::default();
        for row in self.journal.of_tenant(&mut tx, tenant).await? {
            if !subject.covers(&row) {
                continue;
            }
            if row.state == Journal::Prepared {
                let end = End::aborted(&Fault::new(Reason::Cancelled, "cancelled"));
                if let Some(finished) = self.end(&mut tx, &row, end, Vec::new()).await? {
                    response.aborted.push(finished.outcome);
                }
            } else {
                let sent = ActionRef { plan_digest: row.key.plan_digest.clone(), index: row.key.index };
                response.already_sent.push(sent);
            }
        }
        tx.commit().await?;
        self.held.close(|purpose| match subject {
            Subject::Run(run) => purpose.tenant == tenant && purpose.run.as_ref() == Some(run),
            Subject::Tenant => purpose.tenant == tenant,
            Subject::Plan(_) | Subject::Action(..) | Subject::Tool(_) => false,
        });
        self.wake.notify_one();
        Ok(response)
    }
}
