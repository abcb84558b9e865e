//! Who a peer is: SPIFFE IDs, mutual TLS 1.3 whose files are reloaded without restart, and
//! channels that check the server's identity. Knows no method and no role store.

mod channel;
mod incoming;
mod peer;
mod spiffe;
mod tls;

pub use channel::channel;
pub use incoming::incoming;
pub use peer::{Peer, peer_from_certificate, peer_from_extensions};
pub use spiffe::{InvalidSpiffeId, Principal, SpiffeId, Zone};
pub use tls::{Tls, TlsFiles};

/// Makes aws-lc-rs the process's one crypto provider; a repeat changes nothing.
pub fn install_crypto() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}
