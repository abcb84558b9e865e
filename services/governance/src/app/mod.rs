//! Governance's use cases, one per file; the only place of its rules. Knows no transport of its own.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exequatur_approval_client::approval_service_client::ApprovalServiceClient;
use exequatur_execution_client::execution_service_client::ExecutionServiceClient;
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::Ledger;
use exequatur_statement::{SigningKey, Trust};
use exequatur_store::{Store, Tx};
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;

use crate::store::GovernanceStore;

mod approvals;
mod change;
mod deliver;
mod dispatch;
mod drafts;
mod halt;
mod own;
mod plans;
mod propose;
mod receipt;
mod refusals;
mod register;
mod resolve;
mod run;
mod token;

pub use propose::Proposal;
pub use refusals::Call;
pub use run::{Minted, Start, covers};

/// A peer's clock may be that far ahead.
pub(crate) const PEER: Duration = Duration::from_secs(10);

/// SPIFFE IDs that governance writes into and expects in statements.
#[derive(Debug, Clone)]
pub struct Zones {
    /// Trust domain.
    pub realm: String,
    /// This zone.
    pub own: String,
    /// Who signs decisions.
    pub approval: String,
    /// Who executes and signs outcomes.
    pub connector: String,
}

/// What the use cases stand on.
pub struct App {
    /// The database.
    pub store: Store,
    /// Governance's tables in it.
    pub rows: Arc<dyn GovernanceStore>,
    /// The zone's log.
    pub ledger: Ledger,
    /// The trust bundle in force.
    pub trust: Trust,
    /// Signs run tokens.
    pub token_key: Arc<SigningKey>,
    /// Signs warrants.
    pub warrant_key: Arc<SigningKey>,
    /// Approval's door for governance.
    pub approval: ApprovalServiceClient<Channel>,
    /// The connector's door.
    pub connector: ExecutionServiceClient<Channel>,
    /// Who is who.
    pub zones: Zones,
    /// Tenants that are served; `None`: all for which the trust bundle lets somebody act.
    pub tenants: Option<BTreeSet<String>>,
    /// Wakes the outbox.
    pub outbox: Arc<Notify>,
    /// Wakes the dispatcher.
    pub work: Arc<Notify>,
    /// Rings after every committed change of a plan.
    pub changed: watch::Sender<()>,
    /// Plans that this process is dispatching.
    pub busy: Mutex<HashSet<String>>,
}

impl App {
    /// Refuses a tenant that is not a name or not served.
    fn served(&self, tenant: &str) -> Result<(), Fault> {
        name("tenant", tenant)?;
        if self.tenants.as_ref().is_none_or(|all| all.contains(tenant)) {
            return Ok(());
        }
        Err(Fault::new(
            Reason::TenantNotAllowed,
            "this tenant is not served here; an operator must add it to the tenants file",
        ))
    }

    /// Commits, then wakes everybody who waits for changes.
    async fn commit(&self, tx: Tx) -> Result<(), Fault> {
        tx.commit().await?;
        self.outbox.notify_one();
        self.work.notify_one();
        self.changed.send_replace(());
        Ok(())
    }
}

/// Whether a tenant or agent is `[a-z0-9][a-z0-9._-]{0,62}`.
pub(crate) fn is_name(name: &str) -> bool {
    let head = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 63
        && name.bytes().next().is_some_and(head)
        && name.bytes().all(|b| head(b) || b"._-".contains(&b))
}

fn name(field: &str, value: &str) -> Result<(), Fault> {
    if is_name(value) {
        return Ok(());
    }
    Err(Fault::field(field, format!("`{field}` must be [a-z0-9][a-z0-9._-]{{0,62}}")))
}

fn key(value: &str) -> Result<(), Fault> {
    let fits = (1..=128).contains(&value.len()) && value.bytes().all(|b| (0x20..0x7f).contains(&b));
    if fits {
        Ok(())
    } else {
        Err(Fault::field("idempotency_key", "send 1 to 128 printable ASCII characters"))
    }
}

fn limit(what: &str, found: usize, maximum: usize) -> Result<(), Fault> {
    if found <= maximum {
        return Ok(());
    }
    Err(Fault::new(Reason::LimitExceeded, format!("`{what}` has {found}, at most {maximum} are allowed"))
        .with("limit", what)
        .with("maximum", maximum.to_string()))
}
