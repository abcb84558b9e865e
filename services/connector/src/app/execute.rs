//! The door: everything is checked again from the bytes, then an attempt is opened, joined, or what
//! became of the action is answered. Nothing is sent from here.

use std::sync::Arc;

use exequatur_clock::UnixMillis;
use exequatur_door::{Checked, named, present, refused};
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Journal};
use exequatur_prepare::tenant_scope;
use exequatur_proto::definition::v1::{Attestation, Effect};
use exequatur_proto::execution::v1::ExecuteRequest;
use exequatur_proto::statement::v1::{Decision, DecisionKind, Envelope, ItemVerdict, Outcome, Warrant};
use exequatur_statement::{Expect, Verified, envelope_digest};
use exequatur_store::Tx;
use prost::Message as _;
use tokio::sync::watch;

use super::attempt::Attempt;
use super::{App, Finished, LEEWAY, MAX_ATTEMPTS, Stage};
use crate::store::{Key, Row, Subject};

/// What a caller of execute gets.
pub enum Watching {
    /// The attempt is under way: its number and what it says.
    Attempt(u32, watch::Receiver<Stage>),
    /// It ended before.
    Finished(Box<Finished>),
}

/// A request whose every part was checked.
struct Door {
    checked: Checked,
    warrant: Verified<Warrant>,
    held: bool,
}

impl App {
    /// Opens an attempt, joins the one under way, or answers what became of the action.
    ///
    /// # Errors
    /// A refusal: nothing was prepared. `CONFLICT` while another process may still be at it.
    pub async fn execute(self: &Arc<Self>, request: ExecuteRequest) -> Result<Watching, Fault> {
        let now = self.store.clock().now()?;
        let door = self.door(&request, now)?;
        let about = |fault: Fault| {
            fault
                .with("tenant", door.checked.plan.header().tenant.clone())
                .with("plan", door.checked.plan.digest().to_string())
                .with("index", door.checked.index.to_string())
        };
        self.admit(&door, request.clone()).await.map_err(about)
    }

    fn door(&self, request: &ExecuteRequest, now: UnixMillis) -> Result<Door, Fault> {
        let definition = request.definition.as_ref();
        let checked = exequatur_door::check(
            &self.trust,
            now.0,
            &request.header,
            request.index,
            &request.action,
            definition,
        )?;
        let tenant = checked.plan.header().tenant.clone();
        let about = |fault: Fault| {
            fault
                .with("tenant", tenant.clone())
                .with("plan", checked.plan.digest().to_string())
                .with("index", checked.index.to_string())
        };
        let warrant =
            exequatur_door::warrant(&self.trust, now.0, &checked, request.warrant.as_ref()).map_err(about)?;
        if warrant.statement.journal != self.trust.journal() {
            return Err(about(Fault::new(Reason::JournalMismatch, "the warrant is for another journal")));
        }
        let uses: Vec<_> = checked.definition.credentials().iter().map(|c| &c.credential).collect();
        if uses != warrant.statement.credentials.iter().collect::<Vec<_>>() {
            return Err(about(Fault::new(Reason::StatementInvalid, "the warrant names other credentials")));
        }
        tenant_scope(&checked.definition, &checked.action, &tenant).map_err(|e| {
            about(Fault::new(Reason::TenantScope, format!("the action reaches outside its tenant: {e}")))
        })?;
        let held = self.rests_on(&checked, &warrant.statement, request, now).map_err(about)?;
        Ok(Door { checked, warrant, held })
    }

