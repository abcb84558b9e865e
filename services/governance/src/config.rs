//! The zone's own part of the configuration.

use std::path::PathBuf;

use exequatur_service::SectionNames;
use serde::Deserialize;

/// Governance's own keys.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    /// Zones that it calls.
    pub peers: Peers,
    /// YAML file that lists the tenants; without one the trust bundle alone says for whom callers act.
    pub tenants: Option<PathBuf>,
}

/// host:port of zones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    /// Open, watch, withdraw.
    pub approval: String,
    /// Execute, cancel, resolve.
    pub connector: String,
}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &["peers", "tenants"];
}
