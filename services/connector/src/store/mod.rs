//! The journal's store contract. Every write is inside the caller's transaction, with its log entry.

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::Journal;
use exequatur_store::Tx;

mod sqlite;
#[cfg(test)]
mod suite;

pub use sqlite::{MIGRATIONS, Sqlite};

/// Names one action everywhere: two actions of a plan may be equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Tenant.
    pub tenant: String,
    /// 32 bytes.
    pub plan_digest: Vec<u8>,
    /// Position in the plan.
    pub index: u32,
}

/// The row of one action; it describes its newest attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The action.
    pub key: Key,
    /// The run.
    pub run: String,
    /// The tool.
    pub tool: String,
    /// 1..5.
    pub attempt: u32,
    /// State of that attempt.
    pub state: Journal,
    /// 32 bytes.
    pub action_digest: Vec<u8>,
    /// 32 bytes.
    pub wire_digest: Vec<u8>,
    /// Id of the warrant that opened the attempt.
    pub warrant: String,
    /// SHA-256 of that warrant's envelope, 32 bytes; empty in rows older than the column.
    pub warrant_digest: Vec<u8>,
    /// Whether an item was reserved for it.
    pub held: bool,
    /// Whether the tool only reads.
    pub reads: bool,
    /// Id of the process that owns the attempt.
    pub process: String,
    /// PREPARED had to be written before.
    pub start_by: UnixMillis,
    /// From then on another process may say that nobody knows; 0 before the dispatch.
    pub settle_at: UnixMillis,
    /// Leases of the attempt.
    pub leases: Vec<String>,
    /// For each of them the lease of a dynamic secret at Vault; empty: none.
    pub vault_leases: Vec<String>,
    /// Envelope of the signed outcome, once there is one.
    pub outcome: Option<Vec<u8>>,
    /// Redacted result, at most 64 KiB.
    pub result: Option<Vec<u8>>,
}

/// What was cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A run.
    Run(String),
    /// A plan.
    Plan(Vec<u8>),
    /// One action.
    Action(Vec<u8>, u32),
    /// A tool.
    Tool(String),
    /// The whole tenant.
    Tenant,
}

impl Subject {
    /// Its key in the store.
    #[must_use]
    pub fn key(&self) -> (&'static str, String) {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        match self {
            Self::Run(run) => ("run", run.clone()),
            Self::Plan(digest) => ("plan", hex(digest)),
            Self::Action(digest, index) => ("action", format!("{}/{index}", hex(digest))),
            Self::Tool(tool) => ("tool", tool.clone()),
            Self::Tenant => ("tenant", String::new()),
        }
    }

    /// Whether it covers a row.
    #[must_use]
    pub fn covers(&self, row: &Row) -> bool {
        match self {
            Self::Run(run) => row.run == *run,
            Self::Plan(digest) => row.key.plan_digest == *digest,
            Self::Action(digest, index) => row.key.plan_digest == *digest && row.key.index == *index,
            Self::Tool(tool) => row.tool == *tool,
            Self::Tenant => true,
        }
    }
}

/// The journal. Rows are created by [`JournalStore::open`] and changed by [`JournalStore::advance`] only.
#[async_trait]
pub trait JournalStore: Send + Sync {
    /// The id that the journal was created under; adopts `id` when the database is new.
    async fn id(&self, tx: &mut Tx, id: &str) -> Result<String, Fault>;
    /// The row of an action.
    async fn get(&self, tx: &mut Tx, key: &Key) -> Result<Option<Row>, Fault>;
    /// Writes a first or a next attempt. False when the row is not `after` (`None`: not there): then
    /// nothing was written.
    async fn open(&self, tx: &mut Tx, row: &Row, after: Option<(u32, Journal)>) -> Result<bool, Fault>;
    /// Compare-and-set: writes the row if attempt and state are still `from`. False: nothing was written.
    async fn advance(&self, tx: &mut Tx, row: &Row, from: Journal) -> Result<bool, Fault>;
    /// Rows in PREPARED or DISPATCHED.
    async fn unfinished(&self, tx: &mut Tx) -> Result<Vec<Row>, Fault>;
    /// Rows of a tenant that were or may have been sent, or are prepared.
    async fn of_tenant(&self, tx: &mut Tx, tenant: &str) -> Result<Vec<Row>, Fault>;
    /// Remembers that a subject is cancelled; a repeat changes nothing.
    async fn cancel(&self, tx: &mut Tx, tenant: &str, subject: &Subject) -> Result<(), Fault>;
    /// Whether any of the subjects is cancelled.
    async fn is_cancelled(&self, tx: &mut Tx, tenant: &str, subjects: &[Subject]) -> Result<bool, Fault>;
}
