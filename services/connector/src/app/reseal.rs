//! Moving a sealed value from one of the zone's keys to another, for an operator. The value passes through
//! this zone's memory, as it does for every action, and nowhere else.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{PutResealedRequest, SealContext, TakeSealedRequest};
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::trust::v1::Purpose;

use super::App;

const PEER: Duration = Duration::from_secs(10);

impl App {
    /// Seals the newest version anew; gives its version and the key. A repeat changes nothing.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED` when credential-vault does not let it go, or the value does not open.
    pub async fn reseal(&self, actor: &str, tenant: &str, credential: &str) -> Result<(u64, String), Fault> {
        let (tenant, credential) = (tenant.to_owned(), credential.to_owned());
        let mut request =
            tonic::Request::new(TakeSealedRequest { tenant: tenant.clone(), credential: credential.clone() });
        request.set_timeout(PEER);
        let taken = self.vault.clone().take_sealed(request).await.map_err(|s| Fault::from_status(&s))?;
        let taken = taken.into_inner();
        let value =
            taken.value.ok_or_else(|| Fault::internal("credential-vault answered without a value"))?;
        let context = SealContext {
            realm: self.trust.realm(),
            tenant: tenant.clone(),
            credential: credential.clone(),
            version: taken.version,
        };
        let closed = |e: exequatur_seal::SealError| {
            Fault::new(Reason::CredentialNotGranted, format!("the credential cannot be sealed anew: {e}"))
        };
        let secret = self.opening.keys.open(&context, &value).map_err(closed)?;
        let recipient = self.trust.key(&self.zones.own, Purpose::Seal, Some(&taken.kid));
        let recipient =
            recipient.ok_or_else(|| Fault::field("kid", "the trust bundle has no such sealing key"))?;
        let sealed = exequatur_seal::seal(&recipient, &context, secret.expose()).map_err(closed)?;
        // The private key must be here before the old one is given up.
        let again = self.opening.keys.open(&context, &sealed).map_err(closed)?;
        if again.expose() != secret.expose() {
            return Err(Fault::internal("a value that was sealed anew opens as another"));
        }
        let kid = sealed.kid.clone();
        let mut request = tonic::Request::new(PutResealedRequest {
            tenant: tenant.clone(),
            credential: credential.clone(),
            version: taken.version,
            value: Some(sealed),
        });
        request.set_timeout(PEER);
        self.vault.clone().put_resealed(request).await.map_err(|s| Fault::from_status(&s))?;
        let entry = RegisterChanged {
            register: "credential".to_owned(),
            name: credential,
            change: "reseal".to_owned(),
            actor: actor.to_owned(),
            ..RegisterChanged::default()
        };
        let mut tx = self.store.begin().await?;
        self.ledger.append(&mut tx, &tenant, Body::RegisterChanged(entry)).await?;
        tx.commit().await?;
        Ok((taken.version, kid))
    }
}
