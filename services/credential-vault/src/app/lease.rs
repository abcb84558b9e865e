//! Handing one credential over for one attempt. Peer, warrant, frozen bytes, definition, own pin and
//! reservation are all checked here, so that a forged or replayed order gets nothing.

use std::time::Duration;

use exequatur_door::{Checked, named, present, refused};
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{LeaseRequest, LeaseResponse, Reuse};
use exequatur_proto::definition::v1::Attestation;
use exequatur_proto::ledger::v1::LeaseEvent;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{Reservation, Warrant};
use exequatur_statement::{Expect, Verified, envelope_digest};

use super::{App, reuse};
use crate::backend::{Backend as _, Handed, Order, Sealed, Value};
use crate::store::{Backend as StoredAt, Lease, Pin};

/// A lease outlives the longest time-out of a definition a little.
const LIFE: Duration = Duration::from_secs(330);
/// Attempts that an action has. Without the bound, a warrant per number would be a lease per number.
const ATTEMPTS: std::ops::RangeInclusive<u32> = 1..=5;

impl App {
    /// Leases one credential: once per plan digest, index, attempt and credential.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED`, `LEASE_SPENT`, or what is wrong with bytes and statements.
    pub async fn lease(&self, request: &LeaseRequest) -> Result<LeaseResponse, Fault> {
        let now = self.store.clock().now()?.0;
        let definition = request.definition.as_ref();
        let checked = exequatur_door::check(
            &self.trust,
            now,
            &request.header,
            request.index,
            &request.action,
            definition,
        )?;
        let about = |fault: Fault| {
            fault
                .with("tenant", checked.plan.header().tenant.clone())
                .with("plan", checked.plan.digest().to_string())
                .with("index", checked.index.to_string())
        };
        let warrant =
            exequatur_door::warrant(&self.trust, now, &checked, request.warrant.as_ref()).map_err(about)?;
        self.grant(request, &checked, &warrant, now).await.map_err(about)
    }

    async fn grant(
        &self,
        request: &LeaseRequest,
        checked: &Checked,
        warrant: &Verified<Warrant>,
        now: i64,
    ) -> Result<LeaseResponse, Fault> {
        let tenant = &checked.plan.header().tenant;
        if !ATTEMPTS.contains(&warrant.statement.attempt) {
            return Err(Fault::new(
                Reason::StatementInvalid,
                "the warrant is for an attempt that is not 1..5",
            ));
        }
        if !warrant.statement.credentials.contains(&request.credential) {
            return Err(not_granted("the warrant does not name this credential"));
        }
        let mut tx = self.store.begin().await?;
        let entry = self.catalog.entry(&mut tx, tenant, &request.credential).await?;
        let entry = entry.ok_or_else(|| not_granted("the catalog has no such credential"))?;
        let pin = entry.pins.iter().find(|pin| pin.tool == checked.definition.tool());
        let pin =
            pin.ok_or_else(|| not_granted("the credential does not serve this tool; apply the tool"))?;
        check_pin(pin, checked)?;
        let attempt = self.attested(request, pin, checked, warrant, now)?;
        let (backend, version) = self
            .catalog
            .value(&mut tx, tenant, &request.credential, entry.version)
            .await?
            .ok_or_else(|| not_granted("the credential has no value yet; an operator must put one"))?;
        let timeout = Duration::from_millis(checked.definition.message().timeout_ms.into());
        let reuse = reuse::of_version(backend, &version)?;
        let life = if reuse == Reuse::PerAction { LIFE } else { reuse::LIFE };
        let mut lease = Lease {
            lease: uuid::Uuid::now_v7().to_string(),
            tenant: tenant.clone(),
            credential: request.credential.clone(),
            version: entry.version,
            plan_digest: checked.plan.digest().to_vec(),
            index: checked.index,
            attempt,
            expires_at: tx.now().saturating_add(life),
            returned: false,
            vault_lease: String::new(),
            run: warrant.statement.run.clone(),
            reuse,
            kept: false,
            reuse_of: String::new(),
        };
        lease.reuse_of = self.open_lease(&mut tx, &request.held, &lease, timeout).await?;
        if !self.catalog.lease(&mut tx, &lease).await? {
            return Err(Fault::new(
                Reason::LeaseSpent,
                "this attempt already had its lease of this credential",
            ));
        }
        let reservation =
            request.reservation.as_ref().map(|r| envelope_digest(r).to_vec()).unwrap_or_default();
        let event = event("granted", &lease, warrant.digest.to_vec(), reservation);
        self.ledger.append(&mut tx, tenant, Body::Lease(event)).await?;
        tx.commit().await?;
        if !lease.reuse_of.is_empty() {
            return Ok(LeaseResponse { reuse_of: lease.reuse_of.clone(), ..answer(&lease) });
        }
        // From here on the attempt has had its lease, whatever Vault says.
        let order = Order { tenant, credential: &request.credential, version: &version, life: timeout };
        let handed = match (backend, &self.vault) {
            (StoredAt::Sealed, _) => Sealed.hand_over(order).await,
            (StoredAt::Vault, Some(vault)) => vault.hand_over(order).await,
            (StoredAt::Vault, None) => Err(not_granted("this credential-vault is not configured for Vault")),
        };
        self.handed(&lease, backend, handed).await
    }

