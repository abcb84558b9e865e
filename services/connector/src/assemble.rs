//! Puts the zone together from its configuration and serves it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use exequatur_egress::{Egress, Guard};
use exequatur_execution_server::execution_service_server::ExecutionServiceServer;
use exequatur_fault::{Fault, Reason};
use exequatur_identity::{SpiffeId, Zone as Peer, channel};
use exequatur_lease_client::lease_service_client::LeaseServiceClient;
use exequatur_ledger::{Ledger, outbox};
use exequatur_operations::{clock_service, ledger_service};
use exequatur_proto::trust::v1::Purpose;
use exequatur_reservation_client::reservation_service_client::ReservationServiceClient;
use exequatur_sealing_server::sealing_service_server::SealingServiceServer;
use exequatur_service::{Failure, Mode, Server, Zone};
use exequatur_store::Store;
use exequatur_vault::Client;
use tokio::sync::Notify;

use crate::api::{Execution, Sealing};
use crate::app::{App, Held, KeyRing, Opening, Zones};
use crate::config::Config;
use crate::store::{JournalStore as _, MIGRATIONS, Sqlite};

/// Runs the zone until it is told to stop.
///
/// # Errors
/// [`Failure`] with its exit code.
pub async fn run(mut zone: Zone<Config>) -> Result<(), Failure> {
    if zone.common.mode == Mode::Production && !zone.config.egress.is_empty() {
        return Err(Failure::Configuration(
            "mode `production` refuses [egress] exceptions and extra_roots".to_owned(),
        ));
    }
    let store = Store::open(&zone.common.data.join("zone.db"), &MIGRATIONS).await?;
    exequatur_ledger::schema(&store).await?;
    let ledger = Ledger::new(zone.id.clone(), zone.keys.get(Purpose::Ledger)?);
    ledger.verify_own(&store).await?;
    journal_id(&store, &zone.trust.journal()).await?;
    let app = Arc::new(app(&mut zone, store.clone(), ledger.clone())?);

    let deliver = Arc::clone(&app);
    tokio::spawn(outbox::run(store.clone(), Arc::clone(&app.wake), zone.shutdown(), move |message| {
        let app = Arc::clone(&deliver);
        async move { app.deliver(message).await }
    }));
    tokio::spawn(Arc::clone(&app).sweep(zone.shutdown()));

    Server::new()
        .refusals(Arc::clone(&app) as _)
        .add_service(ExecutionServiceServer::new(Execution(Arc::clone(&app))))
        .add_service(SealingServiceServer::new(Sealing(app)))
        .add_service(ledger_service(store.clone(), ledger.clone()))
        .add_service(clock_service(store, ledger))
        .serve(zone)
        .await
}

/// A journal under another id than the trust bundle's is lost, restored or foreign: nothing runs on it.
async fn journal_id(store: &Store, expected: &str) -> Result<(), Fault> {
    let mut tx = store.begin_untimed().await?;
    let found = Sqlite.id(&mut tx, expected).await?;
    tx.commit().await?;
    if found == expected {
        return Ok(());
    }
    Err(Fault::new(
        Reason::JournalMismatch,
        "this journal is not the one that the trust bundle names; restore it, or give it a new id with `exequatur pki journal`",
    )
    .with("found", found)
    .with("expected", expected))
}

fn app(zone: &mut Zone<Config>, store: Store, ledger: Ledger) -> Result<App, Failure> {
    let peer = |which: Peer| SpiffeId::zone(&zone.common.realm, which).map_err(Fault::internal);
    let approval = channel(&zone.tls, &zone.config.peers.approval, peer(Peer::Approval)?);
    let vault = channel(&zone.tls, &zone.config.peers.credential_vault, peer(Peer::CredentialVault)?);
    let keys = KeyRing::load(zone.keys.directory().clone())
        .map_err(|e| Failure::Starting(Fault::new(Reason::StatementInvalid, e.to_string())))?;
    let zones = Zones {
        own: zone.id.clone(),
        governance: zone.zone_id("governance"),
        approval: zone.zone_id("approval"),
        credential_vault: zone.zone_id("credential-vault"),
    };
    let vault_client = match zone.config.vault.clone() {
        Some(config) if config.auth.is_some() => {
            return Err(Failure::Configuration("[vault]: the connector has no login of its own".to_owned()));
        }
        Some(config) => {
            Some(Client::new(config).map_err(|e| Failure::Configuration(format!("[vault]: {e}")))?)
        }
        None => None,
    };
    let guard = Guard::new(zone.config.egress.exceptions.iter().copied());
    Ok(App {
        store,
        journal: Arc::new(Sqlite),
        ledger,
        trust: zone.trust.clone(),
        outcome_key: zone.keys.get(Purpose::Outcome)?,
        opening: Opening { keys, vault: vault_client, paths: zone.config.vault_paths.clone() },
        held: Held::default(),
        egress: Egress::new(guard, &zone.config.egress.extra_roots)?,
        approval: ReservationServiceClient::new(approval),
        vault: LeaseServiceClient::new(vault),
        zones,
        process: uuid::Uuid::now_v7().to_string(),
        wake: Arc::new(Notify::new()),
        running: Mutex::new(HashMap::new()),
    })
}
