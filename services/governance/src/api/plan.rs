//! `PlanService`.

use std::sync::Arc;

use exequatur_canonical::{Digest, words};
use exequatur_fault::{Fault, Reason, reason_from_str};
use exequatur_lifecycle::{Action as State, Plan as Whole};
use exequatur_plan_server::plan_service_server::PlanService;
use exequatur_prepare::Definition;
use exequatur_proto::definition::v1::Risk;
use exequatur_proto::plan::v1::{
    Action, ActionState, CancelPlanRequest, CancelPlanResponse, GetPlanRequest, GetPlanResponse, Plan,
    PlanState, ProposePlanRequest, ProposePlanResponse, ReleaseActionRequest, ReleaseActionResponse,
    Resolution, ResolveActionRequest, ResolveActionResponse, WatchPlanRequest, WatchPlanResponse,
};
use exequatur_proto::statement::v1::Envelope;
use exequatur_service::{Caller, caller};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::call;
use crate::app::App;
use crate::store::{ActionRow, PlanRow};

/// The service over the use cases.
pub struct Plans(pub Arc<App>);

#[tonic::async_trait]
impl PlanService for Plans {
    type WatchPlanStream = ReceiverStream<Result<WatchPlanResponse, Status>>;

    async fn propose_plan(
        &self,
        request: Request<ProposePlanRequest>,
    ) -> Result<Response<ProposePlanResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.plan.v1.PlanService/ProposePlan", &caller, "");
        let result = self.0.propose(&caller, request.get_ref()).await;
        let proposal = self.0.answer(&call, result).await?;
        let mut plan = shown(&proposal.plan);
        if proposal.duplicate {
            plan.duplicate_of.clone_from(&plan.plan);
        }
        Ok(Response::new(ProposePlanResponse { plan: Some(plan) }))
    }

    async fn get_plan(&self, request: Request<GetPlanRequest>) -> Result<Response<GetPlanResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let plan = self.0.plan(&caller, caller.tenant(&r.tenant)?, &r.plan).await?;
        Ok(Response::new(GetPlanResponse { plan: Some(shown(&plan)) }))
    }

    async fn watch_plan(
        &self,
        request: Request<WatchPlanRequest>,
    ) -> Result<Response<Self::WatchPlanStream>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let tenant = caller.tenant(&r.tenant)?.to_owned();
        // Refused at once when it is not there.
        self.0.plan(&caller, &tenant, &r.plan).await?;
        let (sender, receiver) = mpsc::channel(8);
        let (app, plan, after) = (Arc::clone(&self.0), r.plan.clone(), r.after_sequence);
        tokio::spawn(async move {
            if let Err(fault) = follow(&app, &caller, &tenant, &plan, after, &sender).await {
                sender.send(Err(fault.into())).await.ok();
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn cancel_plan(
        &self,
        request: Request<CancelPlanRequest>,
    ) -> Result<Response<CancelPlanResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.plan.v1.PlanService/CancelPlan", &caller, &r.tenant);
        let result = async { self.0.cancel_plan(&caller, caller.tenant(&r.tenant)?, &r.plan).await };
        let plan = self.0.answer(&call, result.await).await?;
        Ok(Response::new(CancelPlanResponse { plan: Some(shown(&plan)) }))
    }

    async fn resolve_action(
        &self,
        request: Request<ResolveActionRequest>,
    ) -> Result<Response<ResolveActionResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.plan.v1.PlanService/ResolveAction", &caller, &r.tenant);
        let result = async {
            let tenant = caller.tenant(&r.tenant)?;
            let succeeded = match r.resolution() {
                Resolution::Succeeded => true,
                Resolution::Failed => false,
                Resolution::Unspecified => {
                    return Err(Fault::field("resolution", "say whether it succeeded or failed"));
                }
            };
            self.0.resolve(&caller, tenant, &r.plan, r.index, succeeded, &r.reason).await
        };
        let plan = self.0.answer(&call, result.await).await?;
        Ok(Response::new(ResolveActionResponse { plan: Some(shown(&plan)) }))
    }

    async fn release_action(
        &self,
        request: Request<ReleaseActionRequest>,
    ) -> Result<Response<ReleaseActionResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.plan.v1.PlanService/ReleaseAction", &caller, &r.tenant);
        let result =
            async { self.0.release_hold(&caller.id, caller.tenant(&r.tenant)?, &r.plan, r.index).await };
        let plan = self.0.answer(&call, result.await).await?;
        Ok(Response::new(ReleaseActionResponse { plan: Some(shown(&plan)) }))
    }
}

