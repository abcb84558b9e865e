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
    pub vault_paths: exequatur_vault::Paths,
}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &["vault", "vault_paths"];
}
