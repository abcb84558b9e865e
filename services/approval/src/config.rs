//! The zone's own part of the configuration. Knows no default that weakens a check.

use exequatur_service::SectionNames;
use serde::Deserialize;

/// Approval's own keys.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Config {
    /// Whether waits and windows that are over are closed in the background. Nothing relies on
    /// it: time is checked again at every use.
    #[serde(default = "yes")]
    pub sweep: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { sweep: true }
    }
}

const fn yes() -> bool {
    true
}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &["sweep"];
}
