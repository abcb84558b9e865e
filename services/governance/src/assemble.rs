//! Puts the zone together from its configuration and serves it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use exequatur_approval_client::approval_service_client::ApprovalServiceClient;
use exequatur_execution_client::execution_service_client::ExecutionServiceClient;
use exequatur_fault::Fault;
use exequatur_identity::{SpiffeId, Zone as Peer, channel};
use exequatur_ledger::{Ledger, outbox};
use exequatur_operations::{clock_service, ledger_service};
use exequatur_plan_server::plan_service_server::PlanServiceServer;
use exequatur_policy_server::policy_service_server::PolicyServiceServer;
use exequatur_proto::trust::v1::Purpose;
use exequatur_run_server::run_service_server::RunServiceServer;
use exequatur_service::{Failure, Server, Zone};
use exequatur_store::Store;
use exequatur_tool_server::tool_service_server::ToolServiceServer;
use tokio::sync::{Notify, watch};

use crate::api::{Plans, Policies, Runs, Tools};
use crate::app::{App, Zones};
use crate::config::Config;
use crate::store::{MIGRATIONS, Sqlite};

/// Runs the zone until it is told to stop.
///
/// # Errors
/// [`Failure`] with its exit code.
pub async fn run(mut zone: Zone<Config>) -> Result<(), Failure> {
    let store = Store::open(&zone.common.data.join("zone.db"), &MIGRATIONS).await?;
    exequatur_ledger::schema(&store).await?;
    let ledger = Ledger::new(zone.id.clone(), zone.keys.get(Purpose::Ledger)?);
    ledger.verify_own(&store).await?;
    let app = Arc::new(app(&mut zone, store.clone(), ledger.clone())?);

    let deliver = Arc::clone(&app);
    tokio::spawn(outbox::run(store.clone(), Arc::clone(&app.outbox), zone.shutdown(), move |message| {
        let app = Arc::clone(&deliver);
        async move { app.deliver(message).await }
    }));
    tokio::spawn(Arc::clone(&app).follow_approvals(zone.shutdown()));
    tokio::spawn(Arc::clone(&app).dispatch(zone.shutdown()));

    Server::new()
        .tokens(Arc::clone(&app) as _)
        .refusals(Arc::clone(&app) as _)
        .add_service(RunServiceServer::new(Runs(Arc::clone(&app))))
        .add_service(PlanServiceServer::new(Plans(Arc::clone(&app))))
        .add_service(ToolServiceServer::new(Tools(Arc::clone(&app))))
        .add_service(PolicyServiceServer::new(Policies(app)))
        .add_service(ledger_service(store.clone(), ledger.clone()))
        .add_service(clock_service(store, ledger))
        .serve(zone)
        .await
}

fn app(zone: &mut Zone<Config>, store: Store, ledger: Ledger) -> Result<App, Failure> {
    let tenants = zone.config.tenants.as_deref().map(crate::tenants::load).transpose();
    let tenants = tenants.map_err(Failure::Configuration)?;
    let peer = |which: Peer| SpiffeId::zone(&zone.common.realm, which).map_err(Fault::internal);
    let approval = channel(&zone.tls, &zone.config.peers.approval, peer(Peer::Approval)?);
    let connector = channel(&zone.tls, &zone.config.peers.connector, peer(Peer::Connector)?);
    let zones = Zones {
        realm: zone.common.realm.clone(),
        own: zone.id.clone(),
        approval: zone.zone_id("approval"),
        connector: zone.zone_id("connector"),
    };
    Ok(App {
        store,
        rows: Arc::new(Sqlite),
        ledger,
        trust: zone.trust.clone(),
        token_key: zone.keys.get(Purpose::RunToken)?,
        warrant_key: zone.keys.get(Purpose::Warrant)?,
        approval: ApprovalServiceClient::new(approval),
        connector: ExecutionServiceClient::new(connector),
        zones,
        tenants,
        outbox: Arc::new(Notify::new()),
        work: Arc::new(Notify::new()),
        changed: watch::Sender::new(()),
        busy: Mutex::new(HashSet::new()),
    })
}
