//! Accounts at the demo providers: made fresh for each data folder, given to the providers and, sealed, to
//! credential-vault.

use serde::{Deserialize, Serialize};

use super::Layout;
use crate::failure::Failure;

/// The providers' accounts file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Accounts {
    pub(crate) sms: Sms,
    pub(crate) crm: Token,
    pub(crate) files: Token,
    pub(crate) mail: Mail,
}

/// Account SID and auth token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sms {
    pub(crate) account: String,
    pub(crate) token: String,
}

/// A bearer token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) token: String,
}

/// SMTP user and password.
#[derive(Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Accounts {
    /// The credentials of the demo tenant by name.
    pub(crate) fn credentials(&self) -> [(&'static str, &str); 4] {
        [
            ("crm-token", self.crm.token.as_str()),
            ("sms-token", self.sms.token.as_str()),
            ("mail-password", self.mail.password.as_str()),
            ("files-token", self.files.token.as_str()),
        ]
    }
}

/// Reads the accounts, or makes them.
pub(crate) fn load_or_make(layout: &Layout) -> Result<Accounts, Failure> {
    let folder = layout.providers();
    let file = folder.join("accounts.json");
    let failed = |e: std::io::Error| Failure::failed("STORAGE_FAILED", format!("`{}`: {e}", file.display()));
    if let Ok(text) = std::fs::read(&file) {
        return serde_json::from_slice(&text)
            .map_err(|_| Failure::failed("STORAGE_FAILED", format!("`{}` is damaged", file.display())));
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let accounts = Accounts {
        sms: Sms { account: format!("AC{}", uuid::Uuid::new_v4().simple()), token: secret() },
        crm: Token { token: secret() },
        files: Token { token: secret() },
        mail: Mail { user: "demo".to_owned(), password: secret() },
    };
    let text = serde_json::to_vec(&accounts).map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
    private(&file, &text).map_err(failed)?;
    Ok(accounts)
}

/// Characters that every encoding writes differently, so that a search of encodings means something.
fn secret() -> String {
    format!("k9$Z/{}+q==", uuid::Uuid::new_v4().simple())
}

/// Writes a file that only its owner reads.
pub(crate) fn private(file: &std::path::Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(file)?;
    file.write_all(content)
}
