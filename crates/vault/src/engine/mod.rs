//! The engines of Vault that credentials come from. One more is one more file here, one word in
//! `ENGINES` and in the protocol's `VaultEngine`, and one mount in [`crate::Paths`]; no rule and no zone
//! changes (docs/how-to/vault-engine.md). Must not send.

mod database;
mod kv2;
mod totp;

use std::fmt;

use exequatur_secret::Secret;

use crate::answer::Answer;
use crate::{Error, Paths};

/// All of them.
const ENGINES: &[&dyn Engine] = &[&kv2::Kv2, &database::Database, &totp::Totp];

/// What was read of one credential.
#[derive(Clone)]
pub struct Opened {
    /// The secret.
    pub secret: Secret,
    /// The user that goes with it, of a dynamic login; else empty.
    pub user: String,
    /// For `revoke_lease`, of a dynamic secret; else empty. Not a secret.
    pub lease: String,
    /// Life of that lease in seconds; 0: none.
    pub lease_s: u64,
    /// Version that it comes from, where the engine counts them; else 0.
    pub version: u64,
}

impl Opened {
    /// A secret without user, lease and version.
    #[must_use]
    pub const fn plain(secret: Secret) -> Self {
        Self { secret, user: String::new(), lease: String::new(), lease_s: 0, version: 0 }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened(lease `{}`, version {})", self.lease, self.version)
    }
}

/// One kind of secret engine.
pub trait Engine: fmt::Debug + Send + Sync {
    /// Its word in catalog, CLI and protocol: lower case, as `VaultEngine` has it after its prefix.
    fn word(&self) -> &'static str;

    /// Where it is mounted.
    fn mount<'a>(&self, paths: &'a Paths) -> &'a str;

    /// The path below the mount. A fixed function of tenant and credential in which no two pairs meet.
    ///
    /// # Errors
    /// `BadName` when a name has another form than [`crate::paths`] allows, or could be read as another pair.
    fn path(&self, tenant: &str, credential: &str) -> Result<String, Error>;

    /// Takes the secret out of a whole answer and leaves nothing of it behind.
    ///
    /// # Errors
    /// `MissingField`, `TooLarge`, `Malformed`, `NotFound`; never with a word of the answer.
    fn open(&self, answer: &Answer, field: &str) -> Result<Opened, Error>;

    /// Whether its secrets have named fields and numbered versions.
    fn has_fields(&self) -> bool {
        false
    }

    /// Whether what it gave is of use for a later action too.
    fn is_reusable(&self) -> bool {
        true
    }
}

/// The engine of a word.
#[must_use]
pub fn engine(word: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.word() == word)
}

/// The engine of a name in the protocol's `VaultEngine`.
#[must_use]
pub fn engine_named(name: &str) -> Option<&'static dyn Engine> {
    engine(&name.strip_prefix("VAULT_ENGINE_")?.to_ascii_lowercase())
}

/// Every engine's word.
pub fn engine_words() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|engine| engine.word())
}
