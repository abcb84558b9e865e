//! `ExecutionService`.

use std::sync::Arc;

use exequatur_execution_server::execution_service_server::ExecutionService;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::execution::v1::cancel_request::Subject as Named;
use exequatur_proto::execution::v1::execute_response::Event;
use exequatur_proto::execution::v1::{
    Accepted, CancelRequest, CancelResponse, ExecuteRequest, ExecuteResponse, Finished as Last, Progress,
    ResolveRequest, ResolveResponse,
};
use exequatur_service::caller;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::app::{App, Call, Finished, Stage, Watching};
use crate::store::{Key, Subject};

const EXECUTE: &str = "/exequatur.execution.v1.ExecutionService/Execute";
const CANCEL: &str = "/exequatur.execution.v1.ExecutionService/Cancel";
const RESOLVE: &str = "/exequatur.execution.v1.ExecutionService/Resolve";

/// The service over the use cases.
pub struct Execution(pub Arc<App>);

type Events = mpsc::Sender<Result<ExecuteResponse, Status>>;

#[tonic::async_trait]
impl ExecutionService for Execution {
    type ExecuteStream = ReceiverStream<Result<ExecuteResponse, Status>>;

    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        let call = Call { method: EXECUTE, caller: caller(&request)?.id };
        let result = self.0.execute(request.into_inner()).await;
        let watching = self.0.answer(&call, result).await?;
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(follow(watching, sender));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let call = Call { method: CANCEL, caller: caller(&request)?.id };
        let request = request.into_inner();
        let result = match subject(&request) {
            Ok(subject) => self.0.cancel(&request.tenant, &subject).await,
            Err(fault) => Err(fault),
        };
        Ok(Response::new(self.0.answer(&call, result).await?))
    }

    async fn resolve(&self, request: Request<ResolveRequest>) -> Result<Response<ResolveResponse>, Status> {
        let call = Call { method: RESOLVE, caller: caller(&request)?.id };
        let request = request.into_inner();
        let key = Key { tenant: request.tenant, plan_digest: request.plan_digest, index: request.index };
        let result = if request.operator.is_empty() {
            Err(Fault::field("operator", "name the operator who settles it"))
        } else {
            self.0.resolve(&key, request.succeeded, &request.operator).await
        };
        let outcome = self.0.answer(&call, result).await?;
        Ok(Response::new(ResolveResponse { outcome: Some(outcome) }))
    }
}

fn subject(request: &CancelRequest) -> Result<Subject, Fault> {
    if request.tenant.is_empty() {
        return Err(Fault::field("tenant", "the tenant is missing"));
    }
    match &request.subject {
        Some(Named::Run(run)) => Ok(Subject::Run(run.clone())),
        Some(Named::PlanDigest(digest)) => Ok(Subject::Plan(digest.clone())),
        Some(Named::Action(action)) => Ok(Subject::Action(action.plan_digest.clone(), action.index)),
        Some(Named::Tool(tool)) => Ok(Subject::Tool(tool.clone())),
        Some(Named::WholeTenant(true)) => Ok(Subject::Tenant),
        Some(Named::WholeTenant(false)) | None => Err(Fault::field("subject", "say what to cancel")),
    }
}

/// The attempt goes on when the caller goes away; only the telling stops.
async fn follow(watching: Watching, sender: Events) {
    match watching {
        Watching::Finished(finished) => drop(sender.send(Ok(last(&finished))).await),
        Watching::Attempt(attempt, stages) => {
            let accepted = event(Event::Accepted(Accepted { attempt }));
            if sender.send(Ok(accepted)).await.is_ok() {
                tell(stages, &sender).await;
            }
        }
    }
}

async fn tell(mut stages: watch::Receiver<Stage>, sender: &Events) {
    loop {
        let stage = stages.borrow_and_update().clone();
        let (message, end) = match stage {
            Stage::Step(step) => (Ok(event(Event::Progress(Progress { step: step.to_owned() }))), false),
            Stage::Finished(finished) => (Ok(last(&finished)), true),
            Stage::Lost => {
                let fault =
                    Fault::new(Reason::StorageFailed, "the attempt's end could not be recorded; ask again");
                (Err(fault.into()), true)
            }
        };
        if sender.send(message).await.is_err() || end || stages.changed().await.is_err() {
            return;
        }
    }
}

fn event(event: Event) -> ExecuteResponse {
    ExecuteResponse { event: Some(event) }
}

fn last(finished: &Finished) -> ExecuteResponse {
    event(Event::Finished(Last { outcome: Some(finished.outcome.clone()), result: finished.result.clone() }))
}
