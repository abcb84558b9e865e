//! One signed record per refused call. A record that cannot be kept is said loudly and does not
//! turn a no into a yes.

use async_trait::async_trait;
use exequatur_canonical::Digest;
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::REALM;
use exequatur_proto::ledger::v1::Refusal;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::Refusals;

use super::{App, is_name};

/// What a call was about.
#[derive(Debug, Clone)]
pub struct Call {
    /// gRPC method path.
    pub method: &'static str,
    /// Who called.
    pub caller: String,
    /// Tenant that it was about and that the caller may act for; `None`: none.
    pub tenant: Option<String>,
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
    pub async fn answer<T>(&self, call: &Call, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result
            && is_refusal(fault.reason())
        {
            let of = |key: &str| fault.metadata().get(key).cloned().unwrap_or_default();
            let refusal = Refusal {
                method: call.method.to_owned(),
                caller: call.caller.clone(),
                reason: fault.reason_str().to_owned(),
                expected: of("expected"),
                found: of("found"),
                plan_digest: of("plan").parse::<Digest>().map(|d| d.to_vec()).unwrap_or_default(),
                index: of("index").parse().unwrap_or_default(),
            };
            self.record(call.tenant.as_deref().filter(|t| is_name(t)), refusal).await;
        }
        result
    }

    pub(crate) async fn append(&self, tenant: &str, body: Body) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        self.ledger.append(&mut tx, tenant, body).await?;
        tx.commit().await
    }
}

#[async_trait]
impl Refusals for App {
    async fn record(&self, tenant: Option<&str>, refusal: Refusal) {
        let (method, reason) = (refusal.method.clone(), refusal.reason.clone());
        if let Err(fault) = self.append(tenant.unwrap_or(REALM), Body::Refusal(refusal)).await {
            tracing::error!(%method, %reason, "a refusal could not be recorded: {fault}");
        }
    }
}
