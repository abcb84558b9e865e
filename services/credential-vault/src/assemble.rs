//! Puts the zone together from its configuration and serves it.

use std::sync::Arc;

use exequatur_catalog_server::catalog_service_server::CatalogServiceServer;
use exequatur_lease_server::lease_service_server::LeaseServiceServer;
use exequatur_ledger::Ledger;
use exequatur_operations::{clock_service, ledger_service};
use exequatur_proto::trust::v1::Purpose;
use exequatur_service::{Failure, Server, Zone};
use exequatur_store::Store;

use crate::api::{Catalog, Leases};
use crate::app::App;
use crate::backend::Sealed;
use crate::config::Config;
use crate::store::{CatalogStore, MIGRATIONS, Sqlite};

/// Runs the zone until it is told to stop.
///
/// # Errors
/// [`Failure`] with its exit code.
pub async fn run(mut zone: Zone<Config>) -> Result<(), Failure> {
    let store = Store::open(&zone.common.data.join("zone.db"), &MIGRATIONS).await?;
    exequatur_ledger::schema(&store).await?;
    let ledger = Ledger::new(zone.id.clone(), zone.keys.get(Purpose::Ledger)?);
    ledger.verify_own(&store).await?;
    let catalog: Arc<dyn CatalogStore> = Arc::new(Sqlite);
    let app = Arc::new(App {
        store: store.clone(),
        backend: Arc::new(Sealed(Arc::clone(&catalog))),
        catalog,
        ledger: ledger.clone(),
        trust: zone.trust.clone(),
    });
    Server::new()
        .refusals(Arc::clone(&app) as _)
        .add_service(LeaseServiceServer::new(Leases(Arc::clone(&app))))
        .add_service(CatalogServiceServer::new(Catalog(app)))
        .add_service(ledger_service(store.clone(), ledger.clone()))
        .add_service(clock_service(store, ledger))
        .serve(zone)
        .await
}
