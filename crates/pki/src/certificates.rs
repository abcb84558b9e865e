//! X.509: the realm's CA and its leaves, each with exactly one URI SAN.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::{PkiError, failed, write};

/// What a leaf says; tests bend it.
#[derive(Debug, Clone)]
pub struct LeafSpec {
    /// URI SANs; one in earnest.
    pub uris: Vec<String>,
    /// Common name; nobody reads it.
    pub common_name: String,
    /// May serve.
    pub server: bool,
    /// May call.
    pub client: bool,
    /// From now; negative: already expired.
    pub days: i64,
}

impl LeafSpec {
    /// A zone: serves and calls.
    #[must_use]
    pub fn zone(id: &str) -> Self {
        Self { uris: vec![id.to_owned()], common_name: String::new(), server: true, client: true, days: 90 }
    }

    /// Who only calls.
    #[must_use]
    pub fn client(id: &str) -> Self {
        Self { server: false, ..Self::zone(id) }
    }
}

pub(crate) struct Ca {
    certificate: String,
    key: String,
}

impl Ca {
    pub(crate) fn create(realm: &str) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, format!("exequatur development CA of {realm}"));
        valid(&mut params, 365);
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    pub(crate) fn save(&self, folder: &Path) -> Result<(), PkiError> {
        write(&folder.join("ca.crt"), self.certificate.as_bytes())?;
        private(&folder.join("ca.key"), &self.key)
    }

    pub(crate) fn load(folder: &Path) -> Result<Self, PkiError> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|e| failed(format!("`{}`: {e}", path.display())))
        };
        Ok(Self { certificate: read("ca.crt")?, key: read("ca.key")? })
    }

    pub(crate) fn issue(&self, out: &Path, spec: &LeafSpec) -> Result<(), PkiError> {
        let issuer_key = KeyPair::from_pem(&self.key).map_err(failed)?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, issuer_key).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !spec.common_name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, spec.common_name.clone());
        }
        for uri in &spec.uris {
            params.subject_alt_names.push(SanType::URI(uri.as_str().try_into().map_err(failed)?));
        }
        if spec.server {
            // Foreign clients (grpcurl, Python) check the address; our own check the URI and nothing else.
            for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
                params.subject_alt_names.push(SanType::IpAddress(address));
            }
            params.subject_alt_names.push(SanType::DnsName("localhost".try_into().map_err(failed)?));
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        if spec.client {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        valid(&mut params, spec.days);
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        write(&out.join("tls.crt"), certificate.pem().as_bytes())?;
        private(&out.join("tls.key"), &key.serialize_pem())
    }
}

/// Issues a leaf of any shape from the CA of a folder: tests of what must be refused.
///
/// # Errors
/// When something cannot be read or written.
pub fn issue_leaf(folder: &Path, out: &Path, spec: &LeafSpec) -> Result<(), PkiError> {
    crate::make(out)?;
    Ca::load(folder)?.issue(out, spec)
}

fn valid(params: &mut CertificateParams, days: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(if days < 0 { 72 } else { 1 });
    params.not_after = now + Duration::days(days);
}

/// A new file that only its owner may read, whole or not at all.
fn private(path: &Path, text: &str) -> Result<(), PkiError> {
    let temporary = path.with_extension("tmp");
    let wrote = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    wrote
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|e| failed(format!("`{}`: {e}", path.display())))
}