    /// A person's decision for exactly these bytes, or a definition that says `auto` by name.
    fn rests_on(
        &self,
        checked: &Checked,
        warrant: &Warrant,
        request: &ExecuteRequest,
        now: UnixMillis,
    ) -> Result<bool, Fault> {
        match warrant.decision_kind() {
            DecisionKind::Person => {
                let expect = Expect {
                    issuer: Some(&self.zones.approval),
                    audience: Some(&self.zones.own),
                    tenant: Some(&checked.plan.header().tenant),
                    now: now.0,
                    // The window is approval's to judge, when it reserves.
                    check_expiry: false,
                };
                let decision = self
                    .trust
                    .verify::<Decision>(present(request.decision.as_ref(), "decision")?, expect)
                    .map_err(|e| refused("decision", &e))?
                    .statement;
                named("plan", &decision.plan_digest, &checked.plan.digest())?;
                let item = decision.items.iter().find(|i| i.index == checked.index);
                let item = item.filter(|i| i.verdict() == ItemVerdict::Approved).ok_or_else(|| {
                    Fault::new(Reason::StatementInvalid, "the decision does not approve this action")
                })?;
                named("action", &item.action_digest, &checked.action.digest())?;
                named("wire", &item.wire_digest, &checked.prepared.wire_digest())?;
                Ok(true)
            }
            DecisionKind::Rule if checked.definition.message().attestation() == Attestation::Auto => {
                Ok(false)
            }
            _ => Err(Fault::new(
                Reason::StatementInvalid,
                "the tool demands a person's approval; a rule alone is not enough for it",
            )),
        }
    }

    async fn admit(self: &Arc<Self>, door: &Door, request: ExecuteRequest) -> Result<Watching, Fault> {
        let mut tx = self.store.begin().await?;
        let key = key(door);
        let row = self.journal.get(&mut tx, &key).await?;
        if let Some(row) = &row
            && row.action_digest != door.checked.action.digest().as_bytes()
        {
            return Err(named("action", &row.action_digest, &door.checked.action.digest())
                .err()
                .unwrap_or_else(|| Fault::internal("a journal row is of another action")));
        }
        match row {
            None => self.first(tx, door, request).await,
            Some(row) if row.state == Journal::Prepared || row.state == Journal::Dispatched => {
                self.join(tx, row).await
            }
            Some(row) if row.state == Journal::Aborted && door.warrant.statement.attempt > row.attempt => {
                self.another(tx, door, request, &row).await
            }
            Some(row) => stored(&row).map(|f| Watching::Finished(Box::new(f))),
        }
    }

    async fn first(
        self: &Arc<Self>,
        tx: Tx,
        door: &Door,
        request: ExecuteRequest,
    ) -> Result<Watching, Fault> {
        if door.warrant.statement.attempt != 1 {
            return Err(closed("the journal knows no attempt before this one"));
        }
        self.prepare(tx, door, request, None).await
    }

    async fn another(
        self: &Arc<Self>,
        tx: Tx,
        door: &Door,
        request: ExecuteRequest,
        row: &Row,
    ) -> Result<Watching, Fault> {
        let warrant = &door.warrant.statement;
        if row.attempt >= MAX_ATTEMPTS {
            return Err(Fault::new(
                Reason::AttemptsExhausted,
                "five attempts were aborted; propose the action again",
            ));
        }
        if warrant.attempt != row.attempt + 1 || row.outcome.as_deref() != Some(&warrant.previous_abort) {
            return Err(closed("only the signed ABORTED of the attempt before opens the next one"));
        }
        if !stored_outcome(row)?.retryable {
            return Err(closed("the attempt before was aborted for good"));
        }
        self.prepare(tx, door, request, Some((row.attempt, Journal::Aborted))).await
    }

    /// Writes PREPARED and starts the attempt in a task that outlives the caller.
    async fn prepare(
        self: &Arc<Self>,
        mut tx: Tx,
        door: &Door,
        request: ExecuteRequest,
        after: Option<(u32, Journal)>,
    ) -> Result<Watching, Fault> {
        let row = self.row(door, &request);
        let start_by = row.start_by;
        if tx.now() >= start_by {
            return Err(Fault::new(
                Reason::WarrantExpired,
                "the warrant came after its start_by; mint a fresh one",
            ));
        }
        let subjects = subjects(&row);
        if self.journal.is_cancelled(&mut tx, &row.key.tenant, &subjects).await? {
            return Err(Fault::new(Reason::Cancelled, "the run, plan, action, tool or tenant was cancelled"));
        }
        if !self.journal.open(&mut tx, &row, after).await? {
            return Err(Fault::new(Reason::Conflict, "another process was first; ask again"));
        }
        let statements = [Some(&request.warrant), Some(&request.decision)];
        let relied_on = statements.into_iter().flatten().flatten().map(Envelope::encode_to_vec).collect();
        // Also a next attempt begins with a new row in the table's words.
        self.note(&mut tx, &row, None, Event::Prepare, None, relied_on).await?;
        self.keep_bodies(&mut tx, door).await?;
        tx.commit().await?;

        let (sender, receiver) = watch::channel(Stage::Step("prepared"));
        self.attempts().insert(row.key.clone(), receiver.clone());
        let number = row.attempt;
        let attempt = Attempt {
            row,
            checked: door.checked.clone(),
            request,
            holding: Vec::new(),
            reuses: false,
            stage: sender,
        };
        tokio::spawn(Arc::clone(self).run(attempt));
        Ok(Watching::Attempt(number, receiver))
    }

