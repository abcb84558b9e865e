//! The one way an item changes: by the transition table, with its signed log entry, compare-and-set,
//! and an event for those who watch. Knows no rule of its own.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item, Machine as _, next};
use exequatur_proto::approval::v1::{ApprovalState, ItemChange, ItemState, WatchApprovalsResponse};
use exequatur_proto::ledger::v1::Transition;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use exequatur_store::Tx;
use prost::Message as _;

use super::App;
use crate::store::{ApprovalRow, Card, ItemRow};

/// Why an item changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cause<'a> {
    /// SPIFFE ID.
    pub(crate) actor: &'a str,
    /// Stable reason; may be empty.
    pub(crate) reason: &'a str,
    /// The statement that goes with it.
    pub(crate) statement: Option<&'a Envelope>,
    /// Statements that were relied on.
    pub(crate) relied_on: Vec<Vec<u8>>,
}

/// Changes of one transaction, for its event.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    items: Vec<ItemChange>,
    decision: Option<Envelope>,
}

impl Changes {
    pub(crate) const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn decided(&mut self, decision: &Envelope) {
        self.decision = Some(decision.clone());
    }
}

/// The state on the wire.
pub(crate) const fn item_state(state: Item) -> ItemState {
    match state {
        Item::Pending => ItemState::Pending,
        Item::Approved => ItemState::Approved,
        Item::Rejected => ItemState::Rejected,
        Item::NotSelected => ItemState::NotSelected,
        Item::Expired => ItemState::Expired,
        Item::Withdrawn => ItemState::Withdrawn,
        Item::Reserved => ItemState::Reserved,
        Item::Revoked => ItemState::Revoked,
        Item::Void => ItemState::Void,
        Item::Consumed => ItemState::Consumed,
    }
}

/// An item as its change is told.
pub(crate) fn item_change(item: &ItemRow) -> ItemChange {
    ItemChange { index: item.index, state: item_state(item.state).into(), reason: item.reason.clone() }
}

/// The state of the whole, from its items.
fn derive(card: &Card) -> ApprovalState {
    if card.items.iter().any(|i| i.state == Item::Pending) {
        ApprovalState::Pending
    } else if card.approval.decision.is_some() {
        ApprovalState::Decided
    } else if card.items.iter().any(|i| i.state == Item::Expired) {
        ApprovalState::Expired
    } else {
        ApprovalState::Withdrawn
    }
}

impl App {
    /// Moves `item` of the approval by `event`; the caller has set what else changes in it.
    ///
    /// # Errors
    /// `WRONG_STATE` where the table has no such transition, `CONFLICT` where another was first.
    pub(crate) async fn transit(
        &self,
        tx: &mut Tx,
        approval: &ApprovalRow,
        item: &mut ItemRow,
        event: Event,
        cause: Cause<'_>,
        changes: &mut Changes,
    ) -> Result<(), Fault> {
        let from = item.state;
        let to = next(Some(from), event).ok_or_else(|| {
            Fault::new(Reason::WrongState, format!("an item that is {from} cannot take `{event}`"))
                .with("state", from.as_str())
        })?;
        let entry = self
            .ledger
            .append(
                tx,
                &approval.tenant,
                Body::Transition(Transition {
                    machine: Item::NAME.to_owned(),
                    plan_digest: approval.plan_digest.clone(),
                    index: item.index,
                    from: from.as_str().to_owned(),
                    event: event.as_str().to_owned(),
                    to: to.as_str().to_owned(),
                    actor: cause.actor.to_owned(),
                    reason: cause.reason.to_owned(),
                    statement: cause.statement.map(Envelope::encode_to_vec).unwrap_or_default(),
                    action_digest: listed(approval, item.index)?,
                    relied_on: cause.relied_on,
                    ..Transition::default()
                }),
            )
            .await?;
        item.state = to;
        cause.reason.clone_into(&mut item.reason);
        item.last_entry = entry.sequence;
        if !self.rows.change_item(tx, &approval.approval, from, item).await? {
            return Err(Fault::new(Reason::Conflict, "the item changed meanwhile; read it again"));
        }
        changes.items.push(item_change(item));
        Ok(())
    }

    /// Writes the approval's derived state and the event of the changes.
    pub(crate) async fn conclude(&self, tx: &mut Tx, card: &mut Card, changes: Changes) -> Result<(), Fault> {
        if changes.is_empty() {
            return Ok(());
        }
        card.approval.state = derive(card);
        self.rows.update(tx, &card.approval).await?;
        let event = WatchApprovalsResponse {
            sequence: 0,
            tenant: card.approval.tenant.clone(),
            approval: card.approval.approval.clone(),
            plan_digest: card.approval.plan_digest.clone(),
            items: changes.items,
            decision: changes.decision,
        };
        self.rows.push_event(tx, &event).await?;
        Ok(())
    }
}

/// The action digest that the header lists; the header's own digest is checked elsewhere.
fn listed(approval: &ApprovalRow, index: u32) -> Result<Vec<u8>, Fault> {
    let plan = exequatur_canonical::verify_plan(&approval.header).map_err(Fault::internal)?;
    usize::try_from(index)
        .ok()
        .and_then(|i| plan.header().action_digests.get(i).map(exequatur_canonical::Digest::to_vec))
        .ok_or_else(|| Fault::internal("an item stands beyond its plan"))
}
