//! The dispatcher: takes what may start, judges it again by what is in force now, signs a warrant and
//! asks the connector until it answers with a signed outcome. All its state is in the database, and the
//! connector's journal is the fence, so that asking again is always safe.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use exequatur_clock::UnixMillis;
use exequatur_door::Checked;
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Action as State, Event, Machine as _, Run as RunState};
use exequatur_policy::{Compiled, Verdict};
use exequatur_proto::execution::v1::ExecuteRequest;
use exequatur_proto::execution::v1::execute_response::Event as Said;
use exequatur_proto::statement::v1::{DecisionKind, Envelope, Header, Warrant};
use exequatur_statement::sign;
use exequatur_store::Tx;
use prost::Message as _;
use tokio::sync::watch;

use super::change::Cause;
use super::deliver::is_final;
use super::drafts::{Caller, judge};
use super::receipt::Answer;
use super::{App, PEER};
use crate::store::{ActionRow, PlanRow};

/// PREPARED must be written within this time of the warrant.
const START_WITHIN: Duration = Duration::from_secs(15);
/// How long what may start may wait to start.
const READY_FOR: Duration = Duration::from_secs(10 * 60);
/// Longest pause between two questions about one action.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Nothing waits longer than this for the next look, whoever forgot to wake it.
const LOOK: Duration = Duration::from_secs(1);
/// Beyond the longest time-out of a definition.
const ANSWER_WITHIN: Duration = Duration::from_secs(360);

/// A question to the connector, durable before it is asked.
struct Question {
    index: u32,
    request: ExecuteRequest,
    warrant: Vec<u8>,
}

enum Turn {
    Ask(Box<Question>),
    /// It must not start any more, for this reason, and the connector may have it: cancel there, then learn.
    CancelFirst(u32, Event, Fault),
    Later(UnixMillis),
    Nothing,
}

