//! One signed record per refused call, whichever door refused it. A record that cannot be kept is
//! said loudly and does not turn a no into a yes.

use async_trait::async_trait;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::ledger::v1::Refusal;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::{Caller, Refusals};

use super::App;

/// The log of what belongs to no tenant.
const REALM: &str = "_realm";

/// What a call was about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// gRPC method path.
    pub method: &'a str,
    /// Who called.
    pub caller: &'a Caller,
}

/// A fault that is a no, and not an outage.
const fn is_refusal(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::Internal
            | Reason::Unavailable
            | Reason::StorageFailed
            | Reason::Conflict
            | Reason::ClockUntrusted
            | Reason::DeadlineExceeded
            | Reason::LedgerGap
    )
}

impl App {
    /// Passes a result on; a refusal leaves its record first.
    ///
    /// # Errors
    /// The fault that was given.
    pub async fn answer<T>(&self, subject: Subject<'_>, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result
            && is_refusal(fault.reason())
        {
            let of = |key: &str| fault.metadata().get(key).cloned().unwrap_or_default();
            let refusal = Refusal {
                method: subject.method.to_owned(),
                caller: subject.caller.id.clone(),
                reason: fault.reason_str().to_owned(),
                expected: of("expected"),
                found: of("found"),
                plan_digest: of("plan")
                    .parse::<exequatur_canonical::Digest>()
                    .map(|d| d.to_vec())
                    .unwrap_or_default(),
                index: of("index").parse().unwrap_or_default(),
            };
            let tenant = of("tenant");
            self.record(Some(tenant.as_str()).filter(|t| !t.is_empty()), refusal).await;
        }
        result
    }

    async fn keep(&self, tenant: &str, refusal: Refusal) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        self.ledger.append(&mut tx, tenant, Body::Refusal(refusal)).await?;
        tx.commit().await
    }
}

#[async_trait]
impl Refusals for App {
    async fn record(&self, tenant: Option<&str>, refusal: Refusal) {
        let (method, reason) = (refusal.method.clone(), refusal.reason.clone());
        if let Err(fault) = self.keep(tenant.unwrap_or(REALM), refusal).await {
            tracing::error!(%method, %reason, "a refusal could not be recorded: {fault}");
        }
    }
}
