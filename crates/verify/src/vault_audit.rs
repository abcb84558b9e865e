//! Vault's own audit log against the attempts that credential-vault recorded: a zone that asks more often
//! than it was ordered to is found. Knows no writer code, and of Vault only the form of its audit log.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

use crate::report::{CannotTell, Report};

/// Policy of credential-vault's login (deploy/vault).
const ASKS: &str = "credential-vault";
/// Policies of scoped tokens begin with this.
const SCOPED: &str = "exequatur-scoped-";

/// Reads of one credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultReads {
    /// The credential.
    pub credential: String,
    /// Reads that Vault answered, wrapped ones and those of scoped tokens.
    pub read: u64,
    /// Scoped tokens that Vault made for it.
    pub minted: u64,
    /// Leases that credential-vault recorded, failed ones included.
    pub leased: u64,
}

impl VaultReads {
    /// More was read, or may be read, than anybody ordered.
    #[must_use]
    pub const fn is_excess(&self) -> bool {
        self.read > self.leased || self.minted > self.leased
    }
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    auth: Auth,
    #[serde(default)]
    request: Request,
    #[serde(default)]
    response: Response,
}

#[derive(Deserialize, Default)]
struct Response {
    /// Of a token that was made.
    #[serde(default)]
    auth: Auth,
}

#[derive(Deserialize, Default)]
struct Auth {
    #[serde(default)]
    policies: Vec<String>,
}

#[derive(Deserialize, Default)]
struct Request {
    #[serde(default)]
    operation: String,
    #[serde(default)]
    path: String,
}

/// Counts reads of a tenant's credentials, and tokens made to read them; `audit` is the file of Vault's `file` audit device.
///
/// # Errors
/// [`CannotTell`] when the file cannot be read or a line is no entry.
pub fn vault_reads(
    audit: impl BufRead,
    tenant: &str,
    report: &Report,
) -> Result<Vec<VaultReads>, CannotTell> {
    let mut all: BTreeMap<String, VaultReads> = BTreeMap::new();
    for (number, line) in (1_u64..).zip(audit.lines()) {
        let line = line.map_err(|e| CannotTell(e.to_string()))?;
        let entry: Entry = serde_json::from_str(&line)
            .map_err(|_| CannotTell(format!("line {number} of Vault's audit log cannot be read")))?;
        if entry.kind != "response" || !entry.error.is_empty() {
            continue;
        }
        for credential in entry.response.auth.policies.iter().filter_map(|p| scoped(p, tenant)) {
            of(&mut all, credential).minted += 1;
        }
        let ours = entry.auth.policies.iter().any(|p| p == ASKS || p.starts_with(SCOPED));
        if ours
            && entry.request.operation == "read"
            && let Some(credential) = credential(&entry.request.path, tenant)
        {
            of(&mut all, credential).read += 1;
        }
    }
    for (credential, count) in &report.vault_leases {
        of(&mut all, credential).leased = *count;
    }
    Ok(all.into_values().collect())
}

fn of<'a>(all: &'a mut BTreeMap<String, VaultReads>, credential: &str) -> &'a mut VaultReads {
    let none = VaultReads { credential: credential.to_owned(), read: 0, minted: 0, leased: 0 };
    all.entry(credential.to_owned()).or_insert(none)
}

/// The credential of a tenant that a policy lets a scoped token read.
fn scoped<'a>(policy: &'a str, tenant: &str) -> Option<&'a str> {
    policy.strip_prefix(SCOPED)?.strip_prefix(tenant)?.strip_prefix("--")
}

/// `{mount}/data/{tenant}/{credential}`, `{mount}/creds/{tenant}--{credential}` or the same below `/code/`.
fn credential<'a>(path: &'a str, tenant: &str) -> Option<&'a str> {
    if let Some((_, rest)) = path.split_once("/data/") {
        return rest.strip_prefix(tenant)?.strip_prefix('/');
    }
    let (_, role) = path.split_once("/creds/").or_else(|| path.split_once("/code/"))?;
    role.strip_prefix(tenant)?.strip_prefix("--")
}
