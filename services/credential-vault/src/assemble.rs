//! Puts the zone together from its configuration and serves it.

use std::sync::Arc;

use exequatur_catalog_server::catalog_service_server::CatalogServiceServer;
use exequatur_lease_server::lease_service_server::LeaseServiceServer;
use exequatur_ledger::{Ledger, outbox};
use exequatur_operations::{clock_service, ledger_service};
use exequatur_proto::trust::v1::Purpose;
use exequatur_service::{Failure, Server, Zone};
use exequatur_store::Store;
use exequatur_vault::Client;
use tokio::sync::Notify;

use crate::api::{Catalog, Leases};
use crate::app::App;
use crate::backend::{Backend, Vault};
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
    let vault = match zone.config.vault.clone() {
        Some(config) => {
            let client = Client::new(config).map_err(|e| Failure::Configuration(format!("[vault]: {e}")))?;
            Some(Arc::new(Vault { client, paths: zone.config.vault_paths.clone() }) as Arc<dyn Backend>)
        }
        None => None,
    };
    let app = Arc::new(App {
        store: store.clone(),
        catalog,
        ledger: ledger.clone(),
        trust: zone.trust.clone(),
        vault,
        wake: Arc::new(Notify::new()),
    });
    let deliver = Arc::clone(&app);
    tokio::spawn(outbox::run(store.clone(), Arc::clone(&app.wake), zone.shutdown(), move |message| {
        let app = Arc::clone(&deliver);
        async move { app.deliver(message).await }
    }));
    tokio::spawn(Arc::clone(&app).sweep(zone.shutdown()));
    Server::new()
        .refusals(Arc::clone(&app) as _)
        .add_service(LeaseServiceServer::new(Leases(Arc::clone(&app))))
        .add_service(CatalogServiceServer::new(Catalog(app)))
        .add_service(ledger_service(store.clone(), ledger.clone()))
        .add_service(clock_service(store, ledger))
        .serve(zone)
        .await
}
