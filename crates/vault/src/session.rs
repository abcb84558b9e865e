//! The login: its token, who renews it and when it is replaced. Must not know what the token is used for.

use std::sync::Arc;
use std::time::Duration;

use rustify::endpoint::Endpoint;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout_at};
use vaultrs::api::AuthInfo;
use vaultrs::api::auth::approle::requests::LoginWithApproleRequest;
use vaultrs::api::token::requests::{LookupTokenSelfRequest, RenewTokenSelfRequest, RevokeTokenSelfRequest};
use zeroize::Zeroizing;

use crate::answer::Answer;
use crate::call::Call;
use crate::endpoints::CertLogin;
use crate::link::Link;
use crate::{Auth, Error, Kind, Token};

/// A refused login is not tried again before that.
const LOGIN_PAUSE: Duration = Duration::from_secs(10);
/// The keeper's pause after a failure.
const KEEPER_PAUSE: Duration = Duration::from_secs(15);

/// A token that Vault gave for a login.
pub(crate) struct Session {
    pub(crate) token: Token,
    pub(crate) accessor: String,
    serial: u64,
    /// What the login promised; a renewal that gives much less nears the longest life.
    full: Duration,
    renewable: bool,
    got: Instant,
    ttl: Duration,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Session>>,
    refused: Option<(Instant, Error)>,
    logins: u64,
}

/// All logins of one client.
pub(crate) struct Sessions {
    link: Link,
    state: Mutex<State>,
    changed: Notify,
}

impl Sessions {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, state: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    /// The deadline of an operation that begins now.
    pub(crate) fn by(&self) -> Instant {
        Instant::now() + self.link.config().timeout()
    }

    /// A call under the login. A 403 is looked into once: when the token itself is dead, one new login
    /// and one more try follow.
    pub(crate) async fn call<E: Endpoint>(&self, call: &Call, endpoint: &E) -> Result<Answer, Error> {
        let session = self.session(call.by, None).await?;
        let error = match self.link.send(call, endpoint, Some(&session.token)).await {
            Err(error) if error.kind() == Kind::Refused => error,
            other => return other,
        };
        let look = call.named("lookup-self");
        match self.link.send(&look, &LookupTokenSelfRequest {}, Some(&session.token)).await {
            Ok(_) => Err(error),
            Err(dead) if dead.kind() == Kind::Refused => {
                let session = self.session(call.by, Some(session.serial)).await?;
                self.link.send(call, endpoint, Some(&session.token)).await
            }
            Err(other) => Err(other),
        }
    }

    /// The login in force, made now when there is none or when it is the `dead` one. One caller logs in,
    /// the others wait for it.
    async fn session(&self, by: Instant, dead: Option<u64>) -> Result<Arc<Session>, Error> {
        let late = |_| Error::new(Kind::TimedOut, "login");
        let mut state = timeout_at(by, self.state.lock()).await.map_err(late)?;
        let now = Instant::now();
        if let Some(session) = &state.current
            && Some(session.serial) != dead
            && now < session.got + session.ttl
        {
            return Ok(session.clone());
        }
        state.current = None;
        if let Some((at, error)) = &state.refused
            && now < *at + LOGIN_PAUSE
        {
            return Err(error.clone());
        }
        state.logins += 1;
        let session = match self.login(by, state.logins).await {
            Ok(session) => Arc::new(session),
            Err(error) => {
                if !error.is_retryable() {
                    state.refused = Some((Instant::now(), error.clone()));
                }
                return Err(error);
            }
        };
        state.refused = None;
        state.current = Some(session.clone());
        drop(state);
        self.changed.notify_one();
        Ok(session)
    }

