//! `LedgerService`: streams one tenant's log as of the call, then its bodies, then the signed head.

use exequatur_fault::{Fault, Reason};
use exequatur_ledger::{Ledger, REALM};
use exequatur_ledger_server::ledger_service_server::{LedgerService, LedgerServiceServer};
use exequatur_proto::ledger::v1::export_ledger_response::Item;
use exequatur_proto::ledger::v1::{ExportLedgerRequest, ExportLedgerResponse};
use exequatur_service::{Tenants, caller};
use exequatur_store::Store;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

const PAGE: u32 = 64;

struct Export {
    store: Store,
    ledger: Ledger,
}

/// The service of a zone.
#[must_use]
pub fn ledger_service(store: Store, ledger: Ledger) -> LedgerServiceServer<impl LedgerService> {
    LedgerServiceServer::new(Export { store, ledger })
}

type Sender = mpsc::Sender<Result<ExportLedgerResponse, Status>>;

#[tonic::async_trait]
impl LedgerService for Export {
    type ExportLedgerStream = ReceiverStream<Result<ExportLedgerResponse, Status>>;

    async fn export_ledger(
        &self,
        request: Request<ExportLedgerRequest>,
    ) -> Result<Response<Self::ExportLedgerStream>, Status> {
        let caller = caller(&request)?;
        let tenant = caller.tenant(&request.get_ref().tenant)?.to_owned();
        if tenant == REALM && caller.tenants != Tenants::All {
            return Err(Fault::new(
                Reason::TenantNotAllowed,
                "the realm's log is for operators of all tenants",
            )
            .into());
        }
        let (sender, receiver) = mpsc::channel(16);
        let (store, ledger) = (self.store.clone(), self.ledger.clone());
        tokio::spawn(async move {
            if let Err(fault) = stream(&store, &ledger, &tenant, &sender).await {
                sender.send(Err(fault.into())).await.ok();
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// Entries never change, so the size at the start fixes the whole answer.
async fn stream(store: &Store, ledger: &Ledger, tenant: &str, sender: &Sender) -> Result<(), Fault> {
    let now = store.clock().now()?;
    let size = ledger.size(store, tenant).await?;
    let mut next = 0;
    while next < size {
        let limit = u32::try_from(size - next).unwrap_or(PAGE).min(PAGE);
        for entry in ledger.entries(store, tenant, next, limit).await? {
            next += 1;
            send(sender, Item::Entry(entry)).await?;
        }
    }
    let mut after = 0;
    loop {
        let page = ledger.bodies(store, tenant, after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for (row, body) in page {
            after = row;
            send(sender, Item::Body(body)).await?;
        }
    }
    send(sender, Item::Head(ledger.head(store, tenant, size, now).await?)).await
}

async fn send(sender: &Sender, item: Item) -> Result<(), Fault> {
    sender
        .send(Ok(ExportLedgerResponse { item: Some(item) }))
        .await
        .map_err(|_| Fault::new(Reason::Unavailable, "the reader of the export went away"))
}
