//! Leasing and opening the credentials of one attempt. A secret is opened here and nowhere else,
//! and lives until the request was built.

use std::time::Duration;

use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_proto::credential::v1::{GiveBackRequest, LeaseRequest, SealContext};
use exequatur_proto::definition::v1::CredentialUse;
use exequatur_proto::definition::v1::credential_use::Injection;
use exequatur_proto::ledger::v1::SecurityEvent;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use exequatur_seal::Secret;

use super::App;
use super::attempt::Attempt;
use super::opening::Material;

const PEER: Duration = Duration::from_secs(10);

/// A credential's place in the request, and the secret for it.
pub(crate) type Opened = (CredentialUse, Secret);

impl App {
    /// Leases and opens everything that the definition names; the row learns the leases.
    pub(crate) async fn secrets(
        &self,
        attempt: &mut Attempt,
        reservation: Option<&Envelope>,
    ) -> Result<Vec<Opened>, Fault> {
        let mut opened = Vec::new();
        for place in attempt.checked.definition.credentials().to_vec() {
            let material = self.lease(attempt, &place.credential, reservation).await?;
            opened.push((filled(place, &material.user), material.secret));
        }
        Ok(opened)
    }

    async fn lease(
        &self,
        attempt: &mut Attempt,
        credential: &str,
        reservation: Option<&Envelope>,
    ) -> Result<Material, Fault> {
        let mut request = tonic::Request::new(LeaseRequest {
            credential: credential.to_owned(),
            header: attempt.request.header.clone(),
            index: attempt.request.index,
            action: attempt.request.action.clone(),
            definition: attempt.request.definition.clone(),
            warrant: attempt.request.warrant.clone(),
            reservation: reservation.cloned(),
        });
        request.set_timeout(PEER);
        let lease = self.vault.clone().lease(request).await.map_err(|s| Fault::from_status(&s))?.into_inner();
        attempt.row.leases.push(lease.lease.clone());
        let context = SealContext {
            realm: self.trust.realm(),
            tenant: attempt.row.key.tenant.clone(),
            credential: credential.to_owned(),
            version: lease.version,
        };
        attempt.row.vault_leases.push(String::new());
        match self.opening.open(&context, lease).await {
            Ok(material) => {
                if let Some(known) = attempt.row.vault_leases.last_mut() {
                    known.clone_from(&material.vault_lease);
                }
                Ok(material)
            }
            Err(fault) => {
                if fault.reason() == Reason::WrappingTokenUsed {
                    self.alarm(attempt, credential, fault.message()).await?;
                }
                Err(fault.with("credential", credential))
            }
        }
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

/// A dynamic login brings its user along; a user that the definition names stays.
fn filled(mut place: CredentialUse, user: &str) -> CredentialUse {
    if let Some(Injection::PostgresLogin(login)) = &mut place.injection
        && login.user.is_empty()
    {
        user.clone_into(&mut login.user);
    }
    place
}