/// The plan now and after every change, until nothing can change any more.
async fn follow(
    app: &App,
    caller: &Caller,
    tenant: &str,
    plan: &str,
    mut after: u64,
    sender: &mpsc::Sender<Result<WatchPlanResponse, Status>>,
) -> Result<(), Fault> {
    let mut changes = app.changes();
    loop {
        changes.borrow_and_update();
        let now = app.plan(caller, tenant, plan).await?;
        if now.sequence > after {
            after = now.sequence;
            if sender.send(Ok(WatchPlanResponse { plan: Some(shown(&now)) })).await.is_err() {
                return Ok(());
            }
        }
        if !now.is_open() {
            return Ok(());
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return Err(Fault::new(Reason::Unavailable, "the zone stops; watch again"));
                }
            }
            () = sender.closed() => return Ok(()),
        }
    }
}

fn shown(plan: &PlanRow) -> Plan {
    let digest = Digest::from_slice(&plan.digest).unwrap_or_else(|_| Digest::new([0; 32]));
    let high = plan.actions.iter().any(is_high_risk);
    let state = match plan.state() {
        Whole::Waiting => PlanState::Waiting,
        Whole::Running => PlanState::Running,
        Whole::InDoubt => PlanState::InDoubt,
        Whole::Done => PlanState::Done,
    };
    Plan {
        plan: plan.plan.clone(),
        digest: plan.digest.clone(),
        words: words(&digest, high),
        state: state.into(),
        actions: plan.actions.iter().map(|a| action(plan, a)).collect(),
        duplicate_of: String::new(),
        header: plan.header.clone(),
        sequence: plan.sequence,
    }
}

fn is_high_risk(row: &ActionRow) -> bool {
    let definition =
        Envelope::decode(row.definition.as_slice()).ok().and_then(|e| Definition::verify(&e.payload).ok());
    definition.is_none_or(|d| d.message().risk() == Risk::High)
}

fn action(plan: &PlanRow, row: &ActionRow) -> Action {
    Action {
        index: row.index,
        digest: row.digest.clone(),
        effect_digest: row.effect_digest.clone(),
        wire_digest: row.wire_digest.clone(),
        tool: row.tool.clone(),
        state: state(row.state).into(),
        rule: row.rule.clone(),
        reason: row.reason.clone(),
        message: row.message.clone(),
        retryable: is_retryable(row),
        instead: row.instead.clone(),
        filled: row.filled.clone(),
        receipt: row.receipt.clone(),
        result: row.result.clone(),
        frozen: row.action.clone(),
        approval: if row.verdict == "require_human" { plan.approval.clone() } else { String::new() },
    }
}

/// Whether proposing it again can help.
fn is_retryable(row: &ActionRow) -> bool {
    match row.state {
        State::Expired | State::Withdrawn | State::Skipped | State::Refused | State::Revoked => true,
        State::Failed => matches!(
            reason_from_str(&row.reason),
            Reason::AttemptsExhausted
                | Reason::ProviderUnclear
                | Reason::Unavailable
                | Reason::DestinationUnreachable
        ),
        _ => false,
    }
}

const fn state(state: State) -> ActionState {
    match state {
        State::Proposed => ActionState::Proposed,
        State::Denied => ActionState::Denied,
        State::AwaitingApproval => ActionState::AwaitingApproval,
        State::Ready => ActionState::Ready,
        State::Rejected => ActionState::Rejected,
        State::NotSelected => ActionState::NotSelected,
        State::Expired => ActionState::Expired,
        State::Withdrawn => ActionState::Withdrawn,
        State::Skipped => ActionState::Skipped,
        State::Executing => ActionState::Executing,
        State::Refused => ActionState::Refused,
        State::Revoked => ActionState::Revoked,
        State::Succeeded => ActionState::Succeeded,
        State::Failed => ActionState::Failed,
        State::InDoubt => ActionState::InDoubt,
    }
}