    /// Records what became of the hand-over, and answers.
    async fn handed(
        &self,
        lease: &Lease,
        backend: StoredAt,
        handed: Result<Handed, Fault>,
    ) -> Result<LeaseResponse, Fault> {
        let handed = match handed {
            Ok(handed) => handed,
            Err(fault) => {
                let mut tx = self.store.begin().await?;
                if self.catalog.give_back(&mut tx, &lease.tenant, &lease.lease, "").await?.is_some() {
                    let mut failed = event("failed", lease, Vec::new(), Vec::new());
                    fault.reason_str().clone_into(&mut failed.reason);
                    self.ledger.append(&mut tx, &lease.tenant, Body::Lease(failed)).await?;
                    tx.commit().await?;
                }
                return Err(fault);
            }
        };
        if backend == StoredAt::Vault {
            let mut tx = self.store.begin().await?;
            let mut over = event("handed_over", lease, Vec::new(), Vec::new());
            (over.vault_path, over.vault_accessor) = (handed.path, handed.accessor);
            self.ledger.append(&mut tx, &lease.tenant, Body::Lease(over)).await?;
            tx.commit().await?;
        }
        let mut response = answer(lease);
        match handed.value {
            Value::Sealed(value) => response.value = Some(value),
            Value::Wrapped(value) => response.wrapped = Some(value),
            Value::Scoped(value) => response.scoped = Some(value),
        }
        Ok(response)
    }

    /// The attempt that the lease is for: of the reservation where the pin asks for one.
    fn attested(
        &self,
        request: &LeaseRequest,
        pin: &Pin,
        checked: &Checked,
        warrant: &Verified<Warrant>,
        now: i64,
    ) -> Result<u32, Fault> {
        if pin.attestation == i32::from(Attestation::Auto) && request.reservation.is_none() {
            return Ok(warrant.statement.attempt);
        }
        let zone = |name: &str| format!("spiffe://{}/zone/{name}", self.trust.realm());
        let (approval, own) = (zone("approval"), zone("credential-vault"));
        let expect = Expect {
            issuer: Some(&approval),
            audience: Some(&own),
            tenant: Some(&checked.plan.header().tenant),
            now,
            check_expiry: true,
        };
        let envelope = present(request.reservation.as_ref(), "reservation")
            .map_err(|_| not_granted("the credential is let go only with a person's reserved approval"))?;
        let reservation = self
            .trust
            .verify::<Reservation>(envelope, expect)
            .map_err(|e| refused("reservation", &e))?
            .statement;
        named("plan", &reservation.plan_digest, &checked.plan.digest())?;
        named("action", &reservation.action_digest, &checked.action.digest())?;
        named("wire", &reservation.wire_digest, &checked.prepared.wire_digest())?;
        let warrant_id = warrant.statement.header.as_ref().map(|h| h.id.as_str()).unwrap_or_default();
        if reservation.index != checked.index
            || reservation.warrant != warrant_id
            || reservation.attempt != warrant.statement.attempt
        {
            return Err(Fault::new(
                Reason::StatementInvalid,
                "the reservation is for another action or attempt",
            ));
        }
        Ok(reservation.attempt)
    }
}

/// An answer without a value.
fn answer(lease: &Lease) -> LeaseResponse {
    LeaseResponse {
        lease: lease.lease.clone(),
        version: lease.version,
        expires_at: Some(lease.expires_at.to_proto()),
        ..LeaseResponse::default()
    }
}

/// The operator's pin, not the caller's word, says what a credential serves.
fn check_pin(pin: &Pin, checked: &Checked) -> Result<(), Fault> {
    named("tool", &pin.tool_digest, &checked.definition.digest()).map_err(|fault| {
        not_granted("the tool's definition is not the one that the credential is pinned to").caused_by(fault)
    })?;
    if pin.destination != checked.prepared.destination() {
        return Err(not_granted("the request goes to another destination than the credential serves"));
    }
    Ok(())
}

fn not_granted(why: &str) -> Fault {
    Fault::new(Reason::CredentialNotGranted, why.to_owned())
}

pub(super) fn event(
    what: &str,
    lease: &Lease,
    warrant_digest: Vec<u8>,
    reservation_digest: Vec<u8>,
) -> LeaseEvent {
    LeaseEvent {
        event: what.to_owned(),
        lease: lease.lease.clone(),
        credential: lease.credential.clone(),
        version: lease.version,
        plan_digest: lease.plan_digest.clone(),
        index: lease.index,
        attempt: lease.attempt,
        warrant_digest,
        reservation_digest,
        vault_lease: lease.vault_lease.clone(),
        reuse_of: lease.reuse_of.clone(),
        ..LeaseEvent::default()
    }
}
