//! The zone's own part of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use exequatur_service::SectionNames;
use serde::Deserialize;

/// The connector's own keys.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    /// Zones that it calls.
    pub peers: Peers,
    /// HashiCorp Vault or OpenBao, without a login: only tokens that were handed over are used.
    #[serde(default)]
    pub vault: Option<exequatur_vault::Config>,
    /// Where in it; as credential-vault has it.
    #[serde(default)]
    pub vault_paths: exequatur_vault::Paths,
    /// Development exceptions of the guard; refused in production.
    #[serde(default)]
    pub egress: EgressSection,
}

/// host:port of zones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// Reserve, commit, release.
    pub approval: String,
    /// Lease, give back.
    pub credential_vault: String,
}

/// The guard's exceptions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressSection {
    /// Exact address:port pairs outside the guard.
    pub exceptions: Vec<SocketAddr>,
    /// PEM files of further roots for providers.
    pub extra_roots: Vec<PathBuf>,
}

impl EgressSection {
    /// Whether nothing is excepted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.exceptions.is_empty() && self.extra_roots.is_empty()
    }
}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &["peers", "egress", "vault", "vault_paths"];
}
