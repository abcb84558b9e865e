//! How a journal row moves: one place that asks the transition table, writes row, log entry and
//! outbox together, and signs outcomes.

use exequatur_canonical::Digest;
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_ledger::outbox;
use exequatur_lifecycle::{Event, Journal, Machine as _, next};
use exequatur_proto::credential::v1::GiveBackRequest;
use exequatur_proto::ledger::v1::Transition;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{Envelope, Outcome, OutcomeKind};
use exequatur_statement::sign;
use exequatur_store::Tx;
use prost::Message as _;

use super::{App, Finished, MAX_ATTEMPTS};
use crate::store::Row;

/// How an attempt ends.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) kind: OutcomeKind,
    /// Empty for a plain success.
    pub(crate) reason: String,
    /// ABORTED only.
    pub(crate) retryable: bool,
    /// HTTP status or SMTP code; 0: none.
    pub(crate) status: u32,
    /// Redacted; `None`: nothing, or withheld.
    pub(crate) result: Option<Vec<u8>>,
    /// Who settled a doubt.
    pub(crate) resolved_by: String,
}

impl End {
    /// Surely not sent.
    pub(crate) fn aborted(fault: &Fault) -> Self {
        Self {
            kind: OutcomeKind::Aborted,
            reason: fault.reason_str().to_owned(),
            retryable: fault.is_retryable(),
            status: 0,
            result: None,
            resolved_by: String::new(),
        }
    }

    /// Sent or not: nobody knows. What only reads has failed then, for a new proposal may retry it.
    pub(crate) fn unclear(row: &Row) -> Self {
        let kind = if row.reads { OutcomeKind::Failed } else { OutcomeKind::InDoubt };
        let reason = reason_str(Reason::ProviderUnclear).to_owned();
        Self { kind, reason, retryable: false, status: 0, result: None, resolved_by: String::new() }
    }

    /// The event for a row that is in this state.
    const fn event(&self, from: Journal) -> Event {
        match (from, self.kind) {
            (Journal::InDoubt, OutcomeKind::Succeeded) => Event::ResolveSucceeded,
            (Journal::InDoubt, _) => Event::ResolveFailed,
            (_, OutcomeKind::Aborted) => Event::Abort,
            (_, OutcomeKind::InDoubt) => Event::Doubt,
            _ => Event::Complete,
        }
    }
}

impl App {
    /// Ends an attempt in the caller's transaction: outcome signed and stored, log entry, and what
    /// must go out to approval and credential-vault. `None`: the row was no longer in its state.
    pub(crate) async fn end(
        &self,
        tx: &mut Tx,
        row: &Row,
        end: End,
        relied_on: Vec<Vec<u8>>,
    ) -> Result<Option<Finished>, Fault> {
        let event = end.event(row.state);
        let Some(state) = next(Some(row.state), event) else {
            return Err(Fault::internal("a journal row cannot move that way"));
        };
        let outcome = Outcome {
            header: Some(self.header(tx.now(), &row.key.tenant)),
            plan_digest: row.key.plan_digest.clone(),
            index: row.key.index,
            action_digest: row.action_digest.clone(),
            wire_digest: row.wire_digest.clone(),
            attempt: row.attempt,
            warrant: row.warrant.clone(),
            warrant_digest: row.warrant_digest.clone(),
            kind: end.kind.into(),
            reason: end.reason,
            provider_status: end.status,
            result_digest: end.result.as_ref().map(|r| Digest::sha256(r).to_vec()).unwrap_or_default(),
            leases: row.leases.clone(),
            vault_leases: row.vault_leases.clone(),
            journal: self.trust.journal(),
            resolved_by: end.resolved_by,
            retryable: end.retryable && row.attempt < MAX_ATTEMPTS,
        };
        let envelope = sign(&self.outcome_key, &outcome).map_err(Fault::internal)?;
        let mut ended = row.clone();
        ended.state = state;
        ended.outcome = Some(envelope.encode_to_vec());
        ended.result.clone_from(&end.result);
        if !self.journal.advance(tx, &ended, row.state).await? {
            return Ok(None);
        }
        self.note(tx, &ended, Some(row.state), event, Some(&envelope), relied_on).await?;
        if let Some(result) = &end.result {
            let digest = Digest::sha256(result);
            self.ledger.put_body(tx, &row.key.tenant, "result", digest.as_bytes(), result).await?;
        }
        self.owe(tx, &ended, row.state, &envelope).await?;
        Ok(Some(Finished { outcome: envelope, result: end.result.unwrap_or_default() }))
    }

    /// Commit or release of a held item, and leases given back: out of the same transaction.
    async fn owe(&self, tx: &mut Tx, row: &Row, from: Journal, outcome: &Envelope) -> Result<(), Fault> {
        let key = format!("{}/{}/{}", row.key.tenant, hex(&row.key.plan_digest), row.key.index);
        // An item is spent when the doubt begins, not again when it is settled.
        if row.held && from != Journal::InDoubt {
            let kind = if row.state == Journal::Aborted { "release" } else { "commit" };
            outbox::push(tx, kind, &key, &outcome.encode_to_vec()).await?;
        }
        let at_vault = row.vault_leases.iter().cloned().chain(std::iter::repeat(String::new()));
        for (lease, vault_lease) in row.leases.iter().zip(at_vault).filter(|_| from != Journal::InDoubt) {
            let (tenant, keep) = (row.key.tenant.clone(), self.held.has(lease));
            let request = GiveBackRequest { tenant, lease: lease.clone(), vault_lease, keep };
            outbox::push(tx, "give_back", lease, &request.encode_to_vec()).await?;
        }
        Ok(())
    }

    /// The log entry of a transition.
    pub(crate) async fn note(
        &self,
        tx: &mut Tx,
        row: &Row,
        from: Option<Journal>,
        event: Event,
        statement: Option<&Envelope>,
        relied_on: Vec<Vec<u8>>,
    ) -> Result<(), Fault> {
        let transition = Transition {
            machine: Journal::NAME.to_owned(),
            plan_digest: row.key.plan_digest.clone(),
            index: row.key.index,
            attempt: row.attempt,
            from: from.map(|s| s.as_str().to_owned()).unwrap_or_default(),
            event: event.as_str().to_owned(),
            to: row.state.as_str().to_owned(),
            actor: self.zones.own.clone(),
            statement: statement.map(Envelope::encode_to_vec).unwrap_or_default(),
            action_digest: row.action_digest.clone(),
            relied_on,
            ..Transition::default()
        };
        self.ledger.append(tx, &row.key.tenant, Body::Transition(transition)).await.map(drop)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
