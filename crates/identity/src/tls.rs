//! Certificate, key and CA from files, as rustls configurations that follow the files.
//! TLS 1.3 only; new connections take the newest files, a bad file leaves the last good ones.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use exequatur_fault::{Fault, Reason};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::peer::peer_from_certificate;
use crate::spiffe::SpiffeId;

const INTERVAL: Duration = Duration::from_secs(1);
const H2: &[u8] = b"h2";

/// PEM files of one identity.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate chain, leaf first.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// CA of the realm.
    pub ca: PathBuf,
}

/// Everything that comes from the files at one moment.
struct Material {
    own: Option<SpiffeId>,
    chain: Vec<CertificateDer<'static>>,
    key: Option<PrivateKeyDer<'static>>,
    roots: Arc<RootCertStore>,
    server: Option<[Arc<ServerConfig>; 2]>,
}

/// TLS of one process; clones share it.
#[derive(Clone)]
pub struct Tls {
    current: Arc<ArcSwap<Material>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({:?})", self.current.load().own)
    }
}

impl Tls {
    /// Reads the files and follows their changes. The certificate must be of `realm`.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` when a file is missing, malformed or of another realm.
    pub fn load(files: &TlsFiles, realm: &str) -> Result<Self, Fault> {
        crate::install_crypto();
        // Before reading: what changes meanwhile is seen as a change.
        let seen = stamps(files);
        let material = read(files, realm)?;
        let tls = Self { current: Arc::new(ArcSwap::from_pointee(material)) };
        tls.follow(files.clone(), seen, realm.to_owned());
        Ok(tls)
    }

    /// A client without a certificate, for agents.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` when the CA's file is missing or malformed.
    pub fn anonymous(ca: &Path, _realm: &str) -> Result<Self, Fault> {
        crate::install_crypto();
        let material = Material { own: None, chain: Vec::new(), key: None, roots: roots(ca)?, server: None };
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(material)) })
    }

    /// The process's own id; of an anonymous client: none.
    #[must_use]
    pub fn own_id(&self) -> Option<SpiffeId> {
        self.current.load().own.clone()
    }

    /// The server's configuration for the next connection; `None` for an anonymous client.
    pub(crate) fn server(&self, anonymous: bool) -> Option<Arc<ServerConfig>> {
        self.current.load().server.as_ref().and_then(|pair| pair.get(usize::from(anonymous)).cloned())
    }

    /// The client's configuration for the next connection to the server `expect`.
    pub(crate) fn client(&self, expect: &SpiffeId) -> Result<Arc<ClientConfig>, rustls::Error> {
        let current = self.current.load();
        let verifier = ServerIdentity {
            roots: Arc::clone(&current.roots),
            expect: expect.clone(),
            algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
        };
        let builder = ClientConfig::builder_with_protocol_versions(&[&TLS13])
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &current.key {
            Some(key) => builder.with_client_auth_cert(current.chain.clone(), key.clone_key())?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![H2.to_vec()];
        Ok(Arc::new(config))
    }

    /// Polls from a thread of its own, which ends when nobody else holds the TLS.
    fn follow(&self, files: TlsFiles, seen: [Stamp; 3], realm: String) {
        let weak = Arc::downgrade(&self.current);
        let mut last = seen;
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(INTERVAL);
                let Some(current) = weak.upgrade() else { return };
                let now = stamps(&files);
                if now == last {
                    continue;
                }
                match read(&files, &realm) {
                    Ok(material) if material.own != current.load().own => {
                        tracing::error!("a certificate of another identity was refused; the last one stays");
                    }
                    Ok(material) => {
                        current.store(Arc::new(material));
                        tracing::info!("certificate and trust reloaded");
                    }
                    // Files are replaced one by one: try again until they fit together.
                    Err(fault) => {
                        tracing::warn!(%fault, "certificate files do not fit; the last ones stay");
                        continue;
                    }
                }
                last = now;
            }
        });
    }
}

/// What tells a replaced file from the one before, also within one tick of the clock.
type Stamp = Option<(SystemTime, u64, u64)>;

fn stamps(files: &TlsFiles) -> [Stamp; 3] {
    [&files.certificate, &files.key, &files.ca].map(|path| {
        let file = fs::metadata(path).ok()?;
        Some((file.modified().ok()?, file.ino(), file.len()))
    })
}

fn unfit(path: &Path, what: &str) -> Fault {
    Fault::new(Reason::Unauthenticated, format!("`{}`: {what}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| unfit(path, "no readable PEM certificates").caused_by(e.to_string()))?;
    if found.is_empty() { Err(unfit(path, "no PEM certificate")) } else { Ok(found) }
}

fn roots(ca: &Path) -> Result<Arc<RootCertStore>, Fault> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(ca)? {
        store.add(certificate).map_err(|e| unfit(ca, "no usable CA certificate").caused_by(e))?;
    }
    Ok(Arc::new(store))
}

fn read(files: &TlsFiles, realm: &str) -> Result<Material, Fault> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|e| unfit(&files.key, "no readable PEM private key").caused_by(e.to_string()))?;
    let roots = roots(&files.ca)?;
    let leaf = chain.first().ok_or_else(|| unfit(&files.certificate, "no PEM certificate"))?;
    let own = peer_from_certificate(leaf)?.id;
    if own.trust_domain() != realm {
        return Err(unfit(&files.certificate, "the certificate is of another realm"));
    }
    let server = [false, true]
        .map(|anonymous| server_config(&chain, &key, &roots, anonymous))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| unfit(&files.certificate, "certificate, key and CA do not fit together").caused_by(e))?;
    let server = <[Arc<ServerConfig>; 2]>::try_from(server).ok();
    Ok(Material { own: Some(own), chain, key: Some(key), roots, server })
}

fn server_config(
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    roots: &Arc<RootCertStore>,
    anonymous: bool,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut verifier = WebPkiClientVerifier::builder(Arc::clone(roots));
    if anonymous {
        verifier = verifier.allow_unauthenticated();
    }
    let verifier = verifier.build().map_err(|e| rustls::Error::General(e.to_string()))?;
    let mut config = ServerConfig::builder_with_protocol_versions(&[&TLS13])
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.to_vec(), key.clone_key())?;
    config.alpn_protocols = vec![H2.to_vec()];
    // A resumed session would keep trust that was taken away meanwhile.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Chain to our CA, and exactly the expected SPIFFE ID; no DNS name is looked at.
#[derive(Debug)]
struct ServerIdentity {
    roots: Arc<RootCertStore>,
    expect: SpiffeId,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ServerIdentity {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        let found = peer_from_certificate(end_entity).map_err(|_| {
            rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
        })?;
        if found.id == self.expect {
            Ok(ServerCertVerified::assertion())
        } else {
            let text = format!("the server is `{}`, not `{}`", found.id, self.expect);
            Err(rustls::Error::General(text))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