    async fn login(&self, by: Instant, serial: u64) -> Result<Session, Error> {
        let call = Call::new("login", by);
        let answer = match &self.link.config().auth {
            None => return Err(Error::new(Kind::NoLogin, "login")),
            Some(Auth::AppRole { mount, role_id, secret_id_file }) => {
                let text = std::fs::read_to_string(secret_id_file).map(Zeroizing::new).map_err(|e| {
                    Error::config(format!("`{}` cannot be read: {}", secret_id_file.display(), e.kind()))
                })?;
                let mut request = LoginWithApproleRequest {
                    mount: mount.clone(),
                    role_id: role_id.clone(),
                    secret_id: text.trim().to_owned(),
                };
                let answer = self.link.send(&call, &request, None).await;
                zeroize::Zeroize::zeroize(&mut request.secret_id);
                answer
            }
            Some(Auth::Cert { mount, role, .. }) => {
                self.link.reload()?;
                let request = CertLogin { mount: mount.clone(), name: role.clone() };
                self.link.send(&call, &request, None).await
            }
        };
        let answer = answer.map_err(|error| match error.kind() {
            Kind::Refused | Kind::BadRequest | Kind::NotFound => Error::new(Kind::LoginRefused, "login"),
            _ => error,
        })?;
        let auth = auth(&answer)?;
        if let Some(Auth::Cert { role, .. }) = &self.link.config().auth
            && auth.metadata.as_ref().and_then(|data| data.get("cert_name")) != Some(role)
        {
            // Logged in under another role than the one asked for: no token to work with.
            return Err(answer.error(Kind::LoginRefused));
        }
        let ttl = Duration::from_secs(auth.lease_duration);
        Ok(Session {
            token: Token::new(auth.client_token).map_err(|_| answer.error(Kind::Malformed))?,
            accessor: auth.accessor,
            serial,
            full: ttl,
            renewable: auth.renewable,
            got: Instant::now(),
            ttl,
        })
    }

    /// Renews for ever; the client aborts it.
    pub(crate) async fn keep(self: Arc<Self>) {
        if self.link.config().auth.is_none() {
            return;
        }
        loop {
            let current = self.state.lock().await.current.clone();
            let Some(session) = current else {
                self.changed.notified().await;
                continue;
            };
            tokio::select! {
                () = sleep(renew_after(session.ttl, session.got.elapsed(), jitter())) => {}
                () = self.changed.notified() => continue,
            }
            if let Err(error) = self.renew(&session).await {
                tracing::warn!(error = %error, "the vault login is not renewed yet");
                sleep(KEEPER_PAUSE).await;
            }
        }
    }

    async fn renew(&self, session: &Arc<Session>) -> Result<(), Error> {
        let by = self.by();
        if session.renewable {
            let call = Call::new("renew", by);
            let request = RenewTokenSelfRequest { increment: None };
            match self.link.send(&call, &request, Some(&session.token)).await {
                Ok(answer) => {
                    let ttl = Duration::from_secs(auth(&answer)?.lease_duration);
                    if ttl * 2 >= session.full {
                        self.prolong(session, ttl).await;
                        return Ok(());
                    }
                }
                Err(error) if error.is_retryable() => return Err(error),
                Err(_) => {}
            }
        }
        self.session(by, Some(session.serial)).await.map(drop)
    }

    async fn prolong(&self, session: &Arc<Session>, ttl: Duration) {
        let mut state = self.state.lock().await;
        if state.current.as_ref().is_some_and(|current| current.serial == session.serial) {
            state.current = Some(Arc::new(Session {
                token: session.token.clone(),
                accessor: session.accessor.clone(),
                got: Instant::now(),
                ttl,
                ..**session
            }));
        }
    }

    /// The accessor of the login in force.
    pub(crate) async fn accessor(&self) -> Option<String> {
        self.state.lock().await.current.as_ref().map(|session| session.accessor.clone())
    }

    /// Gives the login back.
    pub(crate) async fn logout(&self) -> Result<(), Error> {
        let Some(session) = self.state.lock().await.current.take() else { return Ok(()) };
        let call = Call::new("logout", self.by());
        match self.link.send(&call, &RevokeTokenSelfRequest {}, Some(&session.token)).await {
            Err(error) if error.kind() != Kind::Refused => Err(error),
            _ => Ok(()),
        }
    }
}

fn auth(answer: &Answer) -> Result<AuthInfo, Error> {
    answer.outer::<serde_json::Value>()?.auth.ok_or_else(|| answer.error(Kind::Malformed))
}

/// Two thirds of the life, up to a tenth earlier (`jitter` is 0 to 255), at least a second from now.
fn renew_after(ttl: Duration, age: Duration, jitter: u8) -> Duration {
    let share = 667 - u32::from(jitter) * 67 / 255;
    (ttl * share / 1000).saturating_sub(age).max(Duration::from_secs(1))
}

fn jitter() -> u8 {
    let mut byte = [0];
    // Without randomness all replicas renew at the same time, which is allowed.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_is_at_two_thirds_or_a_little_earlier() {
        let ttl = Duration::from_secs(60);
        let at = |age, jitter| renew_after(ttl, Duration::from_secs(age), jitter).as_millis();
        assert_eq!((at(0, 0), at(0, 255), at(10, 0)), (40_020, 36_000, 30_020));
        assert_eq!((at(59, 0), at(600, 255)), (1000, 1000));
    }
}
