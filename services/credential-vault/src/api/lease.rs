//! `LeaseService`, the connector's door.

use std::sync::Arc;

use exequatur_fault::Fault;
use exequatur_lease_server::lease_service_server::LeaseService;
use exequatur_proto::credential::v1::{
    GiveBackRequest, GiveBackResponse, LeaseRequest, LeaseResponse, PutResealedRequest, PutResealedResponse,
    TakeSealedRequest, TakeSealedResponse,
};
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use crate::app::{App, Call};

/// The service over the use cases.
pub struct Leases(pub Arc<App>);

#[tonic::async_trait]
impl LeaseService for Leases {
    async fn lease(&self, request: Request<LeaseRequest>) -> Result<Response<LeaseResponse>, Status> {
        let call =
            Call { method: "/exequatur.credential.v1.LeaseService/Lease", caller: caller(&request)?.id };
        // In a task of its own: a connector that dies must not cut a call of Vault short, which would leave a
        // dynamic user without a lease.
        let (app, request) = (Arc::clone(&self.0), request.into_inner());
        let task = tokio::spawn(async move { app.lease(&request).await });
        let result = task.await.unwrap_or_else(|e| Err(Fault::internal(e)));
        Ok(Response::new(self.0.answer(&call, result).await?))
    }

    async fn give_back(
        &self,
        request: Request<GiveBackRequest>,
    ) -> Result<Response<GiveBackResponse>, Status> {
        let call =
            Call { method: "/exequatur.credential.v1.LeaseService/GiveBack", caller: caller(&request)?.id };
        let result = self.0.give_back(request.get_ref()).await;
        self.0.answer(&call, result).await?;
        Ok(Response::new(GiveBackResponse {}))
    }

    async fn take_sealed(
        &self,
        request: Request<TakeSealedRequest>,
    ) -> Result<Response<TakeSealedResponse>, Status> {
        let caller = caller(&request)?.id;
        let call =
            Call { method: "/exequatur.credential.v1.LeaseService/TakeSealed", caller: caller.clone() };
        let r = request.get_ref();
        let result = self.0.take_sealed(&caller, &r.tenant, &r.credential).await;
        Ok(Response::new(self.0.answer(&call, result).await?))
    }

    async fn put_resealed(
        &self,
        request: Request<PutResealedRequest>,
    ) -> Result<Response<PutResealedResponse>, Status> {
        let caller = caller(&request)?.id;
        let call =
            Call { method: "/exequatur.credential.v1.LeaseService/PutResealed", caller: caller.clone() };
        let r = request.get_ref();
        let result =
            self.0.put_resealed(&caller, &r.tenant, &r.credential, r.version, r.value.as_ref()).await;
        self.0.answer(&call, result).await?;
        Ok(Response::new(PutResealedResponse {}))
    }
}
