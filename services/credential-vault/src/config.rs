//! The zone's own part of the configuration: nothing so far.

use exequatur_service::SectionNames;
use serde::Deserialize;

/// No keys of its own.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Config {}

impl SectionNames for Config {
    const NAMES: &'static [&'static str] = &[];
}
