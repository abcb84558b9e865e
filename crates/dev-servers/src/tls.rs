//! A throw-away CA and one server certificate for loopback.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};

/// PEM files of one server.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The CA that clients pin.
    pub ca: PathBuf,
    /// Certificate of `localhost` and 127.0.0.1.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ServerTls {
    /// Makes `ca.crt`, `server.crt` and `server.key` in a folder; the CA's key is not kept.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn make(folder: &Path) -> io::Result<Self> {
        let other = |e: rcgen::Error| io::Error::other(e.to_string());
        let ca_key = KeyPair::generate().map_err(other)?;
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "exequatur development servers");
        let ca_pem = ca.self_signed(&ca_key).map_err(other)?.pem();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().map_err(other)?;
        let mut leaf = CertificateParams::new(["localhost".to_owned()]).map_err(other)?;
        leaf.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf_pem = leaf.signed_by(&key, &issuer).map_err(other)?.pem();
        let files = Self {
            ca: folder.join("ca.crt"),
            certificate: folder.join("server.crt"),
            key: folder.join("server.key"),
        };
        fs::write(&files.ca, ca_pem)?;
        fs::write(&files.certificate, leaf_pem)?;
        fs::write(&files.key, key.serialize_pem())?;
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600))?;
        Ok(files)
    }
}
