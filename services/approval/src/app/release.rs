//! Spending and giving back, only on the connector's signed word. Time never releases an item.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item, Machine as _};
use exequatur_proto::ledger::v1::SecurityEvent;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{Envelope, Outcome, OutcomeKind};
use exequatur_statement::Expect;
use exequatur_store::Tx;

use super::change::{Cause, Changes};
use super::{App, mismatch, present, refused};
use crate::store::{ApprovalRow, Card, ItemRow};

/// The journal's attempts.
pub(crate) const MAX_ATTEMPTS: u32 = 5;

impl App {
    /// Spends the item of a finished attempt; a repeat changes nothing.
    ///
    /// # Errors
    /// `STATEMENT_INVALID`, `NOT_FOUND`, `DIGEST_MISMATCH`, or `WRONG_STATE` where the item is not
    /// reserved for this attempt.
    pub async fn commit_item(&self, outcome: Option<&Envelope>) -> Result<(), Fault> {
        let envelope = present(outcome, "outcome")?;
        let mut tx = self.store.begin().await?;
        let outcome = self.outcome(envelope, tx.now().0)?;
        let kind = outcome.kind();
        if !matches!(kind, OutcomeKind::Succeeded | OutcomeKind::Failed | OutcomeKind::InDoubt) {
            return Err(Fault::field("outcome", "only SUCCEEDED, FAILED and IN_DOUBT spend an item"));
        }
        let (mut card, position) = self.item_of(&mut tx, &outcome).await?;
        let approval = card.approval.clone();
        let mut changes = Changes::default();
        let item = nth(&mut card, position)?;
        let exhausted = kind == OutcomeKind::Failed && outcome.reason == "ATTEMPTS_EXHAUSTED";
        match item.state {
            Item::Consumed if item.attempt == outcome.attempt => return Ok(()),
            Item::Reserved if item.attempt == outcome.attempt && !exhausted => {
                let cause = Cause {
                    actor: &self.zones.connector,
                    reason: &outcome.reason,
                    statement: Some(envelope),
                    relied_on: Vec::new(),
                };
                self.transit(&mut tx, &approval, item, Event::Commit, cause, &mut changes).await?;
            }
            // Nothing was ever sent: there is nothing to spend, and nothing may be tried again.
            _ if exhausted => {
                self.close(&mut tx, &approval, item, &outcome, envelope, &mut changes).await?;
                self.apply_withdrawal(&mut tx, &approval, item, "ATTEMPTS_EXHAUSTED", &mut changes).await?;
            }
            state => return self.contradiction(tx, &approval, &outcome, state).await,
        }
        self.conclude(&mut tx, &mut card, changes).await?;
        self.commit(tx).await
    }

    /// Closes an aborted attempt and gives its item back; a repeat changes nothing.
    ///
    /// # Errors
    /// As [`App::commit_item`].
    pub async fn release(&self, outcome: Option<&Envelope>) -> Result<(), Fault> {
        let envelope = present(outcome, "outcome")?;
        let mut tx = self.store.begin().await?;
        let outcome = self.outcome(envelope, tx.now().0)?;
        if outcome.kind() != OutcomeKind::Aborted {
            return Err(Fault::field("outcome", "only a signed ABORTED releases an item"));
        }
        let (mut card, position) = self.item_of(&mut tx, &outcome).await?;
        let approval = card.approval.clone();
        let mut changes = Changes::default();
        let item = nth(&mut card, position)?;
        if item.state == Item::Consumed && item.attempt == outcome.attempt {
            return self.contradiction(tx, &approval, &outcome, item.state).await;
        }
        self.close(&mut tx, &approval, item, &outcome, envelope, &mut changes).await?;
        self.conclude(&mut tx, &mut card, changes).await?;
        self.commit(tx).await
    }

