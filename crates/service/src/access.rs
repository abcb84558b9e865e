//! The one layer that decides who may call a method, and hands handlers a [`Caller`].
//! Looks at path, certificate and token only, never at the body.

use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use exequatur_fault::{Fault, Reason};
use exequatur_identity::{Peer, Principal as Who, Zone as PeerZone, peer_from_extensions};
use exequatur_proto::ledger::v1::Refusal;
use exequatur_proto::trust::v1::Role;
use exequatur_statement::Trust;
use futures::future::BoxFuture;
use http::{Request, Response};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::caller::{Caller, CallerKind, RunClaims, Tenants};
use crate::table::{AccessTable, Rule};

/// Who reviews, from approval's own store.
#[async_trait]
pub trait Roles: Send + Sync {
    /// Tenants for which the person is enrolled; empty: none.
    async fn reviewer_tenants(&self, person: &str) -> Result<Vec<String>, Fault>;
}

/// Checks run tokens; governance's.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// The claims of a valid token of an active run. `peer` is the client certificate, if any.
    async fn verify(&self, bearer: &str, peer: Option<&Peer>) -> Result<RunClaims, Fault>;
}

/// Keeps one log record per refused call. Must not fail the call further.
#[async_trait]
pub trait Refusals: Send + Sync {
    /// `tenant` is `None` where the call belongs to none.
    async fn record(&self, tenant: Option<&str>, refusal: Refusal);
}

pub(crate) struct Shared {
    pub(crate) table: AccessTable,
    pub(crate) trust: Trust,
    pub(crate) roles: Option<Arc<dyn Roles>>,
    pub(crate) tokens: Option<Arc<dyn Tokens>>,
    pub(crate) refusals: Option<Arc<dyn Refusals>>,
}

/// Puts [`Access`] around the routes.
#[derive(Clone)]
pub(crate) struct AccessLayer(pub(crate) Arc<Shared>);

impl<S> Layer<S> for AccessLayer {
    type Service = Access<S>;

    fn layer(&self, inner: S) -> Access<S> {
        Access { inner, shared: Arc::clone(&self.0) }
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Access<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request<Body>> for Access<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // The clone that was polled ready is the one that is called.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let seen = Seen::of(&request);
            match shared.admit(&path, seen).await {
                Ok(caller) => {
                    tracing::debug!(method = %path, caller = %caller.id, "call");
                    request.extensions_mut().insert(caller);
                    inner.call(request).await
                }
                Err(denied) => {
                    shared.record(&path, &denied).await;
                    Ok(denied.fault.to_status().into_http())
                }
            }
        })
    }
}

/// What the layer looks at, taken out of the request, whose body is not `Sync`.
struct Seen {
    query: bool,
    peer: Result<Option<Peer>, Fault>,
    bearer: Option<Result<String, Denied>>,
}

impl Seen {
    fn of(request: &Request<Body>) -> Self {
        Self {
            query: request.uri().query().is_some(),
            peer: peer_from_extensions(request.extensions()),
            bearer: bearer(request),
        }
    }
}

struct Denied {
    fault: Fault,
    caller: String,
    tenant: Option<String>,
}

impl Denied {
    fn new(reason: Reason, message: &str, caller: impl Into<String>) -> Self {
        Self { fault: Fault::new(reason, message), caller: caller.into(), tenant: None }
    }
}

impl Shared {
    async fn admit(&self, path: &str, seen: Seen) -> Result<Caller, Denied> {
        // An exact match or nothing: `//x`, a missing slash, other case or a query are no methods.
        if seen.query {
            return Err(Denied::new(Reason::NotFound, "a method path has no query", ""));
        }
        let Some(rule) = self.table.rule(path) else {
            return Err(Denied::new(Reason::NotFound, "no such method", ""));
        };
        let peer = seen.peer.map_err(|fault| Denied { fault, caller: String::new(), tenant: None })?;
        if let (Rule::Kinds(kinds), Some(bearer)) = (rule, seen.bearer)
            && kinds.contains(&CallerKind::RunToken)
        {
            return self.by_token(&bearer?, peer.as_ref()).await;
        }
        let Some(peer) = peer else {
            return Err(Denied::new(
                Reason::Unauthenticated,
                "present a client certificate of this realm, or a run token where the method takes one",
                "",
            ));
        };
        self.by_certificate(rule, &peer).await
    }

