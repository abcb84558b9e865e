//! Reserving an item for one attempt: the point where a yes is spent or kept. All is checked again
//! from stored bytes, own signatures and the warrant. Relies on no sweeper.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item};
use exequatur_proto::approval::v1::ReserveRequest;
use exequatur_proto::statement::v1::{Decision, DecisionKind, Envelope, ItemVerdict, Reservation, Warrant};
use exequatur_statement::{Expect, sign};
use exequatur_store::Tx;
use prost::Message as _;

use super::change::{Cause, Changes};
use super::own::Stored;
use super::release::{MAX_ATTEMPTS, nth};
use super::withdraw::over;
use super::{App, mismatch, present, refused};
use crate::store::{ApprovalRow, Card, ItemRow};

/// How long a reservation can be shown to credential-vault. The item itself stays reserved.
const LIFE: Duration = Duration::from_secs(120);

impl App {
    /// Reserves an item for one attempt; the same attempt gets the same reservation again.
    ///
    /// # Errors
    /// `STATEMENT_INVALID`, `NOT_FOUND`, `DIGEST_MISMATCH`, `ATTEMPT_CLOSED`, `APPROVAL_SPENT`,
    /// `EXPIRED`, or the reason of the state that the item is in.
    pub async fn reserve(&self, request: &ReserveRequest) -> Result<Envelope, Fault> {
        let mut tx = self.store.begin().await?;
        let warrant_envelope = present(request.warrant.as_ref(), "warrant")?;
        let warrant = self.warrant(warrant_envelope, tx.now().0)?;
        let about = |fault: Fault| about(fault, &warrant);
        check_attempt(request, &warrant).map_err(about)?;
        let none =
            || about(Fault::not_found("item", &format!("{}/{}", hex(&warrant.plan_digest), warrant.index)));
        let tenant = tenant(&warrant).to_owned();
        let mut card = self.rows.by_plan(&mut tx, &tenant, &warrant.plan_digest).await?.ok_or_else(none)?;
        let position = card.items.iter().position(|i| i.index == warrant.index).ok_or_else(none)?;
        self.check_bytes(&card, position, &warrant, &tx).await.map_err(about)?;

        let approval = card.approval.clone();
        let mut changes = Changes::default();
        let item = nth(&mut card, position)?;
        if let Some(previous) = &request.previous_abort {
            let outcome = self.outcome(previous, tx.now().0).map_err(about)?;
            check_previous(&outcome, &warrant, request.attempt).map_err(about)?;
            self.close(&mut tx, &approval, item, &outcome, previous, &mut changes).await?;
        }
        match self.admit(&approval, item, request.attempt, &tx) {
            Ok(Admission::Again(reservation)) => return Ok(reservation),
            Ok(Admission::Reserve) => {}
            Ok(Admission::Expire) => {
                item.ends_at = None;
                let cause = Cause { actor: &self.zones.own, reason: "EXPIRED", ..Cause::default() };
                self.transit(&mut tx, &approval, item, Event::Expire, cause, &mut changes).await?;
                let fault = about(over(item));
                self.conclude(&mut tx, &mut card, changes).await?;
                self.commit(tx).await?;
                return Err(fault);
            }
            Err(fault) => {
                // What the signed ABORTED closed stays closed, whatever is answered.
                self.conclude(&mut tx, &mut card, changes).await?;
                self.commit(tx).await?;
                return Err(about(fault));
            }
        }
        let reservation = self.promise(&mut tx, &approval, item, request, &warrant, &mut changes).await?;
        self.conclude(&mut tx, &mut card, changes).await?;
        self.commit(tx).await?;
        Ok(reservation)
    }

    async fn promise(
        &self,
        tx: &mut Tx,
        approval: &ApprovalRow,
        item: &mut ItemRow,
        request: &ReserveRequest,
        warrant: &Warrant,
        changes: &mut Changes,
    ) -> Result<Envelope, Fault> {
        let reservation = Reservation {
            header: Some(self.header(tx, &self.zones.credential_vault, &approval.tenant, LIFE)),
            approval: approval.approval.clone(),
            plan_digest: warrant.plan_digest.clone(),
            index: warrant.index,
            action_digest: warrant.action_digest.clone(),
            wire_digest: warrant.wire_digest.clone(),
            warrant: warrant.header.as_ref().map(|h| h.id.clone()).unwrap_or_default(),
            attempt: request.attempt,
        };
        let envelope = sign(&self.reservation_key, &reservation).map_err(Fault::internal)?;
        item.attempt = request.attempt;
        item.reservation = Some(envelope.encode_to_vec());
        item.ends_at = None;
        let relied_on = request.warrant.iter().map(Envelope::encode_to_vec).collect();
        let cause = Cause { actor: &self.zones.connector, reason: "", statement: Some(&envelope), relied_on };
        self.transit(tx, approval, item, Event::Reserve, cause, changes).await?;
        Ok(envelope)
    }

    fn warrant(&self, envelope: &Envelope, now: i64) -> Result<Warrant, Fault> {
        let expect = Expect {
            issuer: Some(&self.zones.governance),
            audience: Some(&self.zones.connector),
            tenant: None,
            now,
            check_expiry: true,
        };
        let warrant =
            self.trust.verify::<Warrant>(envelope, expect).map_err(|e| refused("warrant", &e))?.statement;
        if warrant.decision_kind() != DecisionKind::Person {
            return Err(about(
                Fault::new(Reason::StatementInvalid, "the warrant does not rest on a person's decision"),
                &warrant,
            ));
        }
        Ok(warrant)
    }