    /// Closes attempt n, and gives the item back where it is reserved for n.
    pub(crate) async fn close(
        &self,
        tx: &mut Tx,
        approval: &ApprovalRow,
        item: &mut ItemRow,
        outcome: &Outcome,
        envelope: &Envelope,
        changes: &mut Changes,
    ) -> Result<(), Fault> {
        let held_by_it = item.state == Item::Reserved && item.attempt == outcome.attempt;
        if outcome.attempt <= item.closed && !held_by_it {
            return Ok(());
        }
        item.closed = item.closed.max(outcome.attempt);
        if !held_by_it {
            if !self.rows.change_item(tx, &approval.approval, item.state, item).await? {
                return Err(Fault::new(Reason::Conflict, "the item changed meanwhile; ask again"));
            }
            return Ok(());
        }
        let late = approval.window_ends_at.is_none_or(|end| end <= tx.now());
        item.reservation = None;
        item.ends_at = if late { None } else { approval.window_ends_at };
        let cause = Cause {
            actor: &self.zones.connector,
            reason: &outcome.reason,
            statement: Some(envelope),
            relied_on: Vec::new(),
        };
        let event = if late { Event::ReleaseLate } else { Event::Release };
        self.transit(tx, approval, item, event, cause, changes).await?;
        let withdrawal = std::mem::take(&mut item.withdrawal);
        if !withdrawal.is_empty() {
            self.apply_withdrawal(tx, approval, item, &withdrawal, changes).await?;
        }
        Ok(())
    }

    /// The connector's signed word. It is addressed to governance; approval relies on it.
    pub(crate) fn outcome(&self, envelope: &Envelope, now: i64) -> Result<Outcome, Fault> {
        let expect = Expect {
            issuer: Some(&self.zones.connector),
            audience: Some(&self.zones.governance),
            tenant: None,
            now,
            // It waits in the connector's outbox for as long as it takes.
            check_expiry: false,
        };
        let outcome =
            self.trust.verify::<Outcome>(envelope, expect).map_err(|e| refused("outcome", &e))?.statement;
        if outcome.attempt == 0 || outcome.attempt > MAX_ATTEMPTS {
            return Err(Fault::field("attempt", format!("an attempt is 1..{MAX_ATTEMPTS}")));
        }
        Ok(outcome)
    }

    async fn item_of(&self, tx: &mut Tx, outcome: &Outcome) -> Result<(Card, usize), Fault> {
        let tenant = outcome.header.as_ref().map(|h| h.tenant.as_str()).unwrap_or_default();
        let plan = super::digest(&outcome.plan_digest, "plan_digest")?;
        let none = || Fault::not_found("item", &format!("{plan}/{}", outcome.index));
        let card = self.rows.by_plan(tx, tenant, plan.as_bytes()).await?.ok_or_else(none)?;
        let position = card.items.iter().position(|i| i.index == outcome.index).ok_or_else(none)?;
        let row = card.actions.iter().find(|a| a.index == outcome.index).ok_or_else(none)?;
        let stored_plan = self.stored_plan(&card.approval)?;
        let stored = self.stored_action(&stored_plan, row, tx.now())?;
        let named = super::digest(&outcome.action_digest, "action_digest")?;
        if named != stored.action.digest() {
            return Err(mismatch("action", &stored.action.digest(), &named));
        }
        if outcome.wire_digest != stored.wire() {
            return Err(Fault::new(Reason::DigestMismatch, "the outcome is of another prepared request"));
        }
        Ok((card, position))
    }

    /// The connector says what cannot be: recorded for a person, and refused.
    async fn contradiction(
        &self,
        mut tx: Tx,
        approval: &ApprovalRow,
        outcome: &Outcome,
        state: Item,
    ) -> Result<(), Fault> {
        let event = SecurityEvent {
            reason: "WRONG_STATE".to_owned(),
            detail: format!(
                "outcome {} of attempt {} for an item that is {state}",
                outcome.kind().as_str_name(),
                outcome.attempt
            ),
            plan_digest: approval.plan_digest.clone(),
            index: outcome.index,
        };
        self.ledger.append(&mut tx, &approval.tenant, Body::Security(event)).await?;
        self.commit(tx).await?;
        Err(Fault::new(
            Reason::WrongState,
            "the item is not reserved for this attempt; an operator must look",
        )
        .with("state", state.as_str()))
    }
}

pub(crate) fn nth(card: &mut Card, position: usize) -> Result<&mut ItemRow, Fault> {
    card.items.get_mut(position).ok_or_else(|| Fault::internal("an item went missing"))
}
