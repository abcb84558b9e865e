//! A real server over real mutual TLS on loopback that notes whom it saw, and real clients.
#![allow(dead_code, reason = "each test file uses a part")]

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exequatur_identity::{Peer, SpiffeId, Tls, TlsFiles, channel, incoming, peer_from_extensions};
use exequatur_pki::{LeafSpec, Pki, issue_leaf};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server};
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

pub(crate) const REALM: &str = "test.example";

pub(crate) fn zone(name: &str) -> SpiffeId {
    format!("spiffe://{REALM}/zone/{name}").parse().unwrap()
}

/// A PKI in a folder of its own.
pub(crate) struct Realm(TempDir);

impl Realm {
    pub(crate) fn new() -> Self {
        exequatur_identity::install_crypto();
        let folder = tempfile::tempdir().unwrap();
        Pki::init(folder.path(), REALM).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn zone_folder(&self, name: &str) -> PathBuf {
        self.path().join("zones").join(name)
    }

    /// Certificate and key of any shape, in a new folder.
    pub(crate) fn leaf(&self, name: &str, spec: &LeafSpec) -> PathBuf {
        let out = self.path().join("leaves").join(name);
        issue_leaf(self.path(), &out, spec).unwrap();
        out
    }

    /// Files of `folder`, with this realm's CA.
    pub(crate) fn files(&self, folder: &Path) -> TlsFiles {
        TlsFiles {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            ca: self.path().join("ca.crt"),
        }
    }

    pub(crate) fn tls(&self, folder: &Path) -> Tls {
        Tls::load(&self.files(folder), REALM).unwrap()
    }

    pub(crate) fn zone_tls(&self, name: &str) -> Tls {
        self.tls(&self.zone_folder(name))
    }
}

/// A server and whom its handler saw.
pub(crate) struct Served {
    pub(crate) address: String,
    pub(crate) seen: Arc<Mutex<Vec<Option<Peer>>>>,
}

impl Served {
    pub(crate) fn ids(&self) -> Vec<Option<String>> {
        self.seen.lock().unwrap().iter().map(|p| p.as_ref().map(|p| p.id.to_string())).collect()
    }

    pub(crate) fn last(&self) -> Peer {
        self.seen.lock().unwrap().last().unwrap().clone().unwrap()
    }
}

pub(crate) async fn serve(tls: &Tls, anonymous: bool) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let (_, health) = tonic_health::server::health_reporter();
    let noting = InterceptedService::new(health, move |request: Request<()>| {
        let peer = peer_from_extensions(request.extensions()).map_err(Status::from)?;
        notes.lock().unwrap().push(peer);
        Ok(request)
    });
    let connections = incoming(listener, tls.clone(), anonymous);
    tokio::spawn(Server::builder().add_service(noting).serve_with_incoming(connections));
    Served { address, seen }
}

/// One call over `channel`; an error is told with its whole chain.
pub(crate) async fn call(channel: Channel) -> Result<(), String> {
    let check = async { HealthClient::new(channel).check(HealthCheckRequest::default()).await };
    let answer = tokio::time::timeout(Duration::from_secs(8), check).await.map_err(|_| "hangs".to_owned())?;
    answer.map(drop).map_err(|status| {
        let mut text = format!("{:?}: {}", status.code(), status.message());
        let mut cause = status.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    })
}

/// A call by our own client over a new connection.
pub(crate) async fn call_as(tls: &Tls, served: &Served, expect: &SpiffeId) -> Result<(), String> {
    call(channel(tls, &served.address, expect.clone())).await
}

/// A call by a foreign client, which presents whatever certificate lies in `folder`.
pub(crate) async fn call_with(realm: &Realm, folder: Option<&Path>, served: &Served) -> Result<(), String> {
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let mut config = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read(&realm.path().join("ca.crt"))))
        .domain_name("localhost");
    if let Some(folder) = folder {
        config =
            config.identity(Identity::from_pem(read(&folder.join("tls.crt")), read(&folder.join("tls.key"))));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", served.address)).unwrap();
    call(endpoint.tls_config(config).unwrap().connect_lazy()).await
}

/// Waits for what a reload brings; files are looked at once a second.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..60 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within six seconds: {what}");
}
