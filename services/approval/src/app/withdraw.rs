//! Taking back what waits and revoking what is approved. Reserve is the point of decision: what is
//! reserved stays, and the withdrawal takes effect only if it is released.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item, Machine as _};
use exequatur_proto::approval::v1::{ItemChange, WithdrawApprovalRequest};
use exequatur_store::Tx;

use super::change::{Cause, Changes, item_change};
use super::{App, digest};
use crate::store::{ApprovalRow, ItemRow};

/// Reasons that may be given.
const REASONS: &[&str] = &[
    "WITHDRAWN",
    "RUN_REVOKED",
    "POLICY_CHANGED",
    "DEFINITION_CHANGED",
    "ATTEMPTS_EXHAUSTED",
    "SKIPPED",
    "EXPIRED",
];

/// What a withdrawal does to an item that is not reserved; `None`: it is too late or already over.
fn event(state: Item, reason: &str) -> Option<Event> {
    match (state, reason) {
        (Item::Pending | Item::Approved, "EXPIRED") => Some(Event::Expire),
        (Item::Pending, _) => Some(Event::Withdraw),
        (Item::Approved, "WITHDRAWN" | "RUN_REVOKED") => Some(Event::Revoke),
        (Item::Approved, _) => Some(Event::Void),
        _ => None,
    }
}

impl App {
    /// Withdraws items of a plan; a repeat changes nothing. Answers every named item as it is now;
    /// a reserved one with the reason `TOO_LATE`.
    ///
    /// # Errors
    /// `INVALID_FIELD` or `NOT_FOUND`.
    pub async fn withdraw(&self, request: &WithdrawApprovalRequest) -> Result<Vec<ItemChange>, Fault> {
        if !REASONS.contains(&request.reason.as_str()) {
            return Err(Fault::field("reason", format!("use one of {}", REASONS.join(", "))));
        }
        let plan = digest(&request.plan_digest, "plan_digest")?;
        let mut tx = self.store.begin().await?;
        let mut card = self
            .rows
            .by_plan(&mut tx, &request.tenant, plan.as_bytes())
            .await?
            .ok_or_else(|| Fault::not_found("approval", &plan.to_string()))?;
        for index in &request.indexes {
            if !card.items.iter().any(|item| item.index == *index) {
                return Err(Fault::field("indexes", format!("the plan has no held action {index}")));
            }
        }
        let mut changes = Changes::default();
        let mut answer = Vec::new();
        let approval = card.approval.clone();
        for item in &mut card.items {
            if !request.indexes.is_empty() && !request.indexes.contains(&item.index) {
                continue;
            }
            answer.push(self.withdraw_item(&mut tx, &approval, item, &request.reason, &mut changes).await?);
        }
        self.conclude(&mut tx, &mut card, changes).await?;
        self.commit(tx).await?;
        Ok(answer)
    }

    async fn withdraw_item(
        &self,
        tx: &mut Tx,
        approval: &ApprovalRow,
        item: &mut ItemRow,
        reason: &str,
        changes: &mut Changes,
    ) -> Result<ItemChange, Fault> {
        if item.state == Item::Reserved {
            if item.withdrawal.is_empty() {
                reason.clone_into(&mut item.withdrawal);
                if !self.rows.change_item(tx, &approval.approval, Item::Reserved, item).await? {
                    return Err(Fault::new(Reason::Conflict, "the item changed meanwhile; ask again"));
                }
            }
            return Ok(ItemChange { reason: "TOO_LATE".to_owned(), ..item_change(item) });
        }
        self.apply_withdrawal(tx, approval, item, reason, changes).await?;
        Ok(item_change(item))
    }

    /// Applies a withdrawal to an item that is not reserved.
    pub(crate) async fn apply_withdrawal(
        &self,
        tx: &mut Tx,
        approval: &ApprovalRow,
        item: &mut ItemRow,
        reason: &str,
        changes: &mut Changes,
    ) -> Result<(), Fault> {
        let Some(event) = event(item.state, reason) else { return Ok(()) };
        item.ends_at = None;
        let cause = Cause { actor: &self.zones.governance, reason, ..Cause::default() };
        self.transit(tx, approval, item, event, cause, changes).await
    }
}

/// Why an item that is not APPROVED cannot be reserved or decided.
pub(crate) fn over(item: &ItemRow) -> Fault {
    let (reason, text) = match item.state {
        Item::Pending => (Reason::WrongState, "nobody has decided it yet"),
        Item::Approved => (Reason::WrongState, "it is approved"),
        Item::Reserved | Item::Consumed => (Reason::ApprovalSpent, "its approval is reserved or spent"),
        Item::Rejected => (Reason::Rejected, "a person rejected it"),
        Item::NotSelected => (Reason::NotSelected, "a reviewer chose other actions of the plan"),
        Item::Expired => (Reason::Expired, "its wait or window is over; propose it again"),
        Item::Withdrawn => (Reason::Withdrawn, "it was taken back"),
        Item::Revoked => (Reason::RunRevoked, "it was revoked before it was spent"),
        Item::Void => (Reason::WrongState, "it was refused before it was spent"),
    };
    Fault::new(reason, text).with("state", item.state.as_str())
}
