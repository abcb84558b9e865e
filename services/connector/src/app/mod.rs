//! The connector's use cases, one per file; the only place of its rules. Knows no transport of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use exequatur_clock::UnixMillis;
use exequatur_egress::Egress;
use exequatur_lease_client::lease_service_client::LeaseServiceClient;
use exequatur_ledger::Ledger;
use exequatur_proto::statement::v1::{Envelope, Header};
use exequatur_reservation_client::reservation_service_client::ReservationServiceClient;
use exequatur_statement::{SigningKey, Trust};
use exequatur_store::Store;
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;

use crate::store::{JournalStore, Key};

mod attempt;
mod cancel;
mod deliver;
mod execute;
mod finish;
mod opening;
mod refusals;
mod reseal;
mod resolve;
mod secrets;
mod send;
mod sweep;

pub use execute::Watching;
pub use opening::{Held, KeyRing, Opening};
pub use refusals::Call;

/// Attempts that an action has.
pub const MAX_ATTEMPTS: u32 = 5;
/// A peer's clock may be that far ahead.
const LEEWAY: Duration = Duration::from_secs(5);
/// After the dispatch is durable, the first byte must go within this time.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// Beyond send-by and time-out, before anybody else may say that nobody knows.
const GRACE: Duration = Duration::from_secs(5);
/// How long an outcome can be shown.
const OUTCOME_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Bytes of a result that are kept and handed back.
pub const MAX_RESULT: usize = 64 * 1024;

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The signed outcome.
    pub outcome: Envelope,
    /// The redacted result, at most [`MAX_RESULT`].
    pub result: Vec<u8>,
}

/// What an attempt under way says.
#[derive(Debug, Clone)]
pub enum Stage {
    /// A step was reached.
    Step(&'static str),
    /// It ended.
    Finished(Box<Finished>),
    /// The task went away; ask again.
    Lost,
}

/// SPIFFE IDs that the connector writes into and expects in statements.
#[derive(Debug, Clone)]
pub struct Zones {
    /// This zone.
    pub own: String,
    /// Who signs warrants and hears outcomes.
    pub governance: String,
    /// Who signs decisions and reservations.
    pub approval: String,
    /// Whom reservations are for.
    pub credential_vault: String,
}

/// What the use cases stand on.
pub struct App {
    /// The database.
    pub store: Store,
    /// The journal in it.
    pub journal: Arc<dyn JournalStore>,
    /// The zone's log.
    pub ledger: Ledger,
    /// The trust bundle in force.
    pub trust: Trust,
    /// Signs outcomes.
    pub outcome_key: Arc<SigningKey>,
    /// Opens credentials.
    pub opening: Opening,
    /// Secrets that stay open between actions.
    pub held: Held,
    /// The way out.
    pub egress: Egress,
    /// Approval's door for the connector.
    pub approval: ReservationServiceClient<Channel>,
    /// credential-vault's door for the connector.
    pub vault: LeaseServiceClient<Channel>,
    /// Who is who.
    pub zones: Zones,
    /// Id of this process; attempts belong to it.
    pub process: String,
    /// Wakes the outbox.
    pub wake: Arc<Notify>,
    /// Attempts of this process that are under way.
    pub running: Mutex<HashMap<Key, watch::Receiver<Stage>>>,
}

impl App {
    fn header(&self, now: UnixMillis, tenant: &str) -> Header {
        Header {
            issuer: self.zones.own.clone(),
            audience: self.zones.governance.clone(),
            tenant: tenant.to_owned(),
            id: uuid::Uuid::now_v7().to_string(),
            issued_at: Some(now.to_proto()),
            expires_at: Some(now.saturating_add(OUTCOME_LIFE).to_proto()),
        }
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, HashMap<Key, watch::Receiver<Stage>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
