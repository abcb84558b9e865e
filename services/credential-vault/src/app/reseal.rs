//! Moving a sealed value to another of the connector's keys. The connector alone can open it, and gets it
//! outside an action only while an operator lets it: else a stolen connector could empty the catalog.

use std::time::Duration;

use exequatur_canonical::Digest;
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{SealedValue, TakeSealedResponse};
use exequatur_proto::trust::v1::Purpose;
use exequatur_store::Tx;
use prost::Message as _;

use super::App;
use super::catalog::MAX_VALUE;
use crate::store::{Backend, Reseal};

/// How long the connector may take a value.
const LEAVE: Duration = Duration::from_secs(5 * 60);

impl App {
    /// Lets the connector take the newest sealed value and put it back under the key `kid`.
    ///
    /// # Errors
    /// `NOT_FOUND`; `INVALID_FIELD` for a value that is not sealed here or a key that is not the connector's.
    pub async fn allow_reseal(
        &self,
        actor: &str,
        tenant: &str,
        credential: &str,
        kid: &str,
    ) -> Result<UnixMillis, Fault> {
        if self.seal_key(kid).is_none() {
            return Err(Fault::field("kid", "the trust bundle has no such sealing key of the connector"));
        }
        let mut tx = self.store.begin().await?;
        let entry = self.catalog.entry(&mut tx, tenant, credential).await?;
        let entry = entry.ok_or_else(|| Fault::not_found("credential", credential))?;
        if !matches!(entry.newest, Some((Backend::Sealed, _))) {
            return Err(Fault::field("credential", "the credential has no value that is sealed here"));
        }
        let expires_at = tx.now().saturating_add(LEAVE);
        let leave = Reseal { version: entry.version, kid: kid.to_owned(), expires_at };
        self.catalog.allow_reseal(&mut tx, tenant, credential, &leave).await?;
        self.change(&mut tx, tenant, "credential", credential, "allow_reseal", Vec::new(), actor, None)
            .await?;
        tx.commit().await?;
        Ok(expires_at)
    }

    /// The value that an operator lets the connector move.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED` without an operator's leave.
    pub async fn take_sealed(
        &self,
        actor: &str,
        tenant: &str,
        credential: &str,
    ) -> Result<TakeSealedResponse, Fault> {
        let mut tx = self.store.begin().await?;
        let (leave, bytes) = self.leave(&mut tx, tenant, credential).await?;
        let digest = Digest::sha256(&bytes).to_vec();
        self.change(&mut tx, tenant, "credential", credential, "take_sealed", digest, actor, None).await?;
        tx.commit().await?;
        let value = SealedValue::decode(bytes.as_slice()).map_err(Fault::internal)?;
        Ok(TakeSealedResponse { version: leave.version, value: Some(value), kid: leave.kid })
    }

    /// Takes the moved value back.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED` without an operator's leave; `INVALID_FIELD` for another key or version.
    pub async fn put_resealed(
        &self,
        actor: &str,
        tenant: &str,
        credential: &str,
        version: u64,
        value: Option<&SealedValue>,
    ) -> Result<(), Fault> {
        let value = value.ok_or_else(|| Fault::field("value", "the value is missing"))?;
        let bytes = value.encode_to_vec();
        if bytes.len() > MAX_VALUE {
            return Err(
                Fault::new(Reason::LimitExceeded, "a sealed value has at most 64 KiB").with("limit", "value")
            );
        }
        let mut tx = self.store.begin().await?;
        let (leave, _) = self.leave(&mut tx, tenant, credential).await?;
        if value.kid != leave.kid || version != leave.version || self.seal_key(&value.kid).is_none() {
            return Err(Fault::field(
                "value",
                "the value is of another version or key than the operator named",
            ));
        }
        if !self.catalog.reseal(&mut tx, tenant, credential, version, &bytes).await? {
            return Err(Fault::internal("a sealed version went missing"));
        }
        let digest = Digest::sha256(&bytes).to_vec();
        self.change(&mut tx, tenant, "credential", credential, "reseal", digest, actor, None).await?;
        tx.commit().await
    }

    /// The leave in force, and the value that it is for.
    async fn leave(&self, tx: &mut Tx, tenant: &str, credential: &str) -> Result<(Reseal, Vec<u8>), Fault> {
        let refused = || {
            let text =
                "no operator lets this value be sealed to another key; see `exequatur credential reseal`";
            Fault::new(Reason::CredentialNotGranted, text)
        };
        let leave = self.catalog.reseal_leave(tx, tenant, credential).await?.ok_or_else(refused)?;
        let entry = self.catalog.entry(tx, tenant, credential).await?.ok_or_else(refused)?;
        match entry.newest {
            Some((Backend::Sealed, bytes))
                if leave.expires_at > tx.now() && entry.version == leave.version =>
            {
                Ok((leave, bytes))
            }
            _ => Err(refused()),
        }
    }

    fn seal_key(&self, kid: &str) -> Option<exequatur_proto::trust::v1::PublicKey> {
        let connector = format!("spiffe://{}/zone/connector", self.trust.realm());
        self.trust.key(&connector, Purpose::Seal, Some(kid))
    }
}
