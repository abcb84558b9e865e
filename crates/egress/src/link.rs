//! Getting a connection: names resolved and checked as a whole, the checked address connected to,
//! TLS verified. Everything here happens before anything is sent.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use hickory_resolver::TokioResolver;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::counted::{Counted, Written};
use crate::guard::Guard;

/// Transport security of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Tls,
    /// Plain, upgraded by STARTTLS before anything that counts.
    StartTls,
    /// Plain; only to an exception of the guard.
    Plain,
}

/// A fixed destination of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// DNS name or IP literal.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Transport security.
    pub security: Security,
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection on which nothing was sent yet.
pub struct Link {
    pub(crate) stream: Counted<Box<dyn Stream>>,
    pub(crate) written: Written,
    pub(crate) destination: Destination,
    pub(crate) tls: Arc<ClientConfig>,
}

impl Link {
    fn new(stream: Box<dyn Stream>, destination: Destination, tls: Arc<ClientConfig>) -> Self {
        let (stream, written) = Counted::new(stream);
        Self { stream, written, destination, tls }
    }

    /// Upgrades a plain stream in place; what was counted before does not count.
    pub(crate) async fn upgrade(self) -> Result<Self, Fault> {
        let Self { stream, destination, tls, .. } = self;
        let stream = handshake(Box::new(stream), &destination.host, &tls).await?;
        Ok(Self::new(stream, destination, tls))
    }
}

/// The egress of a connector; clones share it.
#[derive(Clone)]
pub struct Egress(Arc<Inner>);

struct Inner {
    guard: Guard,
    resolver: Option<TokioResolver>,
    tls: Arc<ClientConfig>,
    connects: AtomicU64,
}

impl Egress {
    /// With the guard's exceptions and further roots beside the public ones.
    ///
    /// # Errors
    /// `INTERNAL` when a root file cannot be read.
    pub fn new(guard: Guard, extra_roots: &[PathBuf]) -> Result<Self, Fault> {
        // Without a resolver's configuration only IP literals can be reached.
        let resolver = TokioResolver::builder_tokio().ok().and_then(|b| b.build().ok());
        Self::with(guard, extra_roots, resolver)
    }

    /// The same with the resolver given: tests ask a name server of their own.
    pub(crate) fn with(
        guard: Guard,
        extra_roots: &[PathBuf],
        resolver: Option<TokioResolver>,
    ) -> Result<Self, Fault> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for path in extra_roots {
            let unfit = |e: String| Fault::new(Reason::Internal, format!("root `{}`: {e}", path.display()));
            let pem = fs::read(path).map_err(|e| unfit(e.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                roots
                    .add(certificate.map_err(|e| unfit(e.to_string()))?)
                    .map_err(|e| unfit(e.to_string()))?;
            }
        }
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(Inner { guard, resolver, tls: Arc::new(tls), connects: AtomicU64::new(0) })))
    }

    /// Calls of `connect(2)` so far.
    #[must_use]
    pub fn connects(&self) -> u64 {
        self.0.connects.load(Ordering::SeqCst)
    }

    /// Connects, with TLS where the destination wants it from the first byte.
    ///
    /// # Errors
    /// `DESTINATION_FORBIDDEN` before any packet leaves, or `DESTINATION_UNREACHABLE`. Nothing was sent.
    pub async fn connect(&self, destination: &Destination, limit: Duration) -> Result<Link, Fault> {
        tokio::time::timeout(limit, self.connect_now(destination))
            .await
            .map_err(|_| unreachable(destination, "no connection in time"))?
    }

    async fn connect_now(&self, destination: &Destination) -> Result<Link, Fault> {
        let addresses = self.addresses(destination).await?;
        for address in &addresses {
            self.check(destination, *address)?;
        }
        let mut last = unreachable(destination, "the name has no address");
        for address in addresses {
            match self.dial(address).await {
                Ok(stream) => return self.secure(destination, stream).await,
                Err(error) => last = unreachable(destination, "it cannot be connected to").caused_by(error),
            }
        }
        Err(last)
    }

    /// One forbidden answer among several refuses all: a mixed answer is an attempt.
    fn check(&self, destination: &Destination, address: SocketAddr) -> Result<(), Fault> {
        let forbidden = |why: &str| {
            Err(Fault::new(Reason::DestinationForbidden, why.to_owned())
                .with("destination", format!("{}:{}", destination.host, destination.port)))
        };
        if !self.0.guard.allows(address) {
            return forbidden("the destination resolves to an address that is not public; nothing was sent");
        }
        if destination.security == Security::Plain && !self.0.guard.allows_plain(address) {
            return forbidden(
                "plain text is spoken only to an exception of the connector's own configuration",
            );
        }
        Ok(())
    }

    async fn addresses(&self, destination: &Destination) -> Result<Vec<SocketAddr>, Fault> {
        let literal =
            destination.host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(&destination.host);
        if let Ok(ip) = literal.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, destination.port)]);
        }
        let Some(resolver) = &self.0.resolver else {
            return Err(unreachable(destination, "this machine has no name server"));
        };
        // The trailing dot keeps search domains out.
        let name = format!("{}.", destination.host.trim_end_matches('.'));
        let answer = resolver
            .lookup_ip(name)
            .await
            .map_err(|e| unreachable(destination, "its name cannot be resolved").caused_by(e))?;
        Ok(answer.iter().map(|ip| SocketAddr::new(ip, destination.port)).collect())
    }

    /// The one place that connects.
    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.0.connects.fetch_add(1, Ordering::SeqCst);
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn secure(&self, destination: &Destination, stream: TcpStream) -> Result<Link, Fault> {
        let stream: Box<dyn Stream> = match destination.security {
            Security::Tls => handshake(Box::new(stream), &destination.host, &self.0.tls).await?,
            Security::StartTls | Security::Plain => Box::new(stream),
        };
        Ok(Link::new(stream, destination.clone(), Arc::clone(&self.0.tls)))
    }
}

async fn handshake(
    stream: Box<dyn Stream>,
    host: &str,
    tls: &Arc<ClientConfig>,
) -> Result<Box<dyn Stream>, Fault> {
    let failed = |e: String| {
        Fault::new(
            Reason::DestinationUnreachable,
            "the destination's TLS cannot be verified; nothing was sent",
        )
        .retryable(true)
        .with("destination", host)
        .caused_by(e)
    };
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(literal.to_owned()).map_err(|e| failed(e.to_string()))?;
    let stream =
        TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(|e| failed(e.to_string()))?;
    Ok(Box::new(stream))
}

fn unreachable(destination: &Destination, why: &str) -> Fault {
    Fault::new(
        Reason::DestinationUnreachable,
        format!("the destination cannot be reached: {why}; nothing was sent"),
    )
    .retryable(true)
    .with("destination", format!("{}:{}", destination.host, destination.port))
}
