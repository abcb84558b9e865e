//! The identity of a client, from the one URI SAN of its verified certificate.

use exequatur_fault::{Fault, Reason};
use http::Extensions;
use sha2::{Digest as _, Sha256};
use tonic::transport::CertificateDer;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::spiffe::SpiffeId;

/// A peer that proved possession of a certificate of our CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// From the URI SAN; the common name is never read.
    pub id: SpiffeId,
    /// SHA-256 of the certificate's DER.
    pub certificate_digest: [u8; 32],
}

/// The peer of a request; `None` where the client presented no certificate.
///
/// # Errors
/// `UNAUTHENTICATED` for a certificate without exactly one SPIFFE URI or without extended key usage.
pub fn peer_from_extensions(extensions: &Extensions) -> Result<Option<Peer>, Fault> {
    let info = extensions.get::<TlsConnectInfo<TcpConnectInfo>>();
    let certificates = info.and_then(TlsConnectInfo::peer_certs);
    match certificates.as_ref().and_then(|chain| chain.first()) {
        None => Ok(None),
        Some(leaf) => peer_from_certificate(leaf).map(Some),
    }
}

/// The peer of a certificate whose chain was already checked.
///
/// # Errors
/// `UNAUTHENTICATED` for a certificate without exactly one SPIFFE URI or without extended key usage.
pub fn peer_from_certificate(leaf: &CertificateDer<'_>) -> Result<Peer, Fault> {
    let refuse = || {
        Fault::new(
            Reason::Unauthenticated,
            "the certificate must carry exactly one URI SAN, a SPIFFE ID of this plane",
        )
    };
    let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| refuse())?;
    // Chain checks accept a certificate that says nothing of its use; we do not.
    if !matches!(certificate.extended_key_usage(), Ok(Some(_))) {
        return Err(Fault::new(
            Reason::Unauthenticated,
            "the certificate must name its extended key usage (clientAuth, serverAuth for zones)",
        ));
    }
    let names = certificate.subject_alternative_name().map_err(|_| refuse())?.ok_or_else(refuse)?;
    let mut uris = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => Some(*uri),
        _ => None,
    });
    match (uris.next(), uris.next()) {
        (Some(uri), None) => Ok(Peer {
            id: uri.parse().map_err(|_| refuse())?,
            certificate_digest: Sha256::digest(leaf).into(),
        }),
        _ => Err(refuse()),
    }
}
