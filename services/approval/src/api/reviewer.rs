//! `ReviewerService`, the operators' door.

use std::sync::Arc;

use exequatur_proto::approval::v1::{
    ListReviewersRequest, ListReviewersResponse, PutReviewerRequest, PutReviewerResponse,
    RemoveReviewerRequest, RemoveReviewerResponse, Reviewer,
};
use exequatur_reviewer_server::reviewer_service_server::ReviewerService;
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use crate::app::{App, Subject};

/// The service over the use cases.
pub struct Reviewers(pub Arc<App>);

#[tonic::async_trait]
impl ReviewerService for Reviewers {
    async fn put_reviewer(
        &self,
        request: Request<PutReviewerRequest>,
    ) -> Result<Response<PutReviewerResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ReviewerService/PutReviewer", caller: &caller };
        let r = request.get_ref();
        let result = self.0.put_reviewer(&caller, &r.tenant, &r.person).await;
        self.0.answer(subject, result).await?;
        Ok(Response::new(PutReviewerResponse {}))
    }

    async fn list_reviewers(
        &self,
        request: Request<ListReviewersRequest>,
    ) -> Result<Response<ListReviewersResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ReviewerService/ListReviewers", caller: &caller };
        let result = self.0.list_reviewers(&caller, &request.get_ref().tenant).await;
        let rows = self.0.answer(subject, result).await?;
        let reviewers = rows
            .into_iter()
            .map(|r| Reviewer { person: r.person, enrolled_at: Some(r.enrolled_at.to_proto()) })
            .collect();
        Ok(Response::new(ListReviewersResponse { reviewers }))
    }

    async fn remove_reviewer(
        &self,
        request: Request<RemoveReviewerRequest>,
    ) -> Result<Response<RemoveReviewerResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ReviewerService/RemoveReviewer", caller: &caller };
        let r = request.get_ref();
        let result = self.0.remove_reviewer(&caller, &r.tenant, &r.person).await;
        self.0.answer(subject, result).await?;
        Ok(Response::new(RemoveReviewerResponse {}))
    }
}
