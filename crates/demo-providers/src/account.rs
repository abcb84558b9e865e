//! The accounts that the providers accept. The demo makes them fresh for each data folder.

use std::path::Path;

use serde::Deserialize;

/// All accounts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accounts {
    pub(crate) sms: Sms,
    pub(crate) crm: Token,
    pub(crate) files: Token,
    pub(crate) mail: Mail,
}

/// Account SID and auth token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sms {
    pub(crate) account: String,
    pub(crate) token: String,
}

/// A bearer token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    pub(crate) token: String,
}

/// SMTP user and password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mail {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Accounts {
    /// Reads the file; its content never stands in an error.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        serde_json::from_slice(&text).map_err(|e| {
            format!("{} is not an accounts file (line {}, column {})", path.display(), e.line(), e.column())
        })
    }
}
