//! Who calls, as one layer established it. Handlers take it as a value and never look at certificates.

use exequatur_fault::{Fault, Reason};
use tonic::Request;

/// The kind under which a caller was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallerKind {
    /// The zone `governance`.
    Governance,
    /// The zone `approval`.
    Approval,
    /// The zone `credential-vault`.
    CredentialVault,
    /// The zone `connector`.
    Connector,
    /// A person whom the trust bundle names as operator.
    Operator,
    /// A person enrolled in approval's own store.
    Reviewer,
    /// An internal service that the trust bundle names.
    InternalService,
    /// An agent with a run token.
    RunToken,
}

/// The tenants that a caller may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    /// All of the realm.
    All,
    /// These.
    Only(Vec<String>),
}

impl Tenants {
    /// Of the trust bundle's list: `*` alone means all.
    #[must_use]
    pub fn of(list: &[String]) -> Self {
        match list {
            [one] if one == "*" => Self::All,
            _ => Self::Only(list.to_vec()),
        }
    }

    /// Whether the tenant is among them.
    #[must_use]
    pub fn contains(&self, tenant: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.iter().any(|t| t == tenant),
        }
    }
}

/// What a run token says, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunClaims {
    /// The run.
    pub run: String,
    /// The tenant.
    pub tenant: String,
    /// The agent.
    pub agent: String,
    /// Exact tool names or prefixes ending in `.*`.
    pub scopes: Vec<String>,
    /// End of the token, seconds since the epoch.
    pub expires_at_s: i64,
    /// The token's own id.
    pub token: String,
}

/// A caller who may call this method.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Under which kind.
    pub kind: CallerKind,
    /// SPIFFE ID, or `agent/NAME` of a run token.
    pub id: String,
    /// Tenants that it may act for.
    pub tenants: Tenants,
    /// The checked token, for [`CallerKind::RunToken`].
    pub run: Option<RunClaims>,
    /// SHA-256 of the client certificate.
    pub certificate_digest: Option<[u8; 32]>,
}

impl Caller {
    /// Refuses a tenant that the caller may not act for.
    ///
    /// # Errors
    /// `TENANT_NOT_ALLOWED`.
    pub fn may_act_for(&self, tenant: &str) -> Result<(), Fault> {
        if self.tenants.contains(tenant) {
            return Ok(());
        }
        Err(Fault::new(
            Reason::TenantNotAllowed,
            "the caller may not act for this tenant; name one of its own",
        ))
    }

    /// The tenant of a request: a run token brings it and must not name it, a certificate must name it.
    ///
    /// # Errors
    /// `INVALID_FIELD` or `TENANT_NOT_ALLOWED`.
    pub fn tenant<'a>(&'a self, named: &'a str) -> Result<&'a str, Fault> {
        match &self.run {
            Some(run) if named.is_empty() || named == run.tenant => Ok(&run.tenant),
            Some(_) => Err(Fault::new(
                Reason::TenantNotAllowed,
                "the tenant comes from the run token; leave it empty",
            )),
            None if named.is_empty() => {
                Err(Fault::field("tenant", "the tenant is missing; name one of the caller's own"))
            }
            None => self.may_act_for(named).map(|()| named),
        }
    }
}

/// The caller that the access layer established.
///
/// # Errors
/// `INTERNAL` where a service was assembled without the layer.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, Fault> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| Fault::internal("a handler was reached without the access layer"))
}