impl App {
    /// Dispatches until told to stop.
    pub async fn dispatch(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        loop {
            if let Err(fault) = self.look().await {
                tracing::warn!(reason = fault.reason_str(), "open plans cannot be read");
            }
            tokio::select! {
                () = self.work.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
        }
    }

    async fn look(self: &Arc<Self>) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let open = self.rows.open_plans(&mut tx, None).await?;
        drop(tx);
        for (tenant, plan) in open {
            let fresh = self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(plan.clone());
            if fresh {
                let app = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(fault) = app.work_on(&tenant, &plan).await {
                        tracing::warn!(reason = fault.reason_str(), "a plan waits: {}", fault.message());
                    }
                    app.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&plan);
                });
            }
        }
        Ok(())
    }

    /// Takes actions of a plan in order until nothing can start now.
    async fn work_on(&self, tenant: &str, plan: &str) -> Result<(), Fault> {
        loop {
            match self.turn(tenant, plan).await? {
                Turn::Nothing => return Ok(()),
                Turn::Later(at) => {
                    let now = self.store.clock().now()?;
                    if at.since(now) > MAX_PAUSE {
                        return Ok(());
                    }
                    tokio::time::sleep(at.since(now)).await;
                }
                Turn::Ask(question) => self.ask(tenant, plan, *question).await?,
                Turn::CancelFirst(index, event, fault) => {
                    self.cancel_first(tenant, plan, index, event, fault).await?
                }
            }
        }
    }

    /// What to do next, decided and made durable in one transaction.
    async fn turn(&self, tenant: &str, plan: &str) -> Result<Turn, Fault> {
        let mut tx = self.store.begin().await?;
        let Some(mut plan) = self.rows.plan(&mut tx, tenant, plan).await? else { return Ok(Turn::Nothing) };
        let Some(index) = next_action(&plan) else { return Ok(Turn::Nothing) };
        let now = tx.now();
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(action) = plan.actions.get_mut(position) else { return Ok(Turn::Nothing) };
        if action.on_hold {
            return Ok(Turn::Nothing);
        }
        if action.ready_at == UnixMillis(0) {
            action.ready_at = now;
        }
        if action.retry_at > now {
            return Ok(Turn::Later(action.retry_at));
        }
        let (asked, state) = (action.asked, action.state);
        if asked && action.journal != self.trust.journal() {
            self.journal_lost(tx, plan, index).await?;
            return Ok(Turn::Nothing);
        }
        if state == State::Ready && now > action.ready_at.saturating_add(READY_FOR) {
            let fault = Fault::new(Reason::Expired, "it could not be started in time");
            if asked {
                return Ok(Turn::CancelFirst(index, Event::Expire, fault));
            }
            self.give_up(tx, plan, index, Event::Expire, fault).await?;
            return Ok(Turn::Nothing);
        }
        let action = action.clone();
        match self.warranted(&mut tx, &plan, &action).await {
            Ok(question) => {
                if let Some(action) = plan.actions.get_mut(position) {
                    action.asked = true;
                    action.journal = self.trust.journal();
                }
                self.rows.put_plan(&mut tx, &plan).await?;
                tx.commit().await?;
                Ok(Turn::Ask(Box::new(question)))
            }
            Err(fault) if state == State::Executing || !is_final(fault.reason()) => Err(fault),
            Err(fault) => {
                let event = match fault.reason() {
                    Reason::RunRevoked => Event::Revoke,
                    Reason::RunExpired => Event::Expire,
                    _ => Event::Refuse,
                };
                // What may be at the connector is never ended by our own second thoughts alone.
                if asked {
                    return Ok(Turn::CancelFirst(index, event, fault));
                }
                self.give_up(tx, plan, index, event, fault).await.map(|()| Turn::Nothing)
            }
        }
    }

    /// A warrant for exactly what the zone's own signed proposal names, if what is in force now is no
    /// stricter. An action that was asked about before is asked about again whatever is in force.
    async fn warranted(&self, tx: &mut Tx, plan: &PlanRow, action: &ActionRow) -> Result<Question, Fault> {
        let now = tx.now();
        let checked = self.own_action(plan, action, now.0).await?;
        let held = action.verdict == Verdict::RequireHuman.as_str();
        if !held && action.verdict != Verdict::AutoApprove.as_str() {
            return Err(Fault::new(Reason::StatementInvalid, "no decision allows this action"));
        }
        let decision = if held { Some(self.approved(plan, &checked, now.0)?) } else { None };
        let set = self.rules(tx, &plan.tenant).await?;
        if !action.asked && action.state == State::Ready {
            self.in_force(tx, plan, action, &checked, &Compiled::new(&set)).await?;
        }
        let warrant = self.warrant(plan, action, &checked, held, set.digest().to_vec(), now)?;
        let request = ExecuteRequest {
            header: plan.header.clone(),
            index: action.index,
            action: action.action.clone(),
            definition: Some(Envelope::decode(action.definition.as_slice()).map_err(Fault::internal)?),
            warrant: Some(warrant.clone()),
            decision,
        };
        Ok(Question { index: action.index, request, warrant: warrant.encode_to_vec() })
    }

    async fn in_force(
        &self,
        tx: &mut Tx,
        plan: &PlanRow,
        action: &ActionRow,
        checked: &Checked,
        rules: &Compiled,
    ) -> Result<(), Fault> {
        self.served(&plan.tenant)?;
        let run = self.rows.run(tx, &plan.tenant, &plan.run).await?;
        let run = run.ok_or_else(|| Fault::new(Reason::RunRevoked, "the run is gone"))?;
        if run.state != RunState::Active {
            return Err(Fault::new(Reason::RunRevoked, "the run has ended"));
        }
        if tx.now() >= run.expires_at {
            return Err(Fault::new(Reason::RunExpired, "the run's life is over"));
        }
        let tool = self.rows.tool(tx, &plan.tenant, &action.tool).await?;
        if tool.is_none_or(|t| t.digest != checked.definition.digest().as_bytes()) {
            return Err(Fault::new(
                Reason::DefinitionChanged,
                "the tool's definition changed after the proposal; propose again",
            ));
        }
        let caller = Caller { tenant: &plan.tenant, agent: &run.agent, now: tx.now() };
        let verdict = judge(&checked.definition, &checked.action, &caller, rules).verdict;
        if verdict.as_str() != action.verdict
            && (verdict == Verdict::Deny || action.verdict == Verdict::AutoApprove.as_str())
        {
            return Err(Fault::new(
                Reason::PolicyChanged,
                "the rules in force are stricter than at the proposal; propose again",
            ));
        }
        Ok(())
    }

    fn warrant(
        &self,
        plan: &PlanRow,
        action: &ActionRow,
        checked: &Checked,
        held: bool,
        rule_set_digest: Vec<u8>,
        now: UnixMillis,
    ) -> Result<Envelope, Fault> {
        let start_by = now.saturating_add(START_WITHIN);
        let kind = if held { DecisionKind::Person } else { DecisionKind::Rule };
        let warrant = Warrant {
            header: Some(Header {
                issuer: self.zones.own.clone(),
                audience: self.zones.connector.clone(),
                tenant: plan.tenant.clone(),
                id: uuid::Uuid::now_v7().to_string(),
                issued_at: Some(now.to_proto()),
                // Approval and credential-vault see it a little after PREPARED.
                expires_at: Some(start_by.saturating_add(PEER * 4).to_proto()),
            }),
            plan_digest: plan.digest.clone(),
            index: action.index,
            action_digest: checked.action.digest().to_vec(),
            tool_digest: checked.definition.digest().to_vec(),
            wire_digest: checked.prepared.wire_digest().to_vec(),
            credentials: checked.definition.credentials().iter().map(|c| c.credential.clone()).collect(),
            decision_kind: kind.into(),
            attempt: action.attempt,
            start_by: Some(start_by.to_proto()),
            journal: self.trust.journal(),
            rule_set_digest,
            run: plan.run.clone(),
            previous_abort: action.previous_abort.clone(),
        };
        sign(&self.warrant_key, &warrant).map_err(Fault::internal)
    }

    /// Asks, and takes in whatever comes back.
    async fn ask(&self, tenant: &str, plan: &str, question: Question) -> Result<(), Fault> {
        let mut call = tonic::Request::new(question.request.clone());
        call.set_timeout(ANSWER_WITHIN);
        let mut answers = match self.connector.clone().execute(call).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return self.not_taken(tenant, plan, &question, Fault::from_status(&status)).await,
        };
        loop {
            match answers.message().await {
                Ok(Some(answer)) => match answer.event {
                    Some(Said::Accepted(_)) => self.accepted(tenant, plan, &question).await?,
                    Some(Said::Finished(finished)) => {
                        let outcome =
                            finished.outcome.ok_or_else(|| Fault::internal("an end without an outcome"))?;
                        let answer = Answer {
                            index: question.index,
                            warrant: &question.warrant,
                            outcome: &outcome,
                            result: &finished.result,
                        };
                        return self.take_answer(tenant, plan, answer).await;
                    }
                    Some(Said::Progress(_)) | None => {}
                },
                Ok(None) => {
                    return self
                        .wait(
                            tenant,
                            plan,
                            &question,
                            &Fault::new(Reason::Unavailable, "the connector went away"),
                        )
                        .await;
                }
                Err(status) => {
                    return self.not_taken(tenant, plan, &question, Fault::from_status(&status)).await;
                }
            }
        }
    }

    async fn accepted(&self, tenant: &str, plan: &str, question: &Question) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let Some(mut plan) = self.rows.plan(&mut tx, tenant, plan).await? else { return Ok(()) };
        let cause = Cause::of(&self.zones.connector, Reason::Unspecified, "").with(question.warrant.clone());
        if self.step(&mut tx, &mut plan, question.index, Event::Start, cause).await? {
            self.rows.put_plan(&mut tx, &plan).await?;
            self.commit(tx).await?;
        }
        Ok(())
    }

    /// The connector gave no outcome: an outage is waited out, a refusal of what it never took ends here.
    async fn not_taken(
        &self,
        tenant: &str,
        plan: &str,
        question: &Question,
        fault: Fault,
    ) -> Result<(), Fault> {
        // Another journal: one of the two has not read the new trust bundle yet.
        let passes = matches!(fault.reason(), Reason::WarrantExpired | Reason::JournalMismatch);
        if passes || !is_final(fault.reason()) {
            return self.wait(tenant, plan, question, &fault).await;
        }
        let mut tx = self.store.begin().await?;
        let Some(plan) = self.rows.plan(&mut tx, tenant, plan).await? else { return Ok(()) };
        let state = plan.actions.iter().find(|a| a.index == question.index).map(|a| a.state);
        if state != Some(State::Ready) {
            drop(tx);
            return self.wait(tenant, &plan.plan, question, &fault).await;
        }
        if fault.reason() != Reason::Cancelled {
            return self.give_up(tx, plan, question.index, Event::Refuse, fault).await;
        }
        let (event, reason, text) = self.cancelled(&mut tx, &plan).await?;
        self.give_up(tx, plan, question.index, event, Fault::new(reason, text)).await
    }

    /// Stays as it is, says why it waits, and is asked about again.
    async fn wait(&self, tenant: &str, plan: &str, question: &Question, fault: &Fault) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let Some(mut plan) = self.rows.plan(&mut tx, tenant, plan).await? else { return Ok(()) };
        let now = tx.now();
        let position = usize::try_from(question.index).unwrap_or(usize::MAX);
        if let Some(action) = plan.actions.get_mut(position)
            && matches!(action.state, State::Ready | State::Executing)
        {
            let waited = action.retry_at.0.saturating_sub(action.ready_at.0).max(0);
            let pause = Duration::from_millis(u64::try_from(waited / 4).unwrap_or(0));
            action.retry_at = now.saturating_add(pause.clamp(Duration::from_millis(200), MAX_PAUSE));
            fault.reason_str().clone_into(&mut action.reason);
            action.message = format!("waits for the connector: {}", fault.message());
            plan.sequence += 1;
            self.rows.put_plan(&mut tx, &plan).await?;
            self.commit(tx).await?;
        }
        Ok(())
    }
}

/// The one action whose turn it is: all before it have ended, and nothing holds the plan back.
fn next_action(plan: &PlanRow) -> Option<u32> {
    let header = exequatur_canonical::verify_plan(&plan.header).ok()?;
    let partial = header.header().allow_partial;
    if !partial && plan.actions.iter().any(|a| a.state == State::AwaitingApproval) {
        return None;
    }
    for action in &plan.actions {
        match action.state {
            State::Ready | State::Executing => return Some(action.index),
            state if state.is_terminal() => {}
            // Waiting for a person, or in doubt: order holds.
            _ => return None,
        }
    }
    None
}
