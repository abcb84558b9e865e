//! The operators' side: values come sealed, pins come from signed definitions.

use exequatur_canonical::Digest;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{HandOver, Reuse, SealedValue, VaultSource};
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::trust::v1::Purpose;
use exequatur_store::Tx;
use exequatur_vault::engine_named;
use prost::Message as _;

use super::reuse::is_shared;
use super::{App, is_name};
use crate::store::{Backend, Entry, Pin};

/// Bytes of a sealed value.
pub(super) const MAX_VALUE: usize = 64 * 1024;

impl App {
    /// One entry.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn entry(&self, tenant: &str, credential: &str) -> Result<Entry, Fault> {
        let mut tx = self.store.begin().await?;
        let entry = self.catalog.entry(&mut tx, tenant, credential).await?;
        entry.ok_or_else(|| Fault::not_found("credential", credential))
    }

    /// Entries after a name, in order.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn entries(&self, tenant: &str, after: &str, limit: u32) -> Result<Vec<Entry>, Fault> {
        let mut tx = self.store.begin().await?;
        self.catalog.entries(&mut tx, tenant, after, limit).await
    }

    /// Adds a version: sealed to the connector, or a place in Vault.
    ///
    /// # Errors
    /// `INVALID_FIELD`, or `CONFLICT` when the version is not the newest plus one.
    pub async fn put(
        &self,
        actor: &str,
        tenant: &str,
        credential: &str,
        version: u64,
        value: Option<&SealedValue>,
        vault: Option<&VaultSource>,
    ) -> Result<(), Fault> {
        if !is_name(credential) {
            return Err(Fault::field("credential", "a credential's name is [a-z0-9][a-z0-9._-]{0,62}"));
        }
        let (backend, bytes) = match (value, vault) {
            (Some(value), None) => (Backend::Sealed, self.sealed(value)?),
            (None, Some(source)) => (Backend::Vault, self.source(source)?),
            _ => return Err(Fault::field("value", "give one of a sealed value and a place in Vault")),
        };
        if bytes.len() > MAX_VALUE {
            return Err(
                Fault::new(Reason::LimitExceeded, "a sealed value has at most 64 KiB").with("limit", "value")
            );
        }
        let mut tx = self.store.begin().await?;
        if !self.catalog.put(&mut tx, tenant, credential, version, backend, &bytes).await? {
            return Err(Fault::new(
                Reason::Conflict,
                "the version is not the newest plus one; read the entry and seal again",
            ));
        }
        let digest = Digest::sha256(&bytes).to_vec();
        self.change(&mut tx, tenant, "credential", credential, "put", digest, actor, None).await?;
        tx.commit().await
    }

    fn sealed(&self, value: &SealedValue) -> Result<Vec<u8>, Fault> {
        let connector = format!("spiffe://{}/zone/connector", self.trust.realm());
        if self.trust.key(&connector, Purpose::Seal, Some(&value.kid)).is_none() {
            return Err(Fault::field(
                "value",
                "the value is not sealed to a key of the connector; fetch the trust bundle anew",
            ));
        }
        Ok(value.encode_to_vec())
    }

    fn source(&self, source: &VaultSource) -> Result<Vec<u8>, Fault> {
        if self.vault.is_none() {
            return Err(Fault::field("vault", "this credential-vault is not configured for Vault"));
        }
        let Some(engine) = engine_named(source.engine().as_str_name()) else {
            return Err(Fault::field("vault.engine", "name an engine"));
        };
        if source.hand_over() == HandOver::Unspecified {
            return Err(Fault::field("vault.hand_over", "name a hand-over"));
        }
        if !engine.has_fields() && (!source.field.is_empty() || source.kv_version != 0) {
            return Err(Fault::field("vault", "field and version are of the key/value engine only"));
        }
        if Reuse::try_from(source.reuse).is_err() {
            return Err(Fault::field("vault.reuse", "this reuse is not known"));
        }
        if is_shared(source) {
            if !engine.is_reusable() {
                return Err(Fault::field("vault.reuse", "what this engine gives serves one action"));
            }
            // Else a value rotated in Vault would not be used by the next action.
            if engine.has_fields() && source.kv_version == 0 {
                return Err(Fault::field("vault.reuse", "pin the version, or let it serve one action"));
            }
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        if source.field.len() > 128 || !source.field.bytes().all(plain) {
            return Err(Fault::field(
                "vault.field",
                "a field's name is up to 128 of letters, digits and `_-.`",
            ));
        }
        Ok(source.encode_to_vec())
    }

    /// Removes an entry; a repeat changes nothing.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn remove(&self, actor: &str, tenant: &str, credential: &str) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        if self.catalog.remove(&mut tx, tenant, credential).await? {
            self.change(&mut tx, tenant, "credential", credential, "remove", Vec::new(), actor, None).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Pins a definition that the actor signed to the credentials that it names; a new digest
    /// replaces the pin.
    ///
    /// # Errors
    /// `STATEMENT_INVALID` or `NOT_CANONICAL`.
    pub async fn pin(&self, actor: &str, tenant: &str, envelope: Option<&Envelope>) -> Result<Digest, Fault> {
        let envelope = exequatur_door::present(envelope, "definition")?;
        let now = self.store.clock().now()?.0;
        let definition = exequatur_door::signed_definition(&self.trust, now, tenant, envelope)?;
        // Who pins vouches: another operator's signature cannot be brought along.
        let signed = |kid: &str| self.trust.key(actor, Purpose::Definition, Some(kid)).is_some();
        if !envelope.signatures.iter().any(|s| signed(&s.keyid)) {
            return Err(Fault::new(
                Reason::StatementInvalid,
                "the definition is signed by another operator; apply the tool with your own key",
            ));
        }
        let pins: Vec<(String, Pin)> = definition
            .credentials()
            .iter()
            .map(|place| {
                let pin = Pin {
                    tool: definition.tool().to_owned(),
                    tool_digest: definition.digest().to_vec(),
                    destination: definition.destination(),
                    attestation: place.attestation,
                };
                (place.credential.clone(), pin)
            })
            .collect();
        let mut tx = self.store.begin().await?;
        self.catalog.pin(&mut tx, tenant, definition.tool(), &pins).await?;
        let digest = definition.digest();
        self.change(&mut tx, tenant, "pin", definition.tool(), "put", digest.to_vec(), actor, Some(envelope))
            .await?;
        tx.commit().await?;
        Ok(digest)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one log entry, in its order")]
    pub(super) async fn change(
        &self,
        tx: &mut Tx,
        tenant: &str,
        register: &str,
        name: &str,
        change: &str,
        digest: Vec<u8>,
        actor: &str,
        statement: Option<&Envelope>,
    ) -> Result<(), Fault> {
        let entry = RegisterChanged {
            register: register.to_owned(),
            name: name.to_owned(),
            change: change.to_owned(),
            digest,
            actor: actor.to_owned(),
            statement: statement.map(Envelope::encode_to_vec).unwrap_or_default(),
        };
        self.ledger.append(tx, tenant, Body::RegisterChanged(entry)).await.map(drop)
    }
}
