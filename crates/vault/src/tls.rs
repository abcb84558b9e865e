//! The HTTP client over pinned TLS. Must not know Vault: it reads PEM files and gives a connection pool.

use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Auth, Config, Error};

/// Reads CA, certificate and key afresh and builds a pool: HTTP/1.1, no proxy, no redirect, no retry.
pub(crate) fn pool(config: &Config) -> Result<reqwest::Client, Error> {
    let builder = reqwest::Client::builder()
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .local_address(config.local_address)
        .https_only(!config.plain_loopback)
        .tls_backend_preconfigured(tls(config)?);
    builder.build().map_err(|_| Error::config("no HTTP client can be built"))
}

fn tls(config: &Config) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    if !config.plain_loopback {
        for certificate in certificates(&config.ca)? {
            roots.add(certificate).map_err(|_| malformed(&config.ca))?;
        }
    }
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| Error::config("no TLS version is available"))?
            .with_root_certificates(roots);
    match &config.auth {
        Some(Auth::Cert { certificate, key: file, .. }) => {
            let key = PrivateKeyDer::from_pem_file(file).map_err(|_| malformed(file))?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(|_| malformed(certificate))
        }
        Some(Auth::AppRole { .. }) | None => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(|_| malformed(file))?.collect();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(|| malformed(file))
}

fn malformed(file: &Path) -> Error {
    Error::config(format!("`{}` is not there or is no PEM file of the expected kind", file.display()))
}