    async fn join(self: &Arc<Self>, tx: Tx, row: Row) -> Result<Watching, Fault> {
        let running = self.attempts().get(&row.key).cloned();
        if let Some(receiver) = running {
            return Ok(Watching::Attempt(row.attempt, receiver));
        }
        match self.settle(tx, row).await? {
            Some(finished) => Ok(Watching::Finished(Box::new(finished))),
            None => Err(Fault::new(Reason::Conflict, "an attempt may still be under way; ask again later")),
        }
    }

    fn row(&self, door: &Door, request: &ExecuteRequest) -> Row {
        let warrant = &door.warrant.statement;
        let definition = door.checked.definition.message();
        Row {
            key: key(door),
            run: warrant.run.clone(),
            tool: definition.tool.clone(),
            attempt: warrant.attempt,
            state: Journal::Prepared,
            action_digest: warrant.action_digest.clone(),
            wire_digest: warrant.wire_digest.clone(),
            warrant: warrant.header.as_ref().map(|h| h.id.clone()).unwrap_or_default(),
            warrant_digest: request.warrant.as_ref().map(|w| envelope_digest(w).to_vec()).unwrap_or_default(),
            held: door.held,
            reads: definition.effect() == Effect::Read,
            process: self.process.clone(),
            start_by: warrant.start_by.as_ref().map_or(UnixMillis(0), UnixMillis::from_proto),
            settle_at: UnixMillis(0),
            leases: Vec::new(),
            vault_leases: Vec::new(),
            outcome: None,
            result: None,
        }
    }

    async fn keep_bodies(&self, tx: &mut Tx, door: &Door) -> Result<(), Fault> {
        let checked = &door.checked;
        let tenant = &checked.plan.header().tenant;
        for (kind, digest, bytes) in [
            ("plan_header", checked.plan.digest(), checked.plan.bytes()),
            ("action", checked.action.digest(), checked.action.bytes()),
            ("definition", checked.definition.digest(), checked.definition.bytes()),
            ("prepared_request", checked.prepared.wire_digest(), checked.prepared.bytes()),
        ] {
            self.ledger.put_body(tx, tenant, kind, digest.as_bytes(), bytes).await?;
        }
        Ok(())
    }
}

fn key(door: &Door) -> Key {
    Key {
        tenant: door.checked.plan.header().tenant.clone(),
        plan_digest: door.checked.plan.digest().to_vec(),
        index: door.checked.index,
    }
}

/// Everything whose cancellation covers a row.
pub(crate) fn subjects(row: &Row) -> [Subject; 5] {
    [
        Subject::Run(row.run.clone()),
        Subject::Plan(row.key.plan_digest.clone()),
        Subject::Action(row.key.plan_digest.clone(), row.key.index),
        Subject::Tool(row.tool.clone()),
        Subject::Tenant,
    ]
}

/// The outcome that a finished row holds.
pub(crate) fn stored(row: &Row) -> Result<Finished, Fault> {
    let bytes = row.outcome.as_deref().ok_or_else(|| Fault::internal("a finished row has no outcome"))?;
    let outcome = Envelope::decode(bytes).map_err(Fault::internal)?;
    Ok(Finished { outcome, result: row.result.clone().unwrap_or_default() })
}

fn stored_outcome(row: &Row) -> Result<Outcome, Fault> {
    Outcome::decode(stored(row)?.outcome.payload.as_slice()).map_err(Fault::internal)
}

fn closed(why: &str) -> Fault {
    Fault::new(Reason::AttemptClosed, why.to_owned())
}

/// Whether PREPARED may be aborted by somebody else than its process.
pub(crate) fn is_abandoned(row: &Row, now: UnixMillis) -> bool {
    now > row.start_by.saturating_add(LEEWAY)
}
