//! Verified channels to the zones, under one identity or, for agents, none.

use std::path::Path;
use std::time::Duration;

use exequatur_identity::{SpiffeId, Tls, TlsFiles};
use exequatur_statement::Trust;
use tonic::Request;
use tonic::transport::Channel;

use crate::args::Global;
use crate::context::{self, Context, Identity};
use crate::failure::Failure;

/// Every call ends in this time unless it says another.
pub(crate) const CALL: Duration = Duration::from_secs(30);

/// A zone of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Governance,
    Approval,
    CredentialVault,
    Connector,
}

impl Zone {
    /// All zones.
    pub(crate) const ALL: [Self; 4] =
        [Self::Governance, Self::Approval, Self::CredentialVault, Self::Connector];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Governance => "governance",
            Self::Approval => "approval",
            Self::CredentialVault => "credential-vault",
            Self::Connector => "connector",
        }
    }
}

/// The plane as one identity sees it.
pub(crate) struct Plane {
    pub(crate) context: Context,
    pub(crate) realm: String,
    pub(crate) tenant: String,
    pub(crate) trust: Trust,
    identity: Option<Identity>,
    tls: Tls,
}

impl Plane {
    /// As an operator, or whoever `--cert` says.
    pub(crate) fn operator(global: &Global) -> Result<Self, Failure> {
        let context = Context::load(global)?;
        let identity = context.operator(global);
        let tenant = context.tenant(global);
        Self::with(context, Some(identity), &tenant)
    }

    /// As a reviewer, or whoever `--cert` says.
    pub(crate) fn reviewer(global: &Global) -> Result<Self, Failure> {
        let context = Context::load(global)?;
        let identity = context.reviewer(global)?;
        let tenant = context.tenant(global);
        Self::with(context, Some(identity), &tenant)
    }

    /// As an agent: only the run token speaks, unless `--cert` binds it.
    pub(crate) fn agent(global: &Global) -> Result<Self, Failure> {
        let context = Context::load(global)?;
        let identity = context::given(global);
        let tenant = context.tenant(global);
        Self::with(context, identity, &tenant)
    }

    /// Under a given identity.
    pub(crate) fn with(context: Context, identity: Option<Identity>, tenant: &str) -> Result<Self, Failure> {
        exequatur_identity::install_crypto();
        let trust = trust(&context.bundle, &context.root_key)?;
        let realm = trust.realm();
        let tls = match &identity {
            Some(identity) => Tls::load(
                &TlsFiles {
                    certificate: identity.cert.clone(),
                    key: identity.key.clone(),
                    ca: context.ca.clone(),
                },
                &realm,
            )?,
            None => Tls::anonymous(&context.ca, &realm)?,
        };
        Ok(Self { context, realm, tenant: tenant.to_owned(), trust, identity, tls })
    }

    /// A channel to a zone that accepts no other zone's certificate.
    pub(crate) fn channel(&self, zone: Zone) -> Result<Channel, Failure> {
        let endpoints = &self.context.endpoints;
        let address = match zone {
            Zone::Governance => &endpoints.governance,
            Zone::Approval => &endpoints.approval,
            Zone::CredentialVault => &endpoints.credential_vault,
            Zone::Connector => &endpoints.connector,
        };
        let expect = SpiffeId::parse(&format!("spiffe://{}/zone/{}", self.realm, zone.name()))
            .map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
        Ok(exequatur_identity::channel(&self.tls, address, expect))
    }

    /// The identity in use.
    pub(crate) fn identity(&self) -> Result<&Identity, Failure> {
        self.identity
            .as_ref()
            .ok_or_else(|| Failure::usage("this needs a certificate: say --cert FILE --key FILE"))
    }

    /// SPIFFE ID of the identity in use.
    pub(crate) fn id(&self) -> String {
        self.tls.own_id().map(|id| id.to_string()).unwrap_or_default()
    }
}

/// The trust bundle of a context.
pub(crate) fn trust(bundle: &Path, root_key: &Path) -> Result<Trust, Failure> {
    Trust::load(bundle, root_key).map_err(|e| {
        Failure::failed("STATEMENT_INVALID", format!("the trust bundle `{}`: {e}", bundle.display()))
    })
}

/// A request with a deadline.
pub(crate) fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL);
    request
}

/// A request with a deadline under a run token.
pub(crate) fn with_token<T>(message: T, token: Option<&str>) -> Result<Request<T>, Failure> {
    let mut request = request(message);
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().map_err(|_| {
            let mut failure = Failure::bad_input("the run token holds characters that no token has");
            failure.exit = crate::failure::UNAUTHENTICATED;
            failure
        })?;
        request.metadata_mut().insert("authorization", value);
    }
    Ok(request)
}

/// A run token from its file.
pub(crate) fn token(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("cannot read the token file `{}`: {e}", file.display())))?;
    let text = text.trim();
    if text.starts_with('{') {
        // The answer of `run start --output json` serves as it is.
        return serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|value| value.get("token").and_then(|t| t.as_str().map(ToOwned::to_owned)))
            .ok_or_else(|| Failure::bad_input(format!("`{}` holds no token", file.display())));
    }
    Ok(text.to_owned())
}
