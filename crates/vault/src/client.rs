//! The client's outer form. Must not know endpoints; each group of operations has its own module.

use std::fmt;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::link::Link;
use crate::session::Sessions;
use crate::{Config, Error};

/// A client of one Vault. Cheap to clone; all clones share login, connections and breaker. The login is
/// made by the first call that needs it and kept alive until the last clone is dropped.
///
/// Every operation ends within the configured time-out, logins and second tries included. While Vault
/// fails, at most six calls a minute go out and the others get the typed error at once.
#[derive(Clone)]
pub struct Client {
    pub(crate) sessions: Arc<Sessions>,
    _keeper: Arc<Keeper>,
}

struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.sessions.link().config().address)
    }
}

impl Client {
    /// Checks the configuration and reads its files; calls nothing. Must run inside a Tokio runtime.
    ///
    /// # Errors
    /// `BadConfig`.
    pub fn new(config: Config) -> Result<Self, Error> {
        let sessions = Arc::new(Sessions::new(Link::new(config)?));
        let keeper = Keeper(tokio::spawn(sessions.clone().keep()));
        Ok(Self { sessions, _keeper: Arc::new(keeper) })
    }

    /// The accessor of the login in force, for a sweeper that must find it after a crash. Not a secret.
    pub async fn login_accessor(&self) -> Option<String> {
        self.sessions.accessor().await
    }

    /// Revokes the login in force, and with it every lease that it took. The next call logs in anew.
    ///
    /// # Errors
    /// As any call; the login then ends by itself at the end of its life.
    pub async fn logout(&self) -> Result<(), Error> {
        self.sessions.logout().await
    }
}
