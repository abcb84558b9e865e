//! Reading, following and taking back plans.

use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::outbox;
use exequatur_lifecycle::{Action as State, Event};
use exequatur_proto::execution::v1::{ActionRef, CancelRequest, cancel_request::Subject};
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::Caller;
use prost::Message as _;
use tokio::sync::watch;

use super::App;
use super::change::Cause;
use crate::store::PlanRow;

impl App {
    /// A plan that the caller may see: of its own run, or of its tenant.
    ///
    /// # Errors
    /// `NOT_FOUND`, also for what is there and not the caller's.
    pub async fn plan(&self, caller: &Caller, tenant: &str, plan: &str) -> Result<PlanRow, Fault> {
        let mut tx = self.store.begin().await?;
        let found = self.rows.plan(&mut tx, tenant, plan).await?;
        found.filter(|p| sees(caller, p)).ok_or_else(|| Fault::not_found("plan", plan))
    }

    /// Rings after every committed change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Takes back what has not started; a repeat changes nothing. What may be at the connector is
    /// cancelled there, and its answer counts.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn cancel_plan(&self, caller: &Caller, tenant: &str, plan: &str) -> Result<PlanRow, Fault> {
        let mut tx = self.store.begin().await?;
        let found = self.rows.plan(&mut tx, tenant, plan).await?.filter(|p| sees(caller, p));
        let mut plan = found.ok_or_else(|| Fault::not_found("plan", plan))?;
        let mut gone = Vec::new();
        for index in 0..u32::try_from(plan.actions.len()).unwrap_or(u32::MAX) {
            let cause = || Cause::of(&caller.id, Reason::Withdrawn, "the plan was taken back");
            let asked = plan.actions.iter().any(|a| a.index == index && a.asked && a.state == State::Ready);
            if asked {
                let action = ActionRef { plan_digest: plan.digest.clone(), index };
                let cancel =
                    CancelRequest { tenant: plan.tenant.clone(), subject: Some(Subject::Action(action)) };
                let key = format!("action/{}/{index}", plan.plan);
                outbox::push(&mut tx, "cancel", &key, &cancel.encode_to_vec()).await?;
                continue;
            }
            // READY has no WITHDRAWN in the table: what a rule or person allowed is skipped instead.
            if self.step(&mut tx, &mut plan, index, Event::Withdraw, cause()).await?
                || self.step(&mut tx, &mut plan, index, Event::Skip, cause()).await?
            {
                gone.push(index);
            }
        }
        if !gone.is_empty() {
            self.withdraw(&mut tx, &plan, &gone, Reason::Withdrawn).await?;
            self.rows.put_plan(&mut tx, &plan).await?;
        }
        self.commit(tx).await?;
        Ok(plan)
    }

    /// Lifts an operator's hold.
    ///
    /// # Errors
    /// `NOT_FOUND`, or `WRONG_STATE` when it is not held.
    pub async fn release_hold(
        &self,
        actor: &str,
        tenant: &str,
        plan: &str,
        index: u32,
    ) -> Result<PlanRow, Fault> {
        let mut tx = self.store.begin().await?;
        let found = self.rows.plan(&mut tx, tenant, plan).await?;
        let mut plan = found.ok_or_else(|| Fault::not_found("plan", plan))?;
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let action =
            plan.actions.get_mut(position).ok_or_else(|| Fault::not_found("action", &index.to_string()))?;
        if !action.on_hold {
            return Err(Fault::new(Reason::WrongState, "no operator holds this action"));
        }
        action.on_hold = false;
        // Its deadline stood still; it begins again.
        action.ready_at = UnixMillis(0);
        action.reason.clear();
        "an operator released it".clone_into(&mut action.message);
        plan.sequence += 1;
        let entry = RegisterChanged {
            register: "hold".to_owned(),
            name: format!("{}/{index}", plan.plan),
            change: "release".to_owned(),
            digest: plan.digest.clone(),
            actor: actor.to_owned(),
            statement: Vec::new(),
        };
        self.ledger.append(&mut tx, tenant, Body::RegisterChanged(entry)).await?;
        self.rows.put_plan(&mut tx, &plan).await?;
        self.commit(tx).await?;
        Ok(plan)
    }
}

fn sees(caller: &Caller, plan: &PlanRow) -> bool {
    caller.run.as_ref().is_none_or(|claims| claims.run == plan.run)
}
