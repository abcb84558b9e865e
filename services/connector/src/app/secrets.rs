//! Leasing and opening the credentials of one attempt. A secret is opened here and nowhere else,
//! and lives until the request was built.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{GiveBackRequest, LeaseRequest, SealContext};
use exequatur_proto::definition::v1::CredentialUse;
use exequatur_proto::statement::v1::Envelope;
use exequatur_seal::Secret;

use super::App;
use super::attempt::Attempt;

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
            let secret = self.lease(attempt, &place.credential, reservation).await?;
            opened.push((place, secret));
        }
        Ok(opened)
    }

    async fn lease(
        &self,
        attempt: &mut Attempt,
        credential: &str,
        reservation: Option<&Envelope>,
    ) -> Result<Secret, Fault> {
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
        let value =
            lease.value.ok_or_else(|| Fault::internal("credential-vault answered without a value"))?;
        self.opening_key.open(&context, &value).map_err(|e| {
            Fault::new(Reason::CredentialNotGranted, format!("the credential does not open: {e}"))
                .with("credential", credential)
        })
    }

    /// Gives one lease back.
    pub(crate) async fn give_back(&self, request: GiveBackRequest) -> Result<(), Fault> {
        let mut request = tonic::Request::new(request);
        request.set_timeout(PEER);
        self.vault.clone().give_back(request).await.map(drop).map_err(|s| Fault::from_status(&s))
    }
}
