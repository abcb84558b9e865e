//! `ApprovalService`, governance's door.

use std::sync::Arc;

use exequatur_approval_server::approval_service_server::ApprovalService;
use exequatur_proto::approval::v1::{
    OpenApprovalRequest, OpenApprovalResponse, WatchApprovalsRequest, WatchApprovalsResponse,
    WithdrawApprovalRequest, WithdrawApprovalResponse,
};
use exequatur_service::caller;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use crate::app::{App, Subject};

/// Response metadata that says what an operator should look at; the call succeeded all the same.
pub const WARNING: &str = "exequatur-warning";

/// The service over the use cases.
pub struct Approvals(pub Arc<App>);

#[tonic::async_trait]
impl ApprovalService for Approvals {
    type WatchApprovalsStream = ReceiverStream<Result<WatchApprovalsResponse, Status>>;

    async fn open_approval(
        &self,
        request: Request<OpenApprovalRequest>,
    ) -> Result<Response<OpenApprovalResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ApprovalService/OpenApproval", caller: &caller };
        let result = self.0.open(request.get_ref()).await;
        let opened = self.0.answer(subject, result).await?;
        let mut response = Response::new(OpenApprovalResponse { approval: opened.approval });
        if opened.unattended {
            response.metadata_mut().insert(WARNING, MetadataValue::from_static("NO_REVIEWERS"));
        }
        Ok(response)
    }

    async fn watch_approvals(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchApprovalsStream>, Status> {
        let mut events = self.0.follow(request.get_ref().after_sequence);
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if sender.send(event.map_err(Status::from)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn withdraw_approval(
        &self,
        request: Request<WithdrawApprovalRequest>,
    ) -> Result<Response<WithdrawApprovalResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ApprovalService/WithdrawApproval", caller: &caller };
        let result = self.0.withdraw(request.get_ref()).await;
        let items = self.0.answer(subject, result).await?;
        Ok(Response::new(WithdrawApprovalResponse { items }))
    }
}