    async fn by_token(&self, bearer: &str, peer: Option<&Peer>) -> Result<Caller, Denied> {
        let Some(tokens) = &self.tokens else {
            return Err(Denied::new(Reason::TokenInvalid, "this zone takes no run tokens", ""));
        };
        let claims = tokens.verify(bearer, peer).await.map_err(|fault| Denied {
            fault,
            caller: String::new(),
            tenant: None,
        })?;
        Ok(Caller {
            kind: CallerKind::RunToken,
            id: format!("agent/{}", claims.agent),
            tenants: Tenants::Only(vec![claims.tenant.clone()]),
            run: Some(claims),
            certificate_digest: peer.map(|p| p.certificate_digest),
        })
    }

    async fn by_certificate(&self, rule: &Rule, peer: &Peer) -> Result<Caller, Denied> {
        let id = peer.id.to_string();
        if peer.id.trust_domain() != self.trust.realm() {
            return Err(Denied::new(Reason::CallerNotAllowed, "the certificate is of another realm", id));
        }
        let principal = self.trust.principal(&id);
        let listed = |role: Role| {
            principal.as_ref().filter(|p| p.role == i32::from(role)).map(|p| Tenants::of(&p.tenants))
        };
        let found = match peer.id.principal() {
            Who::Zone(zone) => Some((zone_kind(*zone), Tenants::All)),
            Who::Internal(_) => listed(Role::InternalService).map(|t| (CallerKind::InternalService, t)),
            Who::Person(_) => listed(Role::Operator).map(|t| (CallerKind::Operator, t)),
        };
        let caller = |kind, tenants| Caller {
            kind,
            id: id.clone(),
            tenants,
            run: None,
            certificate_digest: Some(peer.certificate_digest),
        };
        let kinds = match (rule, &found) {
            (Rule::AnyPeer, Some((kind, tenants))) => return Ok(caller(*kind, tenants.clone())),
            // Health is for any peer of the realm, enrolled or not; it tells nothing.
            (Rule::AnyPeer, None) => return Ok(caller(CallerKind::Reviewer, Tenants::Only(Vec::new()))),
            (Rule::Kinds(kinds), _) => kinds,
        };
        if let Some((kind, tenants)) = found
            && kinds.contains(&kind)
        {
            return Ok(caller(kind, tenants));
        }
        if kinds.contains(&CallerKind::Reviewer)
            && let (Who::Person(_), Some(roles)) = (peer.id.principal(), &self.roles)
        {
            let tenants = roles.reviewer_tenants(&id).await.map_err(|fault| Denied {
                fault,
                caller: id.clone(),
                tenant: None,
            })?;
            if !tenants.is_empty() {
                return Ok(caller(CallerKind::Reviewer, Tenants::Only(tenants)));
            }
        }
        Err(Denied::new(Reason::CallerNotAllowed, "this caller may not call this method", id))
    }

    async fn record(&self, path: &str, denied: &Denied) {
        tracing::info!(
            method = %crate::deny::shown(path),
            caller = %denied.caller,
            reason = denied.fault.reason_str(),
            "refused"
        );
        // Only known methods leave a record: anybody can invent paths.
        if let (Some(refusals), Some(_)) = (&self.refusals, self.table.rule(path)) {
            let refusal = Refusal {
                method: path.to_owned(),
                caller: denied.caller.clone(),
                reason: denied.fault.reason_str().to_owned(),
                ..Refusal::default()
            };
            refusals.record(denied.tenant.as_deref(), refusal).await;
        }
    }
}

const fn zone_kind(zone: PeerZone) -> CallerKind {
    match zone {
        PeerZone::Governance => CallerKind::Governance,
        PeerZone::Approval => CallerKind::Approval,
        PeerZone::CredentialVault => CallerKind::CredentialVault,
        PeerZone::Connector => CallerKind::Connector,
    }
}

/// The one bearer token of a request; two headers are ambiguous and refused.
fn bearer(request: &Request<Body>) -> Option<Result<String, Denied>> {
    let mut values = request.headers().get_all(http::header::AUTHORIZATION).iter();
    let first = values.next()?;
    let bad = || Denied::new(Reason::TokenInvalid, "send exactly one `authorization: Bearer TOKEN`", "");
    if values.next().is_some() {
        return Some(Err(bad()));
    }
    Some(
        first
            .to_str()
            .ok()
            .and_then(|v| v.split_once(' '))
            .filter(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
            .map(|(_, token)| token.to_owned())
            .ok_or_else(bad),
    )
}
