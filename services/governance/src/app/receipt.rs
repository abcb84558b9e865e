//! What the connector said, taken in: the outcome's signature and digests checked, the action moved,
//! the receipt written, the return policy applied, in one transaction.

use std::time::Duration;

use exequatur_door::{named, refused};
use exequatur_fault::{Fault, Reason, reason_from_str, reason_str};
use exequatur_lifecycle::{Action as State, Event, Machine as _};
use exequatur_prepare::Definition;
use exequatur_proto::definition::v1::ReturnPolicy;
use exequatur_proto::ledger::v1::Receipt;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{Envelope, Outcome, OutcomeKind};
use exequatur_statement::Expect;
use exequatur_store::Tx;
use prost::Message as _;

use super::App;
use super::change::Cause;
use super::own::digest;
use crate::store::PlanRow;

/// Then four times as long each time: five attempts last about a minute and a half.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 5;
/// Bytes of a result that are kept and shown inline.
const MAX_RESULT: usize = 64 * 1024;

/// A warrant and what the connector answered to it.
pub(crate) struct Answer<'a> {
    pub(crate) index: u32,
    pub(crate) warrant: &'a [u8],
    pub(crate) outcome: &'a Envelope,
    pub(crate) result: &'a [u8],
}

impl App {
    /// The outcome, signed by the connector for this action.
    pub(crate) fn outcome(
        &self,
        envelope: &Envelope,
        plan: &PlanRow,
        index: u32,
        now: i64,
    ) -> Result<Outcome, Fault> {
        let expect = Expect {
            issuer: Some(&self.zones.connector),
            audience: Some(&self.zones.own),
            tenant: Some(&plan.tenant),
            now,
            check_expiry: false,
        };
        let outcome =
            self.trust.verify::<Outcome>(envelope, expect).map_err(|e| refused("outcome", &e))?.statement;
        let stored = plan
            .actions
            .iter()
            .find(|a| a.index == index)
            .ok_or_else(|| Fault::internal("an action went missing"))?;
        let of = |bytes: &[u8]| exequatur_canonical::Digest::from_slice(bytes).map_err(Fault::internal);
        named("plan", &outcome.plan_digest, &of(&plan.digest)?)?;
        named("action", &outcome.action_digest, &of(&stored.digest)?)?;
        named("wire", &outcome.wire_digest, &of(&stored.wire_digest)?)?;
        if outcome.index == index {
            Ok(outcome)
        } else {
            Err(Fault::new(Reason::StatementInvalid, "the outcome is of another action"))
        }
    }

