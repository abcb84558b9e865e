//! The accept loop: each handshake in a task of its own, bounded in number and time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use crate::tls::Tls;

const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKES: usize = 256;

/// Verified connections. `anonymous` accepts clients without a certificate too; a certificate
/// that is presented is checked all the same.
pub fn incoming(
    listener: TcpListener,
    tls: Tls,
    anonymous: bool,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> + Send {
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(accept(listener, tls, anonymous, sender));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    tls: Tls,
    anonymous: bool,
    sender: mpsc::Sender<io::Result<TlsStream<TcpStream>>>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Too many open files, for instance: wait rather than spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            // The server is gone.
            () = sender.closed() => return,
        };
        // Taken anew for each connection, so that new files take hold.
        let Some(config) = tls.server(anonymous) else { return };
        let sender = sender.clone();
        tokio::spawn(async move {
            let _place = place;
            drop(stream.set_nodelay(true));
            match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
                Ok(Ok(stream)) => drop(sender.send(Ok(stream)).await),
                Ok(Err(error)) => tracing::debug!(%error, "handshake refused"),
                Err(_) => tracing::debug!("handshake timed out"),
            }
        });
    }
}
