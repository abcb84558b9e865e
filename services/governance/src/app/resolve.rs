//! A person settles what nobody knew: recorded, signed by the connector, nothing is sent.

use exequatur_canonical::verify_plan;
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Action as State, Event, Machine as _};
use exequatur_proto::execution::v1::ResolveRequest;
use exequatur_proto::statement::v1::Envelope;
use exequatur_service::Caller;
use prost::Message as _;

use super::change::Cause;
use super::receipt::Answer;
use super::{App, PEER, limit};
use crate::store::PlanRow;

impl App {
    /// Settles an action that is in doubt.
    ///
    /// # Errors
    /// `NOT_FOUND`, `WRONG_STATE`, `SELF_APPROVAL` for the run's owner.
    pub async fn resolve(
        &self,
        caller: &Caller,
        tenant: &str,
        plan: &str,
        index: u32,
        succeeded: bool,
        reason: &str,
    ) -> Result<PlanRow, Fault> {
        if reason.is_empty() {
            return Err(Fault::field("reason", "say how you know"));
        }
        limit("reason", reason.len(), 1024)?;
        let found = self.plan(caller, tenant, plan).await?;
        let header =
            verify_plan(&found.header).map_err(|_| Fault::internal("a stored header is not canonical"))?;
        if header.header().owner == caller.id {
            return Err(Fault::new(
                Reason::SelfApproval,
                "the owner of the run may not settle its actions; another operator must",
            ));
        }
        let action = found
            .actions
            .iter()
            .find(|a| a.index == index)
            .ok_or_else(|| Fault::not_found("action", &index.to_string()))?;
        if action.state != State::InDoubt {
            return Err(Fault::new(Reason::WrongState, "only an action that is in doubt can be settled")
                .with("state", action.state.as_str()));
        }
        // A journal that is gone can settle nothing: then the operator's word stands alone, on the record.
        let outcome = if action.journal == self.trust.journal() {
            Some(self.settled(caller, &found, index, succeeded, reason).await?)
        } else {
            None
        };
        let mut tx = self.store.begin().await?;
        let mut plan =
            self.rows.plan(&mut tx, tenant, plan).await?.ok_or_else(|| Fault::not_found("plan", plan))?;
        let event = if succeeded { Event::ResolveSucceeded } else { Event::ResolveFailed };
        let cause = Cause::of(&caller.id, Reason::Unspecified, format!("settled by {}: {reason}", caller.id));
        let statement = outcome.as_ref().map(Envelope::encode_to_vec).unwrap_or_default();
        if !self.step(&mut tx, &mut plan, index, event, cause.with(statement)).await? {
            return Err(Fault::new(Reason::WrongState, "it was settled meanwhile; read it again"));
        }
        if let Some(outcome) = &outcome {
            let said = self.outcome(outcome, &plan, index, tx.now().0)?;
            let answer = Answer { index, warrant: &[], outcome, result: &[] };
            self.receipt(&mut tx, &mut plan, &answer, &said).await?;
        }
        self.progress(&mut tx, &mut plan).await?;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await?;
        Ok(plan)
    }

    /// The connector closes its own record of the attempt and signs that.
    async fn settled(
        &self,
        caller: &Caller,
        plan: &PlanRow,
        index: u32,
        succeeded: bool,
        reason: &str,
    ) -> Result<Envelope, Fault> {
        let mut request = tonic::Request::new(ResolveRequest {
            tenant: plan.tenant.clone(),
            plan_digest: plan.digest.clone(),
            index,
            succeeded,
            operator: caller.id.clone(),
            reason: reason.to_owned(),
        });
        request.set_timeout(PEER);
        let answer = self.connector.clone().resolve(request).await.map_err(|s| Fault::from_status(&s))?;
        let outcome = answer.into_inner().outcome;
        outcome.ok_or_else(|| Fault::internal("the connector answered without an outcome"))
    }
}