    /// Takes an answer in. Gives whether the action is to be asked about again.
    pub(crate) async fn take_answer(
        &self,
        tenant: &str,
        plan: &str,
        answer: Answer<'_>,
    ) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let found = self.rows.plan(&mut tx, tenant, plan).await?;
        let mut plan = found.ok_or_else(|| Fault::internal("a plan went missing"))?;
        let outcome = self.outcome(answer.outcome, &plan, answer.index, tx.now().0)?;
        let statement = answer.outcome.encode_to_vec();
        let cause = |reason: Reason, message: &str| {
            Cause::of(&self.zones.connector, reason, message).with(statement.clone())
        };
        // A connector that answers at once never said "accepted" to us.
        let start = Cause::of(&self.zones.own, Reason::Unspecified, "").with(answer.warrant.to_vec());
        self.step(&mut tx, &mut plan, answer.index, Event::Start, start).await?;
        let reason = reason_from_str(&outcome.reason);
        match outcome.kind() {
            OutcomeKind::Aborted => self.aborted(&mut tx, &mut plan, &answer, &outcome, &cause).await?,
            OutcomeKind::Succeeded => {
                self.step(&mut tx, &mut plan, answer.index, Event::Succeed, cause(reason, "")).await?;
            }
            OutcomeKind::Failed => {
                let text = "the provider refused; surely nothing was done";
                self.step(&mut tx, &mut plan, answer.index, Event::Fail, cause(reason, text)).await?;
            }
            OutcomeKind::InDoubt => {
                let text = "nobody knows whether it was done; an operator must find out and settle it";
                self.step(&mut tx, &mut plan, answer.index, Event::Doubt, cause(reason, text)).await?;
            }
            OutcomeKind::Unspecified => {
                return Err(Fault::new(Reason::StatementInvalid, "the outcome says nothing"));
            }
        }
        self.returned(&mut plan, &answer, &outcome)?;
        self.receipt(&mut tx, &mut plan, &answer, &outcome).await?;
        self.progress(&mut tx, &mut plan).await?;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await
    }

    /// Surely not sent: another attempt, or the end when none is left or none can help.
    async fn aborted(
        &self,
        tx: &mut Tx,
        plan: &mut PlanRow,
        answer: &Answer<'_>,
        outcome: &Outcome,
        cause: &impl Fn(Reason, &str) -> Cause,
    ) -> Result<(), Fault> {
        let reason = reason_from_str(&outcome.reason);
        let index = answer.index;
        if reason == Reason::Cancelled {
            self.step(tx, plan, index, Event::Abort, cause(reason, "")).await?;
            let (event, why, text) = self.cancelled(tx, plan).await?;
            self.step(tx, plan, index, event, cause(why, text)).await?;
            return self.withdraw(tx, plan, &[index], why).await;
        }
        if !outcome.retryable {
            let last = outcome.attempt >= MAX_ATTEMPTS;
            let (reason, text) = if last {
                (Reason::AttemptsExhausted, "five attempts were aborted; surely nothing was sent")
            } else {
                (reason, "surely nothing was sent, and trying again cannot help")
            };
            self.step(tx, plan, index, Event::Fail, cause(reason, text)).await?;
            return self.withdraw(tx, plan, &[index], Reason::AttemptsExhausted).await;
        }
        let text = "nothing was sent; it will be tried again";
        self.step(tx, plan, index, Event::Abort, cause(reason, text)).await?;
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(action) = plan.actions.get_mut(position) {
            action.attempt = outcome.attempt + 1;
            action.asked = false;
            action.previous_abort = answer.outcome.encode_to_vec();
            action.retry_at = tx
                .now()
                .saturating_add(FIRST_PAUSE * 4_u32.saturating_pow(outcome.attempt.saturating_sub(1)));
            if reason == Reason::WrappingTokenUsed {
                // Somebody else may have read the credential: a person looks first.
                action.on_hold = true;
                reason_str(Reason::OperatorHold).clone_into(&mut action.reason);
                action.message = "the credential may have been read by somebody else; rotate it, then \
                    release the action"
                    .to_owned();
            }
        }
        Ok(())
    }

    /// The tool's return policy.
    fn returned(&self, plan: &mut PlanRow, answer: &Answer<'_>, outcome: &Outcome) -> Result<(), Fault> {
        let position = usize::try_from(answer.index).unwrap_or(usize::MAX);
        let Some(action) = plan.actions.get_mut(position) else { return Ok(()) };
        let envelope = Envelope::decode(action.definition.as_slice()).map_err(Fault::internal)?;
        let definition = Definition::verify(&envelope.payload).map_err(Fault::internal)?;
        let shown = definition.message().return_policy() == ReturnPolicy::Agent
            && outcome.kind() != OutcomeKind::Aborted;
        let is_it =
            exequatur_canonical::Digest::sha256(answer.result).as_bytes().as_slice() == outcome.result_digest;
        if shown && is_it && answer.result.len() <= MAX_RESULT {
            action.result = answer.result.to_vec();
        }
        Ok(())
    }

    /// The record of how an action ended; its entry's digest is the receipt.
    pub(crate) async fn receipt(
        &self,
        tx: &mut Tx,
        plan: &mut PlanRow,
        answer: &Answer<'_>,
        outcome: &Outcome,
    ) -> Result<(), Fault> {
        let decision = plan.decision.clone().unwrap_or_default();
        let position = usize::try_from(answer.index).unwrap_or(usize::MAX);
        let Some(action) = plan.actions.get_mut(position) else { return Ok(()) };
        if !matches!(action.state, State::Succeeded | State::Failed) {
            return Ok(());
        }
        let held = action.verdict == "require_human";
        let receipt = Receipt {
            plan_digest: plan.digest.clone(),
            index: answer.index,
            action_digest: action.digest.clone(),
            wire_digest: action.wire_digest.clone(),
            state: action.state.as_str().to_owned(),
            decision_digest: if held { digest(&decision) } else { Vec::new() },
            outcome_digest: digest(&answer.outcome.encode_to_vec()),
            leases: outcome.leases.clone(),
            // Of the warrant that the attempt ran under, which may be older than the last one that was signed.
            warrant_digest: outcome.warrant_digest.clone(),
            outcome: answer.outcome.encode_to_vec(),
        };
        let entry = self.ledger.append(tx, &plan.tenant, Body::Receipt(receipt)).await?;
        action.receipt = entry.digest.to_vec();
        Ok(())
    }
}
