//! How an action moves: one place that asks the transition table and writes the log entry, and the
//! plan's own rules about what one action's end means for the others.

use exequatur_canonical::verify_plan;
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_ledger::outbox;
use exequatur_lifecycle::{Action as State, Event, Machine as _, next};
use exequatur_proto::approval::v1::WithdrawApprovalRequest;
use exequatur_proto::ledger::v1::Transition;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_store::Tx;
use prost::Message as _;

use super::App;
use crate::store::PlanRow;

/// Why an action moves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cause {
    /// SPIFFE ID of who caused it.
    pub(crate) actor: String,
    /// Stable reason; empty: the one it had stays away.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
    /// Envelope of the statement that goes with it.
    pub(crate) statement: Vec<u8>,
}

impl Cause {
    pub(crate) fn of(actor: &str, reason: Reason, message: impl Into<String>) -> Self {
        let reason =
            if reason == Reason::Unspecified { String::new() } else { reason_str(reason).to_owned() };
        Self { actor: actor.to_owned(), reason, message: message.into(), statement: Vec::new() }
    }

    pub(crate) fn with(mut self, statement: Vec<u8>) -> Self {
        self.statement = statement;
        self
    }
}

/// What stops the rest of a plan that does not go on after failures.
const fn is_failure(state: State) -> bool {
    matches!(state, State::Failed | State::Refused | State::Expired | State::Revoked | State::Rejected)
}

impl App {
    /// Moves one action. False: the table knows no such move, and nothing was written.
    pub(crate) async fn step(
        &self,
        tx: &mut Tx,
        plan: &mut PlanRow,
        index: u32,
        event: Event,
        cause: Cause,
    ) -> Result<bool, Fault> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let action =
            plan.actions.get_mut(position).ok_or_else(|| Fault::internal("an action went missing"))?;
        let before = action.state;
        let Some(after) = next(Some(before), event) else { return Ok(false) };
        action.state = after;
        action.reason.clone_from(&cause.reason);
        action.message = cause.message;
        if after == State::Ready {
            action.ready_at = if before == State::AwaitingApproval { UnixMillis(0) } else { action.ready_at };
        }
        let transition = Transition {
            machine: State::NAME.to_owned(),
            plan_digest: plan.digest.clone(),
            index,
            from: before.as_str().to_owned(),
            event: event.as_str().to_owned(),
            to: after.as_str().to_owned(),
            actor: cause.actor,
            reason: cause.reason,
            statement: cause.statement,
            action_digest: action.digest.clone(),
            ..Transition::default()
        };
        plan.sequence += 1;
        self.ledger.append(tx, &plan.tenant, Body::Transition(transition)).await?;
        Ok(true)
    }

    /// Applies what the state of each action means for the rest: skips what can no longer run.
    pub(crate) async fn progress(&self, tx: &mut Tx, plan: &mut PlanRow) -> Result<(), Fault> {
        let header =
            verify_plan(&plan.header).map_err(|_| Fault::internal("a stored header is not canonical"))?;
        let header = header.header();
        let all_or_nothing = !header.allow_partial
            && plan.actions.iter().any(|a| matches!(a.state, State::Denied | State::Rejected));
        let stops = |plan: &PlanRow, index: usize| {
            !header.continue_on_failure && plan.actions.iter().take(index).any(|a| is_failure(a.state))
        };
        let mut skipped = Vec::new();
        for index in 0..plan.actions.len() {
            if !all_or_nothing && !stops(plan, index) {
                continue;
            }
            let waits = plan.actions.get(index).is_some_and(|a| {
                matches!(a.state, State::AwaitingApproval) || (a.state == State::Ready && !a.asked)
            });
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let cause =
                Cause::of(&self.zones.own, Reason::Skipped, "an earlier action of the plan did not succeed");
            if waits && self.step(tx, plan, index, Event::Skip, cause).await? {
                skipped.push(index);
            }
        }
        self.withdraw(tx, plan, &skipped, Reason::Skipped).await
    }

    /// Tells approval that items are no longer wanted.
    pub(crate) async fn withdraw(
        &self,
        tx: &mut Tx,
        plan: &PlanRow,
        indexes: &[u32],
        reason: Reason,
    ) -> Result<(), Fault> {
        let held: Vec<u32> = plan
            .actions
            .iter()
            .filter(|a| indexes.contains(&a.index) && a.verdict == "require_human")
            .map(|a| a.index)
            .collect();
        if held.is_empty() {
            return Ok(());
        }
        let request = WithdrawApprovalRequest {
            tenant: plan.tenant.clone(),
            plan_digest: plan.digest.clone(),
            indexes: held,
            reason: reason_str(reason).to_owned(),
        };
        outbox::push(tx, "withdraw", &format!("plan/{}", plan.plan), &request.encode_to_vec()).await
    }

    /// Ends what a revoked run still has open. What may be at the connector waits for its answer.
    pub(crate) async fn revoke_plans(&self, tx: &mut Tx, run: &str, actor: &str) -> Result<(), Fault> {
        for (tenant, plan) in self.rows.open_plans(tx, Some(run)).await? {
            let Some(mut plan) = self.rows.plan(tx, &tenant, &plan).await? else { continue };
            let mut gone = Vec::new();
            for index in 0..u32::try_from(plan.actions.len()).unwrap_or(u32::MAX) {
                let asked = plan.actions.iter().any(|a| a.index == index && a.asked);
                let cause = || Cause::of(actor, Reason::RunRevoked, "the run was revoked");
                let moved = self.step(tx, &mut plan, index, Event::Withdraw, cause()).await?
                    || (!asked && self.step(tx, &mut plan, index, Event::Revoke, cause()).await?);
                if moved {
                    gone.push(index);
                }
            }
            self.withdraw(tx, &plan, &gone, Reason::RunRevoked).await?;
            self.rows.put_plan(tx, &plan).await?;
        }
        Ok(())
    }
}
