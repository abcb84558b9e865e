//! Runs: an agent's bounded authority. A child's is a subset of its parent's, and what is revoked is
//! revoked with everything below it.

use std::time::Duration;

use exequatur_canonical::Digest;
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::outbox;
use exequatur_lifecycle::{Event, Machine as _, Run as RunState, next};
use exequatur_proto::execution::v1::{CancelRequest, cancel_request::Subject};
use exequatur_proto::ledger::v1::Transition;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::{Caller, CallerKind};
use exequatur_store::Tx;
use prost::Message as _;

use super::{App, key, limit, name};
use crate::store::{CallKey, RunRow, Seen};

const DEFAULT_LIFE: Duration = Duration::from_secs(24 * 3600);
const MAX_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
const DEFAULT_TOKEN: Duration = Duration::from_secs(15 * 60);
const MAX_TOKEN: Duration = Duration::from_secs(3600);
const MAX_SCOPES: usize = 64;

/// What StartRun asks for.
#[derive(Debug, Clone)]
pub struct Start {
    /// Tenant.
    pub tenant: String,
    /// Agent.
    pub agent: String,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Life; `None`: the default.
    pub ttl: Option<Duration>,
    /// Life of each token; `None`: the default.
    pub token_ttl: Option<Duration>,
    /// Person that an internal service acts for; empty: the caller.
    pub owner: String,
    /// The caller's key.
    pub idempotency_key: String,
    /// Digest of the request.
    pub body: Digest,
}

/// A run with a fresh token.
#[derive(Debug, Clone)]
pub struct Minted {
    /// The run.
    pub run: RunRow,
    /// The token.
    pub token: String,
    /// Its end.
    pub expires_at: UnixMillis,
}

impl App {
    /// Starts a run; the same call again gives the same run with a fresh token.
    ///
    /// # Errors
    /// `INVALID_FIELD`, `LIMIT_EXCEEDED`, `NOT_A_SUBSET` or `IDEMPOTENCY_MISMATCH`.
    pub async fn start_run(&self, caller: &Caller, start: Start) -> Result<Minted, Fault> {
        self.served(&start.tenant)?;
        name("agent", &start.agent)?;
        key(&start.idempotency_key)?;
        check_scopes(&start.scopes)?;
        let mut tx = self.store.begin().await?;
        let call = CallKey {
            tenant: &start.tenant,
            caller: &caller_key(caller),
            method: "StartRun",
            key: &start.idempotency_key,
            body: start.body.as_bytes(),
        };
        match self.rows.seen(&mut tx, call).await? {
            Seen::Other => return Err(mismatch()),
            Seen::Same(run) => {
                let run = self.known(&mut tx, &start.tenant, &run).await?;
                return self.fresh(run, tx.now(), None);
            }
            Seen::New => {}
        }
        let parent = match &caller.run {
            Some(claims) => Some(self.known(&mut tx, &claims.tenant, &claims.run).await?),
            None => None,
        };
        let run = build(&start, caller, parent.as_ref(), tx.now())?;
        self.rows.put_run(&mut tx, &run).await?;
        self.rows.remember(&mut tx, call, &run.run).await?;
        self.note_run(&mut tx, &run, None, Event::Begin, &caller.id, "").await?;
        let minted = self.fresh(run, tx.now(), None)?;
        self.commit(tx).await?;
        Ok(minted)
    }

    /// A fresh token of the caller's run, or of one that the caller started.
    ///
    /// # Errors
    /// `NOT_FOUND`, `RUN_REVOKED`, `RUN_EXPIRED` or `INVALID_FIELD`.
    pub async fn renew(
        &self,
        caller: &Caller,
        tenant: &str,
        run: &str,
        token_ttl: Option<Duration>,
    ) -> Result<Minted, Fault> {
        let mut tx = self.store.begin().await?;
        let run = match &caller.run {
            Some(claims) if run.is_empty() || run == claims.run => {
                self.known(&mut tx, &claims.tenant, &claims.run).await?
            }
            Some(_) => {
                return Err(Fault::field("run", "a run token renews its own run only; leave the run empty"));
            }
            None => {
                let found = self.known(&mut tx, tenant, run).await?;
                if found.starter != caller.id {
                    return Err(Fault::new(
                        Reason::CallerNotAllowed,
                        "only who started the run renews its token",
                    ));
                }
                found
            }
        };
        match run.state {
            RunState::Active if tx.now() < run.expires_at => self.fresh(run, tx.now(), token_ttl),
            RunState::Active | RunState::Expired => {
                Err(Fault::new(Reason::RunExpired, "the run's life is over"))
            }
            _ => Err(Fault::new(Reason::RunRevoked, "the run has ended")),
        }
    }

