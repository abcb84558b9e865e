//! Lazy channels to a zone: each new connection uses the newest files and checks the server's id.

use std::io;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::spiffe::SpiffeId;
use crate::tls::Tls;

const CONNECT: Duration = Duration::from_secs(5);

/// A channel to `address` (host:port) that speaks only to the server `expect`. Connects at the first call.
#[must_use]
pub fn channel(tls: &Tls, address: &str, expect: SpiffeId) -> Channel {
    let tls = tls.clone();
    let target = address.to_owned();
    // The authority is for the wire only; the connector below decides where and to whom.
    Endpoint::from_static("http://zone.invalid")
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(15))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(service_fn(move |_: Uri| {
            let (tls, target, expect) = (tls.clone(), target.clone(), expect.clone());
            async move { connect(&tls, &target, &expect).await.map(TokioIo::new) }
        }))
}

async fn connect(tls: &Tls, address: &str, expect: &SpiffeId) -> io::Result<TlsStream<TcpStream>> {
    let config = tls.client(expect).map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("zone.invalid").map_err(io::Error::other)?;
    let handshake = TlsConnector::from(config).connect(name, stream);
    tokio::time::timeout(CONNECT, handshake).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
