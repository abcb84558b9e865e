//! The one error of this crate: what went wrong at which call. It must not hold an answer's body,
//! a token or a secret.

use std::fmt;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Vault is sealed, or not initialized yet (ordinary calls cannot tell these apart; `health` can).
    Sealed,
    /// This server is a standby that does not forward.
    Standby,
    /// Vault was never initialized (only `health` and status 501 say so).
    Uninitialized,
    /// No connection, or it broke before a whole answer came; also a certificate not of the pinned CA.
    Unreachable,
    /// No whole answer within the time-out.
    TimedOut,
    /// Vault asked for fewer calls (429).
    RateLimited,
    /// Permission denied for a token that is alive (403).
    Refused,
    /// Login itself was refused: role, secret id or certificate is wrong, expired or gone.
    LoginRefused,
    /// The call needs a login and none is configured.
    NoLogin,
    /// Nothing there: path, mount, namespace, version (also a deleted one) or lease.
    NotFound,
    /// Vault did not accept the request (other 4xx), or it was not sent because a limit forbids it.
    BadRequest,
    /// Vault failed (5xx).
    ServerError,
    /// Something answered that does not speak as Vault does.
    Foreign,
    /// The answer has not the documented shape.
    Malformed,
    /// The wrapping token is spent, expired or unknown; Vault does not tell which. Treat as stolen.
    WrappingTokenUsed,
    /// The wrapping token belongs to another path; it was not unwrapped.
    PathMismatch,
    /// Answer or secret is longer than its limit.
    TooLarge,
    /// The secret has no such field.
    MissingField,
    /// A mount, tenant, credential, role or token is not of the allowed form; nothing was sent.
    BadName,
    /// Configuration or a file that it names is wrong; nothing was sent.
    BadConfig,
}

impl Kind {
    /// Whether the same operation, done afresh and later, can succeed without anybody's repair of
    /// policy, secret or configuration. A wrapping token is never worth a second try.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Sealed
                | Self::Standby
                | Self::Uninitialized
                | Self::Unreachable
                | Self::TimedOut
                | Self::RateLimited
                | Self::ServerError
                | Self::Foreign
        )
    }

    /// Lower case, without full stop, safe for a caller.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sealed => "the vault is sealed",
            Self::Standby => "the vault server is a standby",
            Self::Uninitialized => "the vault is not initialized",
            Self::Unreachable => "the vault cannot be reached",
            Self::TimedOut => "the vault did not answer in time",
            Self::RateLimited => "the vault asks for fewer calls",
            Self::Refused => "the vault refused the call",
            Self::LoginRefused => "the vault refused the login",
            Self::NoLogin => "no vault login is configured",
            Self::NotFound => "the vault has nothing there",
            Self::BadRequest => "the vault does not accept the request",
            Self::ServerError => "the vault failed",
            Self::Foreign => "what answers is no vault",
            Self::Malformed => "the vault's answer is malformed",
            Self::WrappingTokenUsed => "the wrapping token is used or not valid",
            Self::PathMismatch => "the wrapping token is of another path",
            Self::TooLarge => "the vault's answer or secret is too large",
            Self::MissingField => "the secret lacks the field",
            Self::BadName => "a name is not of the allowed form",
            Self::BadConfig => "the vault configuration is wrong",
        }
    }
}

/// What went wrong, and at which call. Holds no text of Vault's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    call: &'static str,
    detail: Option<String>,
}

impl Error {
    pub(crate) const fn new(kind: Kind, call: &'static str) -> Self {
        Self { kind, call, detail: None }
    }

    /// `detail` is our own text: a file's name, a rule; never an answer.
    pub(crate) fn config(detail: impl Into<String>) -> Self {
        Self { kind: Kind::BadConfig, call: "config", detail: Some(detail.into()) }
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The call that failed, a word of this crate such as `read-wrapped` or `login`.
    #[must_use]
    pub const fn call(&self) -> &'static str {
        self.call
    }

    /// See [`Kind::is_retryable`].
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind.as_str(), self.call)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

impl std::error::Error for Error {}
