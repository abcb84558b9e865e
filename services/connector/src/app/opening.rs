//! Opening what credential-vault handed over: ciphertext with the zone's own key, or a token at Vault. The
//! path is computed here and never taken from the answer. Knows no journal and no request.

use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{
    LeaseResponse, ScopedValue, SealContext, VaultEngine, VaultSource, WrappedValue,
};
use exequatur_seal::{OpeningKey, Secret};
use exequatur_vault::{Client, DatabaseCreds, Error, Kind, SecretPath, Token, database_path, kv2_path};

use crate::config::VaultPaths;

/// Field of a key/value secret where the catalog names none.
const FIELD: &str = "value";

/// Everything that opens a credential.
pub struct Opening {
    /// Opens sealed values.
    pub key: OpeningKey,
    /// Opens tokens; `None`: this connector is not configured for Vault.
    pub vault: Option<Client>,
    /// Mounts.
    pub paths: VaultPaths,
}

/// An opened credential.
pub(crate) struct Material {
    /// The secret.
    pub(crate) secret: Secret,
    /// The user that goes with it, of a dynamic login; else empty.
    pub(crate) user: String,
    /// Lease of a dynamic secret at Vault; else empty.
    pub(crate) vault_lease: String,
}

impl Material {
    const fn plain(secret: Secret) -> Self {
        Self { secret, user: String::new(), vault_lease: String::new() }
    }

    fn login(creds: DatabaseCreds) -> Self {
        Self { secret: creds.password, user: creds.username, vault_lease: creds.lease_id }
    }
}

impl Opening {
    /// Opens the value of a lease.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED`, `WRAPPING_TOKEN_USED`, or `UNAVAILABLE` while Vault is away.
    pub(crate) async fn open(&self, context: &SealContext, lease: LeaseResponse) -> Result<Material, Fault> {
        match lease {
            LeaseResponse { value: Some(value), wrapped: None, scoped: None, .. } => self
                .key
                .open(context, &value)
                .map(Material::plain)
                .map_err(|e| not_granted(&format!("the credential does not open: {e}"))),
            LeaseResponse { value: None, wrapped: Some(wrapped), scoped: None, .. } => {
                self.unwrap(context, wrapped).await
            }
            LeaseResponse { value: None, wrapped: None, scoped: Some(scoped), .. } => {
                self.read(context, scoped).await
            }
            _ => Err(Fault::internal("credential-vault answered without one value")),
        }
    }

    async fn unwrap(&self, context: &SealContext, value: WrappedValue) -> Result<Material, Fault> {
        let (vault, source, path) = self.source(context, value.source)?;
        let token = Token::new(value.token).map_err(|e| fault(&e))?;
        match source.engine() {
            VaultEngine::Database => {
                vault.unwrap_database(&token, &path).await.map(Material::login).map_err(|e| fault(&e))
            }
            _ => {
                let field = vault.unwrap_kv2(&token, &path, field(&source)).await.map_err(|e| fault(&e))?;
                pinned(&source, field.version)?;
                Ok(Material::plain(field.value))
            }
        }
    }

    async fn read(&self, context: &SealContext, value: ScopedValue) -> Result<Material, Fault> {
        let (vault, source, path) = self.source(context, value.source)?;
        let token = Token::new(value.token).map_err(|e| fault(&e))?;
        match source.engine() {
            VaultEngine::Database => {
                vault.database_creds_with(&token, &path).await.map(Material::login).map_err(|e| fault(&e))
            }
            _ => {
                let version = Some(source.kv_version).filter(|v| *v != 0);
                let field = vault
                    .read_kv2_with(&token, &path, version, field(&source))
                    .await
                    .map_err(|e| fault(&e))?;
                pinned(&source, field.version)?;
                Ok(Material::plain(field.value))
            }
        }
    }

    fn source(
        &self,
        context: &SealContext,
        source: Option<VaultSource>,
    ) -> Result<(&Client, VaultSource, SecretPath), Fault> {
        let vault =
            self.vault.as_ref().ok_or_else(|| not_granted("this connector is not configured for Vault"))?;
        let source = source.ok_or_else(|| Fault::internal("credential-vault named no engine"))?;
        let path = match source.engine() {
            VaultEngine::Kv2 => kv2_path(&self.paths.kv2, &context.tenant, &context.credential),
            VaultEngine::Database => {
                database_path(&self.paths.database, &context.tenant, &context.credential)
            }
            VaultEngine::Unspecified => return Err(Fault::internal("credential-vault named no engine")),
        };
        Ok((vault, source, path.map_err(|e| fault(&e))?))
    }
}

fn field(source: &VaultSource) -> &str {
    if source.field.is_empty() { FIELD } else { &source.field }
}

/// The catalog's version, not the one that Vault has grown meanwhile.
fn pinned(source: &VaultSource, found: u64) -> Result<(), Fault> {
    if source.kv_version == 0 || source.kv_version == found {
        Ok(())
    } else {
        Err(not_granted("Vault gave another version than the catalog pins"))
    }
}

fn not_granted(why: &str) -> Fault {
    Fault::new(Reason::CredentialNotGranted, why.to_owned())
}

fn fault(error: &Error) -> Fault {
    match error.kind() {
        Kind::WrappingTokenUsed => Fault::new(
            Reason::WrappingTokenUsed,
            "the wrapping token was already used: somebody else may have read the credential; nothing was sent",
        )
        .retryable(true),
        Kind::PathMismatch => Fault::new(
            Reason::WrappingTokenUsed,
            "the wrapping token is of another path: it was not opened; nothing was sent",
        )
        .retryable(true),
        _ if error.is_retryable() => {
            Fault::new(Reason::Unavailable, format!("Vault does not open the credential: {error}"))
                .retryable(true)
        }
        _ => not_granted(&format!("Vault does not open the credential: {error}")),
    }
}

#[cfg(test)]
mod tests;
