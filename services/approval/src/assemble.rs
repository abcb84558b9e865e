//! Puts the zone together from its configuration and serves it.

use std::sync::Arc;

use exequatur_approval_server::approval_service_server::ApprovalServiceServer;
use exequatur_inbox_server::inbox_service_server::InboxServiceServer;
use exequatur_ledger::Ledger;
use exequatur_operations::{clock_service, ledger_service};
use exequatur_proto::trust::v1::Purpose;
use exequatur_reservation_server::reservation_service_server::ReservationServiceServer;
use exequatur_reviewer_server::reviewer_service_server::ReviewerServiceServer;
use exequatur_service::{Failure, Server, Zone};
use exequatur_store::Store;

use crate::api::{Approvals, Inbox, Reservations, Reviewers};
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
    let app = Arc::new(App::new(
        store.clone(),
        Arc::new(Sqlite::new(store.clone())),
        ledger.clone(),
        zone.trust.clone(),
        zone.keys.get(Purpose::Decision)?,
        zone.keys.get(Purpose::Reservation)?,
        Zones::of(&zone.common.realm),
    ));
    app.warn_unattended().await?;
    if zone.config.sweep {
        let (sweeper, shutdown) = (Arc::clone(&app), zone.shutdown());
        tokio::spawn(async move { sweeper.sweep(shutdown).await });
    }
    Server::new()
        .roles(Arc::clone(&app) as _)
        .refusals(Arc::clone(&app) as _)
        .add_service(ApprovalServiceServer::new(Approvals(Arc::clone(&app))))
        .add_service(ReservationServiceServer::new(Reservations(Arc::clone(&app))))
        .add_service(InboxServiceServer::new(Inbox(Arc::clone(&app))))
        .add_service(ReviewerServiceServer::new(Reviewers(app)))
        .add_service(ledger_service(store.clone(), ledger.clone()))
        .add_service(clock_service(store, ledger))
        .serve(zone)
        .await
}