    /// Revokes a run and everything below it; a repeat changes nothing.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn revoke(
        &self,
        caller: &Caller,
        tenant: &str,
        run: &str,
        reason: &str,
    ) -> Result<Vec<String>, Fault> {
        limit("reason", reason.len(), 1024)?;
        let mut tx = self.store.begin().await?;
        let first = self.known(&mut tx, tenant, run).await?;
        let mut open = vec![first];
        let mut revoked = Vec::new();
        while let Some(mut run) = open.pop() {
            open.extend(self.rows.children(&mut tx, tenant, &run.run).await?);
            let before = run.state;
            let Some(state) = next(Some(before), Event::Revoke) else { continue };
            run.state = state;
            self.rows.put_run(&mut tx, &run).await?;
            self.note_run(&mut tx, &run, Some(before), Event::Revoke, &caller.id, "RUN_REVOKED").await?;
            let cancel =
                CancelRequest { tenant: tenant.to_owned(), subject: Some(Subject::Run(run.run.clone())) };
            outbox::push(&mut tx, "cancel", &format!("run/{}", run.run), &cancel.encode_to_vec()).await?;
            self.revoke_plans(&mut tx, &run.run, &caller.id).await?;
            revoked.push(run.run);
        }
        self.commit(tx).await?;
        Ok(revoked)
    }

    /// One run.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn run(&self, tenant: &str, run: &str) -> Result<RunRow, Fault> {
        let mut tx = self.store.begin().await?;
        let run = self.known(&mut tx, tenant, run).await?;
        Ok(as_of(run, tx.now()))
    }

    /// Runs of a tenant before an id, newest first.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn runs(&self, tenant: &str, before: &str, limit: u32) -> Result<Vec<RunRow>, Fault> {
        let mut tx = self.store.begin().await?;
        let runs = self.rows.runs(&mut tx, tenant, before, limit).await?;
        Ok(runs.into_iter().map(|run| as_of(run, tx.now())).collect())
    }

    async fn known(&self, tx: &mut Tx, tenant: &str, run: &str) -> Result<RunRow, Fault> {
        self.rows.run(tx, tenant, run).await?.ok_or_else(|| Fault::not_found("run", run))
    }

    fn fresh(&self, run: RunRow, now: UnixMillis, ttl: Option<Duration>) -> Result<Minted, Fault> {
        let own = Duration::from_millis(u64::try_from(run.token_ttl).unwrap_or(0));
        let ttl = ttl.unwrap_or(own);
        if ttl > own || ttl < Duration::from_secs(1) {
            return Err(Fault::field(
                "token_ttl",
                "a renewed token lives at most as long as the run's tokens do",
            ));
        }
        let expires_at = now.saturating_add(ttl).min(run.expires_at);
        Ok(Minted { token: self.mint(&run, now, expires_at)?, run, expires_at })
    }

    async fn note_run(
        &self,
        tx: &mut Tx,
        run: &RunRow,
        from: Option<RunState>,
        event: Event,
        actor: &str,
        reason: &str,
    ) -> Result<(), Fault> {
        let transition = Transition {
            machine: RunState::NAME.to_owned(),
            run: run.run.clone(),
            from: from.map(|s| s.as_str().to_owned()).unwrap_or_default(),
            event: event.as_str().to_owned(),
            to: run.state.as_str().to_owned(),
            actor: actor.to_owned(),
            reason: reason.to_owned(),
            ..Transition::default()
        };
        self.ledger.append(tx, &run.tenant, Body::Transition(transition)).await.map(drop)
    }
}

/// A run whose life is over is shown as what it is, whoever has looked at it since.
fn as_of(mut run: RunRow, now: UnixMillis) -> RunRow {
    if run.state == RunState::Active && now >= run.expires_at {
        run.state = RunState::Expired;
    }
    run
}

/// A run token speaks for its run, a certificate for itself.
pub(crate) fn caller_key(caller: &Caller) -> String {
    caller.run.as_ref().map_or_else(|| caller.id.clone(), |claims| format!("run/{}", claims.run))
}

pub(crate) fn mismatch() -> Fault {
    Fault::new(
        Reason::IdempotencyMismatch,
        "the idempotency key was used with another request; take a new key",
    )
}

