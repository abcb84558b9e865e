//! Stored rows against what the zone itself signed: whoever rewrites bytes and digests in the
//! database together is found here. Trusts no row.

use exequatur_canonical::{Digest, FrozenAction, FrozenPlan};
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Item, Machine as _};
use exequatur_prepare::Prepared;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{LogEntry, Transition};
use exequatur_proto::statement::v1::{Decision, Envelope};
use exequatur_statement::{Expect, Verified};
use prost::Message as _;

use super::{App, checked, mismatch, refused};
use crate::store::{ActionRow, ApprovalRow, ItemRow};

/// A stored action, recomputed from its bytes.
pub(crate) struct Stored {
    pub(crate) action: FrozenAction,
    /// `None` where a rule denied before the request was prepared.
    pub(crate) prepared: Option<Prepared>,
}

impl Stored {
    /// The wire digest's bytes; empty where there is none.
    pub(crate) fn wire(&self) -> Vec<u8> {
        self.prepared.as_ref().map(|p| p.wire_digest().to_vec()).unwrap_or_default()
    }
}

fn tampered(what: &str) -> Fault {
    Fault::new(
        Reason::DigestMismatch,
        format!(
            "the stored {what} is not what this zone signed when it was written; stop and look at the store"
        ),
    )
}

impl App {
    /// The stored header, whose digest must be the one under which it is stored.
    pub(crate) fn stored_plan(&self, approval: &ApprovalRow) -> Result<FrozenPlan, Fault> {
        let plan = checked::header(&self.zones.realm, &approval.header)?;
        let key = Digest::from_slice(&approval.plan_digest).map_err(|_| tampered("plan digest"))?;
        if plan.digest() != key {
            return Err(mismatch("plan", &key, &plan.digest()));
        }
        if plan.header().tenant != approval.tenant || plan.header().agent != approval.agent {
            return Err(tampered("tenant or agent"));
        }
        Ok(plan)
    }

    /// A stored action with its request, recomputed.
    pub(crate) fn stored_action(
        &self,
        plan: &FrozenPlan,
        row: &ActionRow,
        now: UnixMillis,
    ) -> Result<Stored, Fault> {
        let at = |fault: Fault| fault.with("index", row.index.to_string());
        let action = checked::action(plan, row.index, &row.action)?;
        let envelope = Envelope::decode(row.definition.as_slice()).map_err(|_| at(tampered("definition")))?;
        let definition =
            checked::definition(&self.trust, now.0, &plan.header().tenant, &action, &envelope).map_err(at)?;
        let prepared = if !row.held && row.wire_digest.is_empty() {
            None
        } else {
            Some(checked::request(&definition, &action, &row.wire_digest).map_err(at)?)
        };
        Ok(Stored { action, prepared })
    }

    /// Holds an item against the entries that this zone signed when it was opened and last changed.
    pub(crate) async fn check_entries(
        &self,
        approval: &ApprovalRow,
        item: &ItemRow,
        action: &FrozenAction,
        now: UnixMillis,
    ) -> Result<(), Fault> {
        let opened = self.own_transition(&approval.tenant, item.opened_entry, now).await?;
        let last = self.own_transition(&approval.tenant, item.last_entry, now).await?;
        let names = |t: &Transition| {
            t.machine == Item::NAME
                && t.plan_digest == approval.plan_digest
                && t.index == item.index
                && t.action_digest == action.digest().as_bytes()
        };
        if !names(&opened) || !opened.from.is_empty() || opened.to != Item::Pending.as_str() {
            return Err(tampered("action").with("index", item.index.to_string()));
        }
        if !names(&last) || last.to != item.state.as_str() {
            return Err(tampered("state").with("index", item.index.to_string()));
        }
        Ok(())
    }

    async fn own_transition(
        &self,
        tenant: &str,
        sequence: u64,
        now: UnixMillis,
    ) -> Result<Transition, Fault> {
        let envelope =
            self.ledger.entry(&self.store, tenant, sequence).await?.ok_or_else(|| tampered("log entry"))?;
        let own = self.zones.own.as_str();
        let expect =
            Expect { issuer: Some(own), audience: None, tenant: None, now: now.0, check_expiry: false };
        let entry = self
            .trust
            .verify::<LogEntry>(&envelope, expect)
            .map_err(|e| refused("own log entry", &e))?
            .statement;
        if entry.tenant != tenant || entry.sequence != sequence {
            return Err(tampered("log entry"));
        }
        match entry.body {
            Some(Body::Transition(transition)) => Ok(transition),
            _ => Err(tampered("log entry")),
        }
    }

    /// The decision that this zone signed for the approval, with its envelope.
    pub(crate) fn own_decision(
        &self,
        approval: &ApprovalRow,
        now: UnixMillis,
    ) -> Result<Option<(Verified<Decision>, Envelope)>, Fault> {
        let Some(bytes) = &approval.decision else { return Ok(None) };
        let envelope = Envelope::decode(bytes.as_slice()).map_err(|_| tampered("decision"))?;
        let expect = Expect {
            issuer: Some(&self.zones.own),
            audience: Some(&self.zones.connector),
            tenant: Some(&approval.tenant),
            now: now.0,
            check_expiry: false,
        };
        let verified =
            self.trust.verify::<Decision>(&envelope, expect).map_err(|e| refused("own decision", &e))?;
        let decision = &verified.statement;
        if decision.plan_digest != approval.plan_digest || decision.approval != approval.approval {
            return Err(tampered("decision"));
        }
        Ok(Some((verified, envelope)))
    }
}
