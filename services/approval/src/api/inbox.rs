//! `InboxService`, the reviewers' door.

use std::sync::Arc;

use exequatur_inbox_server::inbox_service_server::InboxService;
use exequatur_proto::approval::v1::{
    ApprovalState, DecideRequest, DecideResponse, GetApprovalRequest, GetApprovalResponse,
    ListApprovalsRequest, ListApprovalsResponse,
};
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use crate::app::{App, ListRequest, Subject};

/// The service over the use cases.
pub struct Inbox(pub Arc<App>);

#[tonic::async_trait]
impl InboxService for Inbox {
    async fn list_approvals(
        &self,
        request: Request<ListApprovalsRequest>,
    ) -> Result<Response<ListApprovalsResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let state = Some(r.state()).filter(|s| *s != ApprovalState::Unspecified);
        let list = ListRequest { page_size: r.page_size, page_token: r.page_token.clone(), state };
        let subject =
            Subject { method: "/exequatur.approval.v1.InboxService/ListApprovals", caller: &caller };
        let result = self.0.list(&caller, &list).await;
        let (approvals, next_page_token) = self.0.answer(subject, result).await?;
        Ok(Response::new(ListApprovalsResponse { approvals, next_page_token }))
    }

    async fn get_approval(
        &self,
        request: Request<GetApprovalRequest>,
    ) -> Result<Response<GetApprovalResponse>, Status> {
        let caller = caller(&request)?;
        let subject = Subject { method: "/exequatur.approval.v1.InboxService/GetApproval", caller: &caller };
        let result = self.0.get(&caller, &request.get_ref().approval).await;
        let approval = self.0.answer(subject, result).await?;
        Ok(Response::new(GetApprovalResponse { approval: Some(approval) }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let caller = caller(&request)?;
        let subject = Subject { method: "/exequatur.approval.v1.InboxService/Decide", caller: &caller };
        let result = self.0.decide(&caller, request.get_ref()).await;
        let approval = self.0.answer(subject, result).await?;
        Ok(Response::new(DecideResponse { approval: Some(approval) }))
    }
}
