//! Opening what credential-vault handed over: ciphertext with the zone's own key, or a token at Vault. The
//! path is computed here and never taken from the answer. Knows no journal and no request.

use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{LeaseResponse, ScopedValue, SealContext, VaultSource, WrappedValue};
use exequatur_vault::{Client, Error, Kind, Opened, Paths, SecretPath, Token, engine_named};

mod held;
mod ring;

pub use held::Held;
pub(crate) use held::{Closed, Holding, Offer, Purpose};
pub use ring::KeyRing;

/// Field of a key/value secret where the catalog names none.
const FIELD: &str = "value";

/// Everything that opens a credential.
pub struct Opening {
    /// Open sealed values.
    pub keys: KeyRing,
    /// Opens tokens; `None`: this connector is not configured for Vault.
    pub vault: Option<Client>,
    /// Where in Vault things are.
    pub paths: Paths,
}

impl Opening {
    /// Opens the value of a lease.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED`, `WRAPPING_TOKEN_USED`, or `UNAVAILABLE` while Vault is away.
    pub(crate) async fn open(&self, context: &SealContext, lease: LeaseResponse) -> Result<Opened, Fault> {
        match lease {
            LeaseResponse { value: Some(value), wrapped: None, scoped: None, .. } => self
                .keys
                .open(context, &value)
                .map(Opened::plain)
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

    async fn unwrap(&self, context: &SealContext, value: WrappedValue) -> Result<Opened, Fault> {
        let (vault, source, path) = self.source(context, value.source)?;
        let token = Token::new(value.token).map_err(|e| fault(&e))?;
        let opened = vault.unwrap(&token, &path, field(&source)).await.map_err(|e| fault(&e))?;
        pinned(&source, opened)
    }

    async fn read(&self, context: &SealContext, value: ScopedValue) -> Result<Opened, Fault> {
        let (vault, source, path) = self.source(context, value.source)?;
        let token = Token::new(value.token).map_err(|e| fault(&e))?;
        let version = Some(source.kv_version).filter(|v| *v != 0);
        let opened = vault.read_with(&token, &path, version, field(&source)).await.map_err(|e| fault(&e))?;
        pinned(&source, opened)
    }

    fn source(
        &self,
        context: &SealContext,
        source: Option<VaultSource>,
    ) -> Result<(&Client, VaultSource, SecretPath), Fault> {
        let vault =
            self.vault.as_ref().ok_or_else(|| not_granted("this connector is not configured for Vault"))?;
        let source = source.ok_or_else(|| Fault::internal("credential-vault named no engine"))?;
        let engine = engine_named(source.engine().as_str_name())
            .ok_or_else(|| Fault::internal("credential-vault named no engine that this program knows"))?;
        let path = self.paths.of(engine, &context.tenant, &context.credential);
        Ok((vault, source, path.map_err(|e| fault(&e))?))
    }
}

fn field(source: &VaultSource) -> &str {
    if source.field.is_empty() { FIELD } else { &source.field }
}

/// The catalog's version, not the one that Vault has grown meanwhile.
fn pinned(source: &VaultSource, opened: Opened) -> Result<Opened, Fault> {
    if source.kv_version == 0 || source.kv_version == opened.version {
        Ok(opened)
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