fn build(start: &Start, caller: &Caller, parent: Option<&RunRow>, now: UnixMillis) -> Result<RunRow, Fault> {
    let rest = parent.map(|p| p.expires_at.since(now));
    let life = start.ttl.unwrap_or_else(|| rest.unwrap_or(DEFAULT_LIFE).min(DEFAULT_LIFE));
    let longest = parent.map(|p| Duration::from_millis(u64::try_from(p.token_ttl).unwrap_or(0)));
    let token = start.token_ttl.unwrap_or_else(|| longest.unwrap_or(DEFAULT_TOKEN).min(DEFAULT_TOKEN));
    let second = Duration::from_secs(1);
    if life < second || life > MAX_LIFE {
        return Err(Fault::field("ttl", "a run lives from 1 s to 30 days"));
    }
    if token < second || token > MAX_TOKEN {
        return Err(Fault::field("token_ttl", "a token lives from 1 s to 1 hour"));
    }
    if let Some(parent) = parent {
        subset(start, parent, life, token, rest.unwrap_or_default())?;
    }
    let owner = match (parent, caller.kind) {
        (Some(parent), _) if start.owner.is_empty() => parent.owner.clone(),
        (None, _) if start.owner.is_empty() => caller.id.clone(),
        (None, CallerKind::InternalService) => person(&start.owner)?,
        _ => return Err(Fault::field("owner", "only an internal service may name the person it acts for")),
    };
    Ok(RunRow {
        run: uuid::Uuid::now_v7().to_string(),
        tenant: start.tenant.clone(),
        agent: start.agent.clone(),
        owner,
        starter: caller_key(caller),
        scopes: start.scopes.clone(),
        state: RunState::Active,
        started_at: now,
        expires_at: now.saturating_add(life),
        token_ttl: i64::try_from(token.as_millis()).unwrap_or(i64::MAX),
        parent: parent.map(|p| p.run.clone()).unwrap_or_default(),
    })
}

fn person(owner: &str) -> Result<String, Fault> {
    let id = exequatur_identity::SpiffeId::parse(owner).ok();
    let fits = id.filter(|id| matches!(id.principal(), exequatur_identity::Principal::Person(_)));
    fits.map(|id| id.to_string())
        .ok_or_else(|| Fault::field("owner", "the owner must be the SPIFFE ID of a person"))
}

/// Invariant I8.
fn subset(
    start: &Start,
    parent: &RunRow,
    life: Duration,
    token: Duration,
    rest: Duration,
) -> Result<(), Fault> {
    let no = |what: &str| {
        Err(Fault::new(Reason::NotASubset, format!("a child run's {what} must lie within its parent's")))
    };
    if start.tenant != parent.tenant {
        return no("tenant");
    }
    if !start.scopes.iter().all(|s| parent.scopes.iter().any(|p| contains(p, s))) {
        return no("scopes");
    }
    if life > rest {
        return no("life");
    }
    if token > Duration::from_millis(u64::try_from(parent.token_ttl).unwrap_or(0)) {
        return no("token life");
    }
    Ok(())
}

fn contains(parent: &str, child: &str) -> bool {
    parent == child || parent.strip_suffix('*').is_some_and(|prefix| child.starts_with(prefix))
}

/// Whether a scope covers a tool: the exact name, or a prefix ending in `.*`.
#[must_use]
pub fn covers(scopes: &[String], tool: &str) -> bool {
    scopes.iter().any(|s| s == tool || s.strip_suffix('*').is_some_and(|prefix| tool.starts_with(prefix)))
}

/// One list element is one scope: nothing is split, and blanks are refused.
fn check_scopes(scopes: &[String]) -> Result<(), Fault> {
    if scopes.is_empty() {
        return Err(Fault::field("scopes", "name at least one tool"));
    }
    limit("scopes", scopes.len(), MAX_SCOPES)?;
    for scope in scopes {
        let name = scope.strip_suffix(".*").unwrap_or(scope);
        if !exequatur_canonical::is_tool_name(name) {
            return Err(Fault::field("scopes", "a scope is an exact tool name, or a prefix ending in `.*`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn a_scope_is_one_name_and_covers_nothing_by_accident() {
        check_scopes(&scopes(&["files.read", "crm.*"])).unwrap();
        for bad in ["files.read files.write", "*", ".*", "", "a*", "crm.**", "files.read\n", "f\u{e4}les"] {
            assert!(check_scopes(&scopes(&[bad])).is_err(), "{bad:?}");
        }
        assert!(covers(&scopes(&["crm.*"]), "crm.read"));
        assert!(!covers(&scopes(&["crm.*"]), "crm"));
        assert!(!covers(&scopes(&["crm.*"]), "crmx.read"));
        assert!(!covers(&scopes(&["crm.read"]), "crm.read.all"));
    }

    #[test]
    fn a_child_prefix_lies_within_its_parents() {
        assert!(
            contains("crm.*", "crm.read.*") && contains("crm.*", "crm.read") && contains("crm.*", "crm.*")
        );
        assert!(!contains("crm.read", "crm.*") && !contains("crm.read.*", "crm.*"));
    }
}
