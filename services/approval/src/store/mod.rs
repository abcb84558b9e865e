//! The store contract of approval, in domain words. Knows no SQL and no rule; the behaviour suite
//! says how an implementation must behave.

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::Item;
use exequatur_proto::approval::v1::{ApprovalState, WatchApprovalsResponse};
use exequatur_store::Tx;

mod row;
mod sqlite;
#[cfg(test)]
mod suite;

pub use sqlite::{MIGRATIONS, Sqlite};

/// A stored approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    /// UUIDv7; its order is the order of opening.
    pub approval: String,
    /// Tenant of the header.
    pub tenant: String,
    /// 32 bytes.
    pub plan_digest: Vec<u8>,
    /// Agent of the header.
    pub agent: String,
    /// Frozen header bytes.
    pub header: Vec<u8>,
    /// 32 bytes.
    pub rule_set_digest: Vec<u8>,
    /// SHA-256 of the opening request; tells a repeat from another request.
    pub request_digest: Vec<u8>,
    /// When it was opened.
    pub opened_at: UnixMillis,
    /// End of the wait; `None`: never.
    pub expires_at: Option<UnixMillis>,
    /// Seconds that a yes stays usable.
    pub window_s: u64,
    /// People that must agree.
    pub quorum: u32,
    /// State as a whole, derived from its items.
    pub state: ApprovalState,
    /// Envelope bytes of the signed decision.
    pub decision: Option<Vec<u8>>,
    /// End of the window that the yes opened.
    pub window_ends_at: Option<UnixMillis>,
}

/// A stored action; all actions of a plan, held or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRow {
    /// Position in the plan.
    pub index: u32,
    /// Frozen bytes.
    pub action: Vec<u8>,
    /// Envelope bytes of the operator-signed definition.
    pub definition: Vec<u8>,
    /// 32 bytes, or empty where a rule denied before the request was prepared.
    pub wire_digest: Vec<u8>,
    /// The tool.
    pub tool: String,
    /// A person must decide it.
    pub held: bool,
    /// The rule.
    pub rule: String,
}

/// A held action's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// Position in the plan.
    pub index: u32,
    /// The tool.
    pub tool: String,
    /// State.
    pub state: Item,
    /// Stable reason of the last change; may be empty.
    pub reason: String,
    /// Attempt that it is or was reserved for; 0: none.
    pub attempt: u32,
    /// Highest attempt that is closed for ever.
    pub closed: u32,
    /// Envelope bytes of the reservation.
    pub reservation: Option<Vec<u8>>,
    /// Reason of a withdrawal that came while it was reserved; applied at release.
    pub withdrawal: String,
    /// When a person said yes.
    pub approved_at: Option<UnixMillis>,
    /// End of its window.
    pub ends_at: Option<UnixMillis>,
    /// Own log entry that opened it.
    pub opened_entry: u64,
    /// Own log entry of its present state.
    pub last_entry: u64,
}

/// An approval with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The approval.
    pub approval: ApprovalRow,
    /// Every action, by position.
    pub actions: Vec<ActionRow>,
    /// Every held action's item, by position.
    pub items: Vec<ItemRow>,
}

/// Which approvals a page holds, newest first.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Only of these tenants.
    pub tenants: Vec<String>,
    /// Only this state.
    pub state: Option<ApprovalState>,
    /// Only older than this one.
    pub before: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// An enrolled person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerRow {
    /// SPIFFE ID.
    pub person: String,
    /// When.
    pub enrolled_at: UnixMillis,
}

/// What approval keeps. Methods that take a `Tx` belong to the caller's transaction; the others
/// read what is committed. All fail with the store's faults only.
#[async_trait]
pub trait ApprovalStore: Send + Sync {
    /// Writes a new approval with actions and items; the pair (tenant, plan digest) must be new.
    async fn insert(&self, tx: &mut Tx, card: &Card) -> Result<(), Fault>;
    /// The approval of a plan.
    async fn by_plan(&self, tx: &mut Tx, tenant: &str, plan_digest: &[u8]) -> Result<Option<Card>, Fault>;
    /// The approval of an id.
    async fn by_id(&self, tx: &mut Tx, approval: &str) -> Result<Option<Card>, Fault>;
    /// Replaces an item if it is still in `from`; `false`: it is not, and nothing was written.
    async fn change_item(
        &self,
        tx: &mut Tx,
        approval: &str,
        from: Item,
        item: &ItemRow,
    ) -> Result<bool, Fault>;
    /// Writes state, decision and window of an approval.
    async fn update(&self, tx: &mut Tx, approval: &ApprovalRow) -> Result<(), Fault>;
    /// Appends an event; its sequence is the one after the last, never reused.
    async fn push_event(&self, tx: &mut Tx, event: &WatchApprovalsResponse) -> Result<u64, Fault>;
    /// Approvals with an item whose wait or window is over at `now`, at most `limit`.
    async fn due(&self, now: UnixMillis, limit: u32) -> Result<Vec<String>, Fault>;
    /// Events after a sequence, in order.
    async fn events_after(&self, sequence: u64, limit: u32) -> Result<Vec<WatchApprovalsResponse>, Fault>;
    /// The approval of an id, outside a transaction.
    async fn card(&self, approval: &str) -> Result<Option<Card>, Fault>;
    /// A page of approvals.
    async fn page(&self, page: &Page) -> Result<Vec<Card>, Fault>;
    /// Frozen bytes of the newest approved action of the same tool and agent, of another approval.
    async fn last_approved(
        &self,
        tenant: &str,
        agent: &str,
        tool: &str,
        except: &str,
    ) -> Result<Option<Vec<u8>>, Fault>;
    /// Enrols a person; `false`: was enrolled already.
    async fn put_reviewer(
        &self,
        tx: &mut Tx,
        tenant: &str,
        person: &str,
        at: UnixMillis,
    ) -> Result<bool, Fault>;
    /// Removes a person; `false`: was not enrolled.
    async fn remove_reviewer(&self, tx: &mut Tx, tenant: &str, person: &str) -> Result<bool, Fault>;
    /// Whether a person is enrolled, as of this transaction.
    async fn is_reviewer(&self, tx: &mut Tx, tenant: &str, person: &str) -> Result<bool, Fault>;
    /// All reviewers of a tenant, by id.
    async fn reviewers(&self, tenant: &str) -> Result<Vec<ReviewerRow>, Fault>;
    /// Tenants for which a person is enrolled.
    async fn reviewer_tenants(&self, person: &str) -> Result<Vec<String>, Fault>;
    /// Tenants with a pending approval and no reviewer.
    async fn unattended_tenants(&self) -> Result<Vec<String>, Fault>;
    /// Whether anybody at all is enrolled.
    async fn any_reviewer(&self) -> Result<bool, Fault>;
}
