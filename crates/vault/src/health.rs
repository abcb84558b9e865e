//! What state the server is in, as against what it refuses. Must not need a login.

use crate::call::Call;
use crate::classify::Meaning;
use crate::{Client, Error, Kind, endpoints};

/// State of the server that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Unsealed and active.
    Active,
    /// Unsealed; another server is active.
    Standby,
    /// Sealed.
    Sealed,
    /// Never initialized.
    Uninitialized,
}

impl Client {
    /// The server's state. While Vault is known to fail the last known state is repeated.
    ///
    /// # Errors
    /// When the server cannot be asked: `Unreachable`, `TimedOut`, `ServerError`, `Malformed`.
    pub async fn health(&self) -> Result<Health, Error> {
        let call = Call { meaning: Meaning::Health, ..Call::new("health", self.sessions.by()) };
        match self.sessions.link().send(&call, &endpoints::Health {}, None).await {
            Ok(_) => Ok(Health::Active),
            Err(error) => match error.kind() {
                Kind::Standby => Ok(Health::Standby),
                Kind::Sealed => Ok(Health::Sealed),
                Kind::Uninitialized => Ok(Health::Uninitialized),
                _ => Err(error),
            },
        }
    }
}
