//! `ClockService`: an operator of all tenants says that the zone's clock is right; a record.

use exequatur_clock_server::clock_service_server::{ClockService, ClockServiceServer};
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::{Ledger, REALM};
use exequatur_proto::clock::v1::{AcknowledgeClockRequest, AcknowledgeClockResponse};
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::{Tenants, caller};
use exequatur_store::Store;
use tonic::{Request, Response, Status};

struct Acknowledge {
    store: Store,
    ledger: Ledger,
}

/// The service of a zone.
#[must_use]
pub fn clock_service(store: Store, ledger: Ledger) -> ClockServiceServer<impl ClockService> {
    ClockServiceServer::new(Acknowledge { store, ledger })
}

#[tonic::async_trait]
impl ClockService for Acknowledge {
    async fn acknowledge_clock(
        &self,
        request: Request<AcknowledgeClockRequest>,
    ) -> Result<Response<AcknowledgeClockResponse>, Status> {
        let caller = caller(&request)?;
        if caller.tenants != Tenants::All {
            return Err(Fault::new(
                Reason::TenantNotAllowed,
                "a zone's clock is for operators of all tenants",
            )
            .into());
        }
        let now = self.store.clock().acknowledge();
        let mut tx = self.store.begin_at(now).await?;
        let change = RegisterChanged {
            register: "clock".to_owned(),
            name: self.ledger.zone().to_owned(),
            change: "acknowledge".to_owned(),
            actor: caller.id,
            ..RegisterChanged::default()
        };
        self.ledger.append(&mut tx, REALM, Body::RegisterChanged(change)).await?;
        tx.commit().await?;
        Ok(Response::new(AcknowledgeClockResponse { now: Some(now.to_proto()) }))
    }
}
