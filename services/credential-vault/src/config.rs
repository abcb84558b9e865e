//! The zone's own part of the configuration.

use exequatur_service::SectionNames;
use serde::Deserialize;

/// credential-vault's own keys.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    /// HashiCorp Vault or OpenBao; absent: only sealed values.
    #[serde(default)]
    pub vault: Option<exequatur_vault::Config>,
    /// Where in it.
    #[serde(default)]
    pub vault_paths: VaultPaths,
}

/// Mounts, and the token role of scoped hand-over.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VaultPaths {
    /// Mount of the key/value engine, version 2.
    pub kv2: String,
    /// Mount of the database engine.
    pub database: String,
    /// Token role that scoped tokens are minted by.
    pub scoped_role: String,
}

impl Default for VaultPaths {
    fn default() -> Self {
        Self {
            kv2: "secret".to_owned(),
            database: "database".to_owned(),
            scoped_role: "exequatur-scoped".to_owned(),
        }
    }
}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &["vault", "vault_paths"];
}