    /// The stored bytes, recomputed, against warrant, own signed entries and own signed decision.
    async fn check_bytes(
        &self,
        card: &Card,
        position: usize,
        warrant: &Warrant,
        tx: &Tx,
    ) -> Result<(), Fault> {
        let gone = || Fault::internal("an item went missing");
        let item = card.items.get(position).ok_or_else(gone)?;
        let row = card.actions.iter().find(|a| a.index == item.index && a.held).ok_or_else(gone)?;
        let plan = self.stored_plan(&card.approval)?;
        let stored = self.stored_action(&plan, row, tx.now())?;
        self.check_entries(&card.approval, item, &stored.action, tx.now()).await?;
        check_warrant(warrant, &stored)?;
        if matches!(item.state, Item::Approved | Item::Reserved | Item::Consumed) {
            let decision = self.own_decision(&card.approval, tx.now())?;
            let decision = decision.map(|(verified, _)| verified.statement);
            if !decision.is_some_and(|d| approves(&d, &card.approval, &stored, item.index)) {
                return Err(Fault::new(
                    Reason::DigestMismatch,
                    "no decision that this zone signed approves this action; stop and look at the store",
                ));
            }
        }
        Ok(())
    }

    fn admit(
        &self,
        approval: &ApprovalRow,
        item: &ItemRow,
        attempt: u32,
        tx: &Tx,
    ) -> Result<Admission, Fault> {
        if item.state == Item::Reserved && item.attempt == attempt {
            let bytes = item.reservation.as_deref().unwrap_or_default();
            return Envelope::decode(bytes).map(Admission::Again).map_err(Fault::internal);
        }
        if attempt <= item.closed {
            return Err(Fault::new(
                Reason::AttemptClosed,
                "this attempt is closed; the next one needs the signed ABORTED",
            )
            .with("closed", item.closed.to_string()));
        }
        if item.state != Item::Approved {
            return Err(over(item));
        }
        if attempt != item.closed + 1 {
            return Err(Fault::new(Reason::AttemptClosed, "an attempt before this one is still open")
                .with("closed", item.closed.to_string()));
        }
        if approval.window_ends_at.is_none_or(|end| end <= tx.now()) {
            return Ok(Admission::Expire);
        }
        Ok(Admission::Reserve)
    }
}

enum Admission {
    /// The stored reservation of the same attempt.
    Again(Envelope),
    Reserve,
    /// The window is over.
    Expire,
}

fn tenant(warrant: &Warrant) -> &str {
    warrant.header.as_ref().map(|h| h.tenant.as_str()).unwrap_or_default()
}

/// Says which action a refusal is about; the warrant's signature was checked before.
fn about(fault: Fault, warrant: &Warrant) -> Fault {
    fault
        .with("tenant", tenant(warrant))
        .with("plan", hex(&warrant.plan_digest))
        .with("index", warrant.index.to_string())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    exequatur_canonical::Digest::from_slice(bytes).map(|d| d.to_string()).unwrap_or_default()
}

fn check_attempt(request: &ReserveRequest, warrant: &Warrant) -> Result<(), Fault> {
    let attempt = request.attempt;
    if attempt == 0 || attempt > MAX_ATTEMPTS {
        return Err(Fault::field("attempt", format!("an attempt is 1..{MAX_ATTEMPTS}")));
    }
    if attempt != warrant.attempt {
        return Err(Fault::field("attempt", "the warrant is for another attempt"));
    }
    match (&request.previous_abort, attempt) {
        (None, 1) | (Some(_), 2..) => Ok(()),
        (Some(_), _) => {
            Err(Fault::field("previous_abort", "the first attempt has none before it; leave it out"))
        }
        (None, _) => Err(Fault::field("previous_abort", "send the signed ABORTED of the attempt before")),
    }
}

fn check_previous(
    outcome: &exequatur_proto::statement::v1::Outcome,
    warrant: &Warrant,
    attempt: u32,
) -> Result<(), Fault> {
    let same = outcome.header.as_ref().is_some_and(|h| h.tenant == tenant(warrant))
        && outcome.plan_digest == warrant.plan_digest
        && outcome.index == warrant.index
        && outcome.action_digest == warrant.action_digest
        && outcome.wire_digest == warrant.wire_digest;
    let aborted = outcome.kind() == exequatur_proto::statement::v1::OutcomeKind::Aborted;
    if same && aborted && outcome.attempt + 1 == attempt {
        return Ok(());
    }
    Err(Fault::field("previous_abort", "it is not the signed ABORTED of the attempt before of this action"))
}

fn check_warrant(warrant: &Warrant, stored: &Stored) -> Result<(), Fault> {
    let named = super::digest(&warrant.action_digest, "action_digest")?;
    if named != stored.action.digest() {
        return Err(mismatch("action", &stored.action.digest(), &named));
    }
    let tool = super::digest(&warrant.tool_digest, "tool_digest")?;
    if Some(tool) != stored.action.action().tool_digest {
        return Err(Fault::new(Reason::DigestMismatch, "the warrant is for another definition of the tool")
            .with("found", tool.to_string()));
    }
    let wire = super::digest(&warrant.wire_digest, "wire_digest")?;
    match &stored.prepared {
        Some(prepared) if prepared.wire_digest() == wire => Ok(()),
        Some(prepared) => Err(mismatch("wire", &prepared.wire_digest(), &wire)),
        None => Err(Fault::new(Reason::WrongState, "the action was denied before it was prepared")),
    }
}

/// Whether a decision of ours says yes to exactly this action, within the window that is stored.
fn approves(decision: &Decision, approval: &ApprovalRow, stored: &Stored, index: u32) -> bool {
    decision.window_ends_at == approval.window_ends_at.map(exequatur_clock::UnixMillis::to_proto)
        && decision.items.iter().any(|item| {
            item.index == index
                && item.verdict() == ItemVerdict::Approved
                && item.action_digest == stored.action.digest().as_bytes()
                && item.wire_digest == stored.wire()
        })
}
