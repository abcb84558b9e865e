//! The verifier's answer.

use std::collections::BTreeMap;
use std::fmt;

/// The file cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotTell(pub String);

impl fmt::Display for CannotTell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotTell {}

/// What is wrong first, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The zone; empty: the export as a whole.
    pub zone: String,
    /// Number of the entry in the zone's log, or of the line for the export as a whole.
    pub record: u64,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    pub(crate) fn at(zone: &str, record: u64, what: impl Into<String>) -> Self {
        Self { zone: zone.to_owned(), record, what: what.into() }
    }

    pub(crate) fn bundle(what: &str) -> Self {
        Self::at("", 1, what)
    }

    pub(crate) fn line(number: u64) -> Self {
        Self::at("", number, "the line cannot be read")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.zone.is_empty() {
            write!(f, "line {}: {}", self.record, self.what)
        } else {
            write!(f, "{} record {}: {}", self.zone, self.record, self.what)
        }
    }
}

/// One zone's log as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneReport {
    /// The zone.
    pub zone: String,
    /// Entries.
    pub size: u64,
    /// RFC 6962 tree hash, hex.
    pub root: String,
}

/// The verifier's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Nothing was changed, dropped or run unapproved, as far as this export reaches.
    pub valid: bool,
    /// SHA-256 of the root key, hex.
    pub root_key_fingerprint: String,
    /// Records whose partner in another zone is not yet due, or lies beyond this export.
    pub open: usize,
    /// What is wrong first.
    pub first_fault: Option<Fault>,
    /// The logs.
    pub zones: Vec<ZoneReport>,
    /// The tenant that the export is of.
    pub tenant: String,
    /// Per credential the leases for which Vault was or may have been asked.
    pub vault_leases: BTreeMap<String, u64>,
}
