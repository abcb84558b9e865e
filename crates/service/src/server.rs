//! The gRPC server of a zone: its layers in one list, health, reflection, drain.

use std::sync::Arc;
use std::time::Duration;

use exequatur_fault::Fault;
use exequatur_identity::{Tls, incoming};
use exequatur_statement::Trust;
use http::Request;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;
use tower::Service;

use crate::access::{AccessLayer, Refusals, Roles, Shared, Tokens};
use crate::program::{Failure, Zone};
use crate::table::AccessTable;

/// Calls in work per connection.
const CONCURRENCY: usize = 256;
/// Longest unary call; shorter deadlines of the caller win.
const DEADLINE: Duration = Duration::from_secs(60);
/// After this age a connection is closed, so that new certificates and trust take hold.
const CONNECTION_AGE: Duration = Duration::from_secs(15 * 60);
/// Time for calls in work after a stop.
const DRAIN: Duration = Duration::from_secs(5);
/// Bytes of metadata in one request.
const METADATA: u32 = 16 * 1024;

/// Collects a zone's services, then serves them.
pub struct Server {
    routes: RoutesBuilder,
    roles: Option<Arc<dyn Roles>>,
    tokens: Option<Arc<dyn Tokens>>,
    refusals: Option<Arc<dyn Refusals>>,
    anonymous: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server without services.
    #[must_use]
    pub fn new() -> Self {
        Self { routes: RoutesBuilder::default(), roles: None, tokens: None, refusals: None, anonymous: false }
    }

    /// Who reviews; approval only.
    #[must_use]
    pub fn roles(mut self, roles: Arc<dyn Roles>) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Who checks run tokens; governance only. Clients without a certificate are then accepted.
    #[must_use]
    pub fn tokens(mut self, tokens: Arc<dyn Tokens>) -> Self {
        self.tokens = Some(tokens);
        self.anonymous = true;
        self
    }

    /// Who keeps refusals.
    #[must_use]
    pub fn refusals(mut self, refusals: Arc<dyn Refusals>) -> Self {
        self.refusals = Some(refusals);
        self
    }

    /// Adds a generated server.
    #[must_use]
    pub fn add_service<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = http::Response<Body>, Error = std::convert::Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.routes.add_service(service);
        self
    }

    /// Serves until the zone is told to stop.
    ///
    /// # Errors
    /// [`Failure::Starting`] when the access table is not whole, [`Failure::Running`] when the transport fails.
    pub async fn serve<C>(self, zone: Zone<C>) -> Result<(), Failure> {
        let shutdown = zone.shutdown();
        self.serve_on(zone.listener, zone.tls, zone.trust, shutdown).await
    }

    /// The same on parts, for tests that run several zones in one process.
    ///
    /// # Errors
    /// As [`Server::serve`].
    pub async fn serve_on(
        mut self,
        listener: TcpListener,
        tls: Tls,
        trust: Trust,
        mut shutdown: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let shared = Arc::new(Shared {
            table: AccessTable::load()?,
            trust,
            roles: self.roles,
            tokens: self.tokens,
            refusals: self.refusals,
        });
        let (reporter, health) = tonic_health::server::health_reporter();
        self.routes.add_service(health);
        self.routes.add_service(reflection()?.build_v1().map_err(Fault::internal)?);
        self.routes.add_service(reflection()?.build_v1alpha().map_err(Fault::internal)?);
        reporter.set_service_status("", tonic_health::ServingStatus::Serving).await;

        // Outermost first.
        let router = tonic::transport::Server::builder()
            .timeout(DEADLINE)
            .concurrency_limit_per_connection(CONCURRENCY)
            .max_concurrent_streams(u32::try_from(CONCURRENCY).ok())
            .http2_max_header_list_size(METADATA)
            .http2_max_pending_accept_reset_streams(Some(64))
            .http2_keepalive_interval(Some(Duration::from_secs(30)))
            .http2_keepalive_timeout(Some(Duration::from_secs(10)))
            .max_connection_age(CONNECTION_AGE)
            .max_connection_age_grace(DEADLINE)
            // Who may call: nothing behind this line runs for a caller who may not.
            .layer(AccessLayer(shared))
            .add_routes(self.routes.routes());

        let mut stop = shutdown.clone();
        let serving =
            router.serve_with_incoming_shutdown(incoming(listener, tls, self.anonymous), async move {
                drop(stop.wait_for(|stop| *stop).await);
            });
        // Streams that never end must not keep a stopping zone alive.
        let drained = async move {
            drop(shutdown.wait_for(|stop| *stop).await);
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            result = serving => result.map_err(|e| Failure::Running(Fault::internal(e))),
            () = drained => Ok(()),
        }
    }
}

fn reflection() -> Result<tonic_reflection::server::Builder<'static>, Failure> {
    Ok(tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(exequatur_proto::DESCRIPTORS)
        // So that grpcurl shows error details instead of raw bytes.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET))
}
