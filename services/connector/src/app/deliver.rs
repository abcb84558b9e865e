//! The outbox's messages on their way: commits and releases to approval, leases back to
//! credential-vault. At least once; the receivers take repeats.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_ledger::outbox::Message;
use exequatur_proto::approval::v1::{CommitRequest, ReleaseRequest};
use exequatur_proto::credential::v1::GiveBackRequest;
use exequatur_proto::statement::v1::Envelope;
use prost::Message as _;

use super::App;

const PEER: Duration = Duration::from_secs(10);

impl App {
    /// Delivers one message. What the receiver refuses for good is said loudly and dropped: a
    /// refusal does not change by being repeated.
    ///
    /// # Errors
    /// An outage: the message stays.
    pub async fn deliver(&self, message: Message) -> Result<(), Fault> {
        match self.hand_over(&message).await {
            Err(fault) if is_final(fault.reason()) => {
                tracing::error!(kind = %message.kind, reason = fault.reason_str(), "refused for good: {}", fault.message());
                Ok(())
            }
            other => other,
        }
    }

    async fn hand_over(&self, message: &Message) -> Result<(), Fault> {
        let outcome = || Envelope::decode(message.payload.as_slice()).map(Some).map_err(Fault::internal);
        match message.kind.as_str() {
            "commit" => {
                let mut request = tonic::Request::new(CommitRequest { outcome: outcome()? });
                request.set_timeout(PEER);
                self.approval.clone().commit(request).await.map(drop).map_err(|s| Fault::from_status(&s))
            }
            "release" => {
                let mut request = tonic::Request::new(ReleaseRequest { outcome: outcome()? });
                request.set_timeout(PEER);
                self.approval.clone().release(request).await.map(drop).map_err(|s| Fault::from_status(&s))
            }
            "give_back" => {
                self.give_back(GiveBackRequest::decode(message.payload.as_slice()).map_err(Fault::internal)?)
                    .await
            }
            _ => Err(Fault::internal("the outbox holds a message of an unknown kind")),
        }
    }
}

const fn is_final(reason: Reason) -> bool {
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
    )
}
