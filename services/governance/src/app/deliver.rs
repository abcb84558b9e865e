//! The outbox's messages on their way: approvals opened and withdrawn, cancellations. At least once;
//! the receivers take repeats.

use exequatur_fault::{Fault, Reason};
use exequatur_ledger::outbox::Message;
use exequatur_lifecycle::Event;
use exequatur_proto::approval::v1::{OpenApprovalRequest, WithdrawApprovalRequest};
use exequatur_proto::execution::v1::CancelRequest;
use prost::Message as _;

use super::change::Cause;
use super::{App, PEER};

impl App {
    /// Delivers one message. What the receiver refuses for good ends here: a refused approval denies
    /// the actions that it was for, anything else is said loudly.
    ///
    /// # Errors
    /// An outage: the message stays.
    pub async fn deliver(&self, message: Message) -> Result<(), Fault> {
        let payload = message.payload.as_slice();
        let sent = match message.kind.as_str() {
            "open" => self.open(OpenApprovalRequest::decode(payload).map_err(Fault::internal)?).await,
            "withdraw" => {
                let mut request =
                    tonic::Request::new(WithdrawApprovalRequest::decode(payload).map_err(Fault::internal)?);
                request.set_timeout(PEER);
                let sent = self.approval.clone().withdraw_approval(request).await;
                sent.map(drop).map_err(|s| Fault::from_status(&s))
            }
            "cancel" => {
                let mut request =
                    tonic::Request::new(CancelRequest::decode(payload).map_err(Fault::internal)?);
                request.set_timeout(PEER);
                let sent = self.connector.clone().cancel(request).await;
                // Whoever was asked about these actions asks again and learns what became of them.
                self.work.notify_one();
                sent.map(drop).map_err(|s| Fault::from_status(&s))
            }
            _ => Err(Fault::internal("the outbox holds a message of an unknown kind")),
        };
        match sent {
            Err(fault) if is_final(fault.reason()) => {
                tracing::error!(kind = %message.kind, reason = fault.reason_str(), "refused for good: {}", fault.message());
                Ok(())
            }
            other => other,
        }
    }

    async fn open(&self, request: OpenApprovalRequest) -> Result<(), Fault> {
        let header = request.header.clone();
        let mut call = tonic::Request::new(request);
        call.set_timeout(PEER);
        let answer = self.approval.clone().open_approval(call).await.map_err(|s| Fault::from_status(&s));
        let digest = exequatur_canonical::digest_with("exequatur.plan.v1", &header);
        let mut tx = self.store.begin().await?;
        let Some(mut plan) = self.rows.plan_by_digest(&mut tx, digest.as_bytes()).await? else {
            return Ok(());
        };
        match answer {
            Ok(response) => plan.approval = response.into_inner().approval,
            Err(fault) if is_final(fault.reason()) => {
                for index in 0..u32::try_from(plan.actions.len()).unwrap_or(u32::MAX) {
                    let cause = Cause::of(&self.zones.approval, fault.reason(), fault.message());
                    self.step(&mut tx, &mut plan, index, Event::Withdraw, cause).await?;
                }
                self.progress(&mut tx, &mut plan).await?;
            }
            Err(fault) => return Err(fault),
        }
        plan.sequence += 1;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await
    }
}

pub(crate) const fn is_final(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::Unavailable
            | Reason::StorageFailed
            | Reason::Conflict
            | Reason::ClockUntrusted
            | Reason::DeadlineExceeded
            | Reason::Internal
            | Reason::Unauthenticated
            | Reason::CallerNotAllowed
            | Reason::LedgerGap
    )
}
