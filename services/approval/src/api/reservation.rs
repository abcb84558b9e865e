//! `ReservationService`, the connector's door.

use std::sync::Arc;

use exequatur_proto::approval::v1::{
    CommitRequest, CommitResponse, ReleaseRequest, ReleaseResponse, ReserveRequest, ReserveResponse,
};
use exequatur_reservation_server::reservation_service_server::ReservationService;
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use crate::app::{App, Subject};

/// The service over the use cases.
pub struct Reservations(pub Arc<App>);

#[tonic::async_trait]
impl ReservationService for Reservations {
    async fn reserve(&self, request: Request<ReserveRequest>) -> Result<Response<ReserveResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ReservationService/Reserve", caller: &caller };
        let result = self.0.reserve(request.get_ref()).await;
        let reservation = self.0.answer(subject, result).await?;
        Ok(Response::new(ReserveResponse { reservation: Some(reservation) }))
    }

    async fn commit(&self, request: Request<CommitRequest>) -> Result<Response<CommitResponse>, Status> {
        let caller = caller(&request)?;
        let subject = Subject { method: "/exequatur.approval.v1.ReservationService/Commit", caller: &caller };
        let result = self.0.commit_item(request.get_ref().outcome.as_ref()).await;
        self.0.answer(subject, result).await?;
        Ok(Response::new(CommitResponse {}))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Result<Response<ReleaseResponse>, Status> {
        let caller = caller(&request)?;
        let subject =
            Subject { method: "/exequatur.approval.v1.ReservationService/Release", caller: &caller };
        let result = self.0.release(request.get_ref().outcome.as_ref()).await;
        self.0.answer(subject, result).await?;
        Ok(Response::new(ReleaseResponse {}))
    }
}
