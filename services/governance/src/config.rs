//! The zone's own part of the configuration.

use exequatur_service::SectionNames;
use serde::Deserialize;

/// Governance's own keys.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    /// Zones that it calls.
    pub peers: Peers,
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
    const NAMES: &'static [&'static str] = &["peers"];
}
