//! `SealingService`.

use std::sync::Arc;

use exequatur_proto::sealing::v1::{ResealRequest, ResealResponse};
use exequatur_sealing_server::sealing_service_server::SealingService;
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use crate::app::{App, Call};

/// The service over the use cases.
pub struct Sealing(pub Arc<App>);

#[tonic::async_trait]
impl SealingService for Sealing {
    async fn reseal(&self, request: Request<ResealRequest>) -> Result<Response<ResealResponse>, Status> {
        let caller = caller(&request)?;
        let call = Call { method: "/exequatur.sealing.v1.SealingService/Reseal", caller: caller.id.clone() };
        let r = request.get_ref();
        let result = match caller.tenant(&r.tenant) {
            Ok(tenant) => self.0.reseal(&caller.id, tenant, &r.credential).await,
            Err(fault) => Err(fault),
        };
        let (version, kid) = self.0.answer(&call, result).await?;
        Ok(Response::new(ResealResponse { version, kid }))
    }
}
