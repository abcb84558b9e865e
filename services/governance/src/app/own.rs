//! Stored rows against what the zone itself signed: whoever rewrites bytes, header and digests in the
//! database together is found here. Trusts no row.

use exequatur_canonical::Digest;
use exequatur_door::{Checked, check, named, refused};
use exequatur_fault::{Fault, Reason};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{LogEntry, PlanProposed};
use exequatur_proto::statement::v1::{Decision, Envelope, ItemVerdict};
use exequatur_statement::Expect;
use prost::Message as _;

use super::App;
use crate::store::{ActionRow, PlanRow};

fn tampered(what: &str) -> Fault {
    Fault::new(
        Reason::DigestMismatch,
        format!(
            "the stored {what} is not what this zone signed when it was proposed; stop and look at the store"
        ),
    )
}

impl App {
    /// One stored action, recomputed from its bytes and held against the signed proposal.
    pub(crate) async fn own_action(
        &self,
        plan: &PlanRow,
        action: &ActionRow,
        now: i64,
    ) -> Result<Checked, Fault> {
        let definition =
            Envelope::decode(action.definition.as_slice()).map_err(|_| tampered("definition"))?;
        let checked = check(&self.trust, now, &plan.header, action.index, &action.action, Some(&definition))?;
        let proposed = self.own_proposal(plan, now).await?;
        named("plan", &proposed.plan_digest, &checked.plan.digest())?;
        let entry =
            proposed.actions.iter().find(|a| a.index == action.index).ok_or_else(|| tampered("action"))?;
        named("action", &entry.action_digest, &checked.action.digest())?;
        named("tool", &entry.tool_digest, &checked.definition.digest())?;
        named("wire", &entry.wire_digest, &checked.prepared.wire_digest())?;
        if entry.verdict != action.verdict || proposed.run != plan.run || proposed.plan != plan.plan {
            return Err(tampered("verdict or run"));
        }
        Ok(checked)
    }

    async fn own_proposal(&self, plan: &PlanRow, now: i64) -> Result<PlanProposed, Fault> {
        let entry = self.ledger.entry(&self.store, &plan.tenant, plan.entry).await?;
        let entry = entry.ok_or_else(|| tampered("log entry"))?;
        let own = self.zones.own.as_str();
        let expect = Expect { issuer: Some(own), audience: None, tenant: None, now, check_expiry: false };
        let entry = self
            .trust
            .verify::<LogEntry>(&entry, expect)
            .map_err(|e| refused("own log entry", &e))?
            .statement;
        match entry.body {
            Some(Body::PlanProposed(proposed))
                if entry.tenant == plan.tenant && entry.sequence == plan.entry =>
            {
                Ok(proposed)
            }
            _ => Err(tampered("log entry")),
        }
    }

    /// Approval's signed yes for exactly this action.
    pub(crate) fn approved(&self, plan: &PlanRow, checked: &Checked, now: i64) -> Result<Envelope, Fault> {
        let none = || Fault::new(Reason::StatementInvalid, "no decision of a person allows this action");
        let bytes = plan.decision.as_deref().ok_or_else(none)?;
        let envelope = Envelope::decode(bytes).map_err(|_| none())?;
        let decision = self.decision(&envelope, &plan.tenant, now)?;
        named("plan", &decision.plan_digest, &checked.plan.digest())?;
        let item = decision.items.iter().find(|i| i.index == checked.index).ok_or_else(none)?;
        if item.verdict() != ItemVerdict::Approved {
            return Err(none());
        }
        named("action", &item.action_digest, &checked.action.digest())?;
        named("wire", &item.wire_digest, &checked.prepared.wire_digest())?;
        Ok(envelope)
    }

    /// A decision that approval signed for the connector.
    pub(crate) fn decision(&self, envelope: &Envelope, tenant: &str, now: i64) -> Result<Decision, Fault> {
        let expect = Expect {
            issuer: Some(&self.zones.approval),
            audience: Some(&self.zones.connector),
            tenant: Some(tenant),
            now,
            check_expiry: false,
        };
        self.trust
            .verify::<Decision>(envelope, expect)
            .map(|v| v.statement)
            .map_err(|e| refused("decision", &e))
    }
}

/// The digest of an envelope's bytes, as receipts name it.
pub(crate) fn digest(envelope: &[u8]) -> Vec<u8> {
    if envelope.is_empty() { Vec::new() } else { Digest::sha256(envelope).to_vec() }
}
