//! Leasing and opening the credentials of one attempt. A secret is opened here and nowhere else, and lives
//! until the request was built, or as long as the catalog lets it serve further actions.

use std::time::Duration;

use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_ledger::outbox;
use exequatur_proto::credential::v1::{
    GiveBackRequest, LeaseRequest, LeaseResponse, Reuse, SealContext, VaultSource,
};
use exequatur_proto::definition::v1::CredentialUse;
use exequatur_proto::definition::v1::credential_use::Injection;
use exequatur_proto::ledger::v1::SecurityEvent;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use exequatur_seal::Secret;
use exequatur_vault::Opened;
use prost::Message as _;

use super::attempt::Attempt;
use super::opening::{Closed, Holding, Offer, Purpose};
use super::{App, SEND_WITHIN};

const PEER: Duration = Duration::from_secs(10);

/// A credential's place in the request, and the secret for it.
pub(crate) type Injected = (CredentialUse, Secret);

impl App {
    /// Leases and opens everything that the definition names; the row learns the leases.
    pub(crate) async fn secrets(
        &self,
        attempt: &mut Attempt,
        reservation: Option<&Envelope>,
    ) -> Result<Vec<Injected>, Fault> {
        let mut opened = Vec::new();
        for place in attempt.checked.definition.credentials().to_vec() {
            let secret = self.lease(attempt, &place.credential, reservation).await?;
            opened.push((filled(place, &secret.user), secret.secret));
        }
        Ok(opened)
    }

    async fn lease(
        &self,
        attempt: &mut Attempt,
        credential: &str,
        reservation: Option<&Envelope>,
    ) -> Result<Opened, Fault> {
        let tenant = attempt.row.key.tenant.clone();
        let now = self.store.clock().now()?;
        let offers = self.held.offers(&tenant, credential, &attempt.row.run, ends_by(attempt, now));
        let mut request = tonic::Request::new(LeaseRequest {
            credential: credential.to_owned(),
            header: attempt.request.header.clone(),
            index: attempt.request.index,
            action: attempt.request.action.clone(),
            definition: attempt.request.definition.clone(),
            warrant: attempt.request.warrant.clone(),
            reservation: reservation.cloned(),
            held: offers.iter().map(|offer| offer.lease.clone()).collect(),
        });
        request.set_timeout(PEER);
        let lease = self.vault.clone().lease(request).await.map_err(|s| Fault::from_status(&s))?.into_inner();
        attempt.row.leases.push(lease.lease.clone());
        attempt.row.vault_leases.push(String::new());
        // Whatever is of an older version was rotated away.
        let stale =
            |p: &Purpose| p.tenant == tenant && p.credential == credential && p.version < lease.version;
        self.held.close(stale);
        let context = SealContext {
            realm: self.trust.realm(),
            tenant: tenant.clone(),
            credential: credential.to_owned(),
            version: lease.version,
        };
        attempt.reuses |= !lease.reuse_of.is_empty();
        match self.opened(attempt, &context, lease, offers, now).await {
            Ok((opened, holding)) => {
                if let Some(known) = attempt.row.vault_leases.last_mut() {
                    known.clone_from(&opened.lease);
                }
                attempt.holding.extend(holding);
                Ok(opened)
            }
            Err(fault) => {
                if fault.reason() == Reason::WrappingTokenUsed {
                    self.alarm(attempt, credential, fault.message()).await?;
                }
                Err(fault.with("credential", credential))
            }
        }
    }

    /// The secret of a lease: one that is open, or what was handed over, which may stay open.
    async fn opened(
        &self,
        attempt: &Attempt,
        context: &SealContext,
        lease: LeaseResponse,
        offers: Vec<Offer>,
        now: UnixMillis,
    ) -> Result<(Opened, Option<Holding>), Fault> {
        if !lease.reuse_of.is_empty() {
            let chosen = offers.into_iter().find(|offer| offer.lease == lease.reuse_of);
            let offer = chosen
                .ok_or_else(|| Fault::internal("credential-vault chose a lease that was not offered"))?;
            return Ok((offer.opened, Some(offer.holding)));
        }
        let (id, reuse) = (lease.lease.clone(), reuse(&lease));
        let mut until = lease.expires_at.as_ref().map_or(now, UnixMillis::from_proto);
        let opened = self.opening.open(context, lease).await?;
        if opened.lease_s > 0 {
            until = until.min(now.saturating_add(Duration::from_secs(opened.lease_s)));
        }
        let run = match reuse {
            Reuse::PerRun => Some(attempt.row.run.clone()),
            Reuse::UntilExpiry => None,
            Reuse::PerAction | Reuse::Unspecified => return Ok((opened, None)),
        };
        let purpose = Purpose {
            tenant: context.tenant.clone(),
            credential: context.credential.clone(),
            version: context.version,
            run,
            until,
        };
        let holding = self.held.keep(&id, purpose, &opened);
        Ok((opened, Some(holding)))
    }

    /// Gives back what is not held open any more: ended, rotated away, or of a cancelled run.
    pub(crate) async fn give_back_closed(&self) -> Result<(), Fault> {
        let now = self.store.clock().now()?;
        self.held.close(|purpose| purpose.until <= now);
        let closed = self.held.closed();
        if closed.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.begin().await?;
        for Closed { tenant, lease, vault_lease } in closed {
            let request = GiveBackRequest { tenant, lease: lease.clone(), vault_lease, keep: false };
            outbox::push(&mut tx, "give_back", &lease, &request.encode_to_vec()).await?;
        }
        tx.commit().await?;
        self.wake.notify_one();
        Ok(())
    }

    /// A record that a person must look at.
    async fn alarm(&self, attempt: &Attempt, credential: &str, what: &str) -> Result<(), Fault> {
        tracing::error!(reason = "WRAPPING_TOKEN_USED", credential, "security event: {what}");
        let key = &attempt.row.key;
        let event = SecurityEvent {
            reason: reason_str(Reason::WrappingTokenUsed).to_owned(),
            detail: format!("credential `{credential}`: {what}"),
            plan_digest: key.plan_digest.clone(),
            index: key.index,
        };
        let mut tx = self.store.begin().await?;
        self.ledger.append(&mut tx, &key.tenant, Body::Security(event)).await?;
        tx.commit().await
    }

    /// Gives one lease back.
    pub(crate) async fn give_back(&self, request: GiveBackRequest) -> Result<(), Fault> {
        let mut request = tonic::Request::new(request);
        request.set_timeout(PEER);
        self.vault.clone().give_back(request).await.map(drop).map_err(|s| Fault::from_status(&s))
    }
}

/// When an action that begins now has surely ended.
fn ends_by(attempt: &Attempt, now: UnixMillis) -> UnixMillis {
    let limit = attempt.checked.definition.message().timeout_ms;
    now.saturating_add(PEER + SEND_WITHIN + Duration::from_millis(limit.into()))
}

fn reuse(lease: &LeaseResponse) -> Reuse {
    let wrapped = lease.wrapped.as_ref().and_then(|value| value.source.as_ref());
    let scoped = lease.scoped.as_ref().and_then(|value| value.source.as_ref());
    wrapped.or(scoped).map_or(Reuse::PerAction, VaultSource::reuse)
}

/// A dynamic login brings its user along; a user that the definition names stays.
fn filled(mut place: CredentialUse, user: &str) -> CredentialUse {
    if let Some(Injection::PostgresLogin(login)) = &mut place.injection
        && login.user.is_empty()
    {
        user.clone_into(&mut login.user);
    }
    place
}
