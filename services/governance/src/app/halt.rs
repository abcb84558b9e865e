//! How the dispatcher ends what it will not carry through. What may be at the connector is never ended
//! by second thoughts alone: the connector is asked first, or nobody knows.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Run as RunState};
use exequatur_prepare::Definition;
use exequatur_proto::definition::v1::Effect;
use exequatur_proto::execution::v1::{ActionRef, CancelRequest, cancel_request::Subject};
use exequatur_proto::statement::v1::Envelope;
use exequatur_store::Tx;
use prost::Message as _;

use super::change::Cause;
use super::receipt::Answer;
use super::{App, Call, PEER};
use crate::store::{ActionRow, PlanRow};

impl App {
    /// Ends what has not started: the item is taken back, the rest of the plan follows its rules.
    pub(crate) async fn give_up(
        &self,
        mut tx: Tx,
        mut plan: PlanRow,
        index: u32,
        event: Event,
        fault: Fault,
    ) -> Result<(), Fault> {
        let cause = Cause::of(&self.zones.own, fault.reason(), fault.message());
        self.step(&mut tx, &mut plan, index, event, cause).await?;
        self.withdraw(&mut tx, &plan, &[index], fault.reason()).await?;
        self.progress(&mut tx, &mut plan).await?;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await?;
        // A tampered row is more than a refusal of one action.
        let call =
            Call { method: "dispatch", caller: self.zones.own.clone(), tenant: Some(plan.tenant.clone()) };
        let digest =
            exequatur_canonical::Digest::from_slice(&plan.digest).map(|d| d.to_string()).unwrap_or_default();
        let about = fault.with("plan", digest).with("index", index.to_string());
        drop(self.answer::<()>(&call, Err(about)).await);
        Ok(())
    }

    /// What the connector cancelled ends as what it was cancelled for: its run was revoked, or the plan
    /// was taken back.
    pub(crate) async fn cancelled(
        &self,
        tx: &mut Tx,
        plan: &PlanRow,
    ) -> Result<(Event, Reason, &'static str), Fault> {
        let run = self.rows.run(tx, &plan.tenant, &plan.run).await?;
        if run.is_none_or(|run| run.state == RunState::Revoked) {
            let text = "the run was revoked before anything was sent";
            return Ok((Event::Revoke, Reason::RunRevoked, text));
        }
        Ok((Event::Skip, Reason::Withdrawn, "the plan was taken back before anything was sent"))
    }

    /// The journal that was asked is gone, and with it the fence. The new one would begin again what the
    /// old one may have sent: nobody knows, unless it only reads.
    pub(crate) async fn journal_lost(&self, mut tx: Tx, mut plan: PlanRow, index: u32) -> Result<(), Fault> {
        let cause = |text: &str| Cause::of(&self.zones.own, Reason::JournalMismatch, text);
        self.step(&mut tx, &mut plan, index, Event::Start, cause("")).await?;
        let reads = plan.actions.iter().find(|a| a.index == index).is_some_and(only_reads);
        let (event, text) = if reads {
            (Event::Fail, "the connector's journal was replaced meanwhile; propose it again")
        } else {
            (Event::Doubt, "the connector's journal was replaced meanwhile; an operator must find out")
        };
        self.step(&mut tx, &mut plan, index, event, cause(text)).await?;
        self.progress(&mut tx, &mut plan).await?;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await
    }

    /// Nothing may start any more: the connector forgets what it did not take, or says what it did.
    pub(crate) async fn cancel_first(
        &self,
        tenant: &str,
        plan: &str,
        index: u32,
        event: Event,
        fault: Fault,
    ) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let found = self.rows.plan(&mut tx, tenant, plan).await?;
        drop(tx);
        let Some(found) = found else { return Ok(()) };
        let subject = Subject::Action(ActionRef { plan_digest: found.digest.clone(), index });
        let mut call =
            tonic::Request::new(CancelRequest { tenant: tenant.to_owned(), subject: Some(subject) });
        call.set_timeout(PEER);
        let said =
            self.connector.clone().cancel(call).await.map_err(|s| Fault::from_status(&s))?.into_inner();
        if let Some(outcome) = said.aborted.first() {
            let answer = Answer { index, warrant: &[], outcome, result: &[] };
            return self.take_answer(tenant, plan, answer).await;
        }
        let mut tx = self.store.begin().await?;
        let Some(mut plan) = self.rows.plan(&mut tx, tenant, plan).await? else { return Ok(()) };
        if said.already_sent.is_empty() {
            return self.give_up(tx, plan, index, event, fault).await;
        }
        if event != Event::Expire {
            return Err(fault);
        }
        // It was sent: what became of it is asked for as ever.
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(action) = plan.actions.get_mut(position) {
            action.ready_at = tx.now();
        }
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await
    }
}

/// Whether its definition says that it changes nothing; unreadable: no.
fn only_reads(action: &ActionRow) -> bool {
    let envelope = Envelope::decode(action.definition.as_slice()).ok();
    envelope
        .and_then(|e| Definition::verify(&e.payload).ok())
        .is_some_and(|d| d.message().effect() == Effect::Read)
}
