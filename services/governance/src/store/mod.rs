//! Governance's store contract. Every write is inside the caller's transaction, with its log entry.

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::{Action as State, Machine as _, Plan as PlanState, Run as RunState, derive_plan};
use exequatur_store::Tx;

mod rows;
mod sqlite;
#[cfg(test)]
mod suite;
pub use sqlite::{MIGRATIONS, Sqlite};

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// UUIDv7.
    pub run: String,
    /// Tenant.
    pub tenant: String,
    /// Agent.
    pub agent: String,
    /// Principal that answers for it.
    pub owner: String,
    /// Caller of StartRun; may renew.
    pub starter: String,
    /// Exact tool names or prefixes ending in `.*`.
    pub scopes: Vec<String>,
    /// State.
    pub state: RunState,
    /// When it started.
    pub started_at: UnixMillis,
    /// End of its life.
    pub expires_at: UnixMillis,
    /// Life of each token, milliseconds.
    pub token_ttl: i64,
    /// Parent; empty: none.
    pub parent: String,
}

/// A registered tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRow {
    /// Its name.
    pub tool: String,
    /// 32 bytes.
    pub digest: Vec<u8>,
    /// Envelope of the signed definition.
    pub definition: Vec<u8>,
}

/// A plan with its actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRow {
    /// UUIDv7.
    pub plan: String,
    /// Tenant.
    pub tenant: String,
    /// The run.
    pub run: String,
    /// 32 bytes.
    pub digest: Vec<u8>,
    /// Frozen header.
    pub header: Vec<u8>,
    /// Digest over the ordered effect digests.
    pub effects: Vec<u8>,
    /// Sequence of the signed PlanProposed entry.
    pub entry: u64,
    /// Grows with every change.
    pub sequence: u64,
    /// Approval that decides it; empty: none yet.
    pub approval: String,
    /// Envelope of approval's decision.
    pub decision: Option<Vec<u8>>,
    /// In order.
    pub actions: Vec<ActionRow>,
}

impl PlanRow {
    /// Derived from the actions.
    #[must_use]
    pub fn state(&self) -> PlanState {
        derive_plan(&self.actions.iter().map(|a| a.state).collect::<Vec<_>>())
    }

    /// Whether anything may still change.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.actions.iter().any(|a| !a.state.is_terminal())
    }
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRow {
    /// Position in the plan.
    pub index: u32,
    /// The tool.
    pub tool: String,
    /// Frozen bytes.
    pub action: Vec<u8>,
    /// Envelope of the signed definition that it was proposed against.
    pub definition: Vec<u8>,
    /// 32 bytes.
    pub digest: Vec<u8>,
    /// 32 bytes.
    pub effect_digest: Vec<u8>,
    /// 32 bytes; empty where it was denied before it was prepared.
    pub wire_digest: Vec<u8>,
    /// auto_approve, require_human or deny.
    pub verdict: String,
    /// State.
    pub state: State,
    /// The rule; `default` where none matched; empty: none was asked.
    pub rule: String,
    /// Stable reason.
    pub reason: String,
    /// For people.
    pub message: String,
    /// What would be allowed instead.
    pub instead: String,
    /// Pointers of defaults that were filled in.
    pub filled: Vec<String>,
    /// The attempt that is next or under way, 1..5.
    pub attempt: u32,
    /// Whether a warrant of this attempt may have reached the connector.
    pub asked: bool,
    /// Id of the connector's journal that was asked; empty: none was.
    pub journal: String,
    /// Not asked again before.
    pub retry_at: UnixMillis,
    /// Since when it may start; 0: not yet.
    pub ready_at: UnixMillis,
    /// An operator's hold.
    pub on_hold: bool,
    /// Envelope of the signed ABORTED before this attempt.
    pub previous_abort: Vec<u8>,
    /// Digest of the receipt's entry.
    pub receipt: Vec<u8>,
    /// Result that the return policy lets through.
    pub result: Vec<u8>,
}

/// The same key with another body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Never seen.
    New,
    /// The same call before; its result.
    Same(String),
    /// The same key with another body.
    Other,
}

/// Names one call for its idempotency.
#[derive(Debug, Clone, Copy)]
pub struct CallKey<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Who called.
    pub caller: &'a str,
    /// The method.
    pub method: &'a str,
    /// The caller's key.
    pub key: &'a str,
    /// Digest of the request.
    pub body: &'a [u8],
}

/// Runs, registers, plans.
#[async_trait]
pub trait GovernanceStore: Send + Sync {
    /// A run of a tenant.
    async fn run(&self, tx: &mut Tx, tenant: &str, run: &str) -> Result<Option<RunRow>, Fault>;
    /// Writes a run, new or changed.
    async fn put_run(&self, tx: &mut Tx, run: &RunRow) -> Result<(), Fault>;
    /// Runs of a tenant before an id (empty: from the newest), newest first.
    async fn runs(&self, tx: &mut Tx, tenant: &str, before: &str, limit: u32) -> Result<Vec<RunRow>, Fault>;
    /// Direct children of a run.
    async fn children(&self, tx: &mut Tx, tenant: &str, run: &str) -> Result<Vec<RunRow>, Fault>;

    /// A tool in force.
    async fn tool(&self, tx: &mut Tx, tenant: &str, tool: &str) -> Result<Option<ToolRow>, Fault>;
    /// Tools after a name, in order.
    async fn tools(&self, tx: &mut Tx, tenant: &str, after: &str, limit: u32) -> Result<Vec<ToolRow>, Fault>;
    /// Puts a tool in force. False: it already was, and nothing changed.
    async fn put_tool(&self, tx: &mut Tx, tenant: &str, tool: &ToolRow) -> Result<bool, Fault>;
    /// Digest and bytes of the rule set in force.
    async fn rule_set(&self, tx: &mut Tx, tenant: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>, Fault>;
    /// Puts a rule set in force. False: it already was, and nothing changed.
    async fn put_rule_set(
        &self,
        tx: &mut Tx,
        tenant: &str,
        digest: &[u8],
        bytes: &[u8],
    ) -> Result<bool, Fault>;

    /// Whether the call was made before.
    async fn seen(&self, tx: &mut Tx, call: CallKey<'_>) -> Result<Seen, Fault>;
    /// Remembers a call and its result.
    async fn remember(&self, tx: &mut Tx, call: CallKey<'_>, result: &str) -> Result<(), Fault>;

    /// A plan of a tenant.
    async fn plan(&self, tx: &mut Tx, tenant: &str, plan: &str) -> Result<Option<PlanRow>, Fault>;
    /// A plan by its digest.
    async fn plan_by_digest(&self, tx: &mut Tx, digest: &[u8]) -> Result<Option<PlanRow>, Fault>;
    /// Writes a plan, new or changed, with all its actions.
    async fn put_plan(&self, tx: &mut Tx, plan: &PlanRow) -> Result<(), Fault>;
    /// (tenant, plan) of everything that is open; of one run, or of all.
    async fn open_plans(&self, tx: &mut Tx, run: Option<&str>) -> Result<Vec<(String, String)>, Fault>;

    /// The last event of approval that was taken in.
    async fn cursor(&self, tx: &mut Tx) -> Result<u64, Fault>;
    /// Moves it.
    async fn set_cursor(&self, tx: &mut Tx, at: u64) -> Result<(), Fault>;
}
