//! HashiCorp Vault or OpenBao: a wrapped read, or a token for one path. What this zone asks for stands in
//! Vault's audit log; a plain read is refused by the shipped policy, not by this code.

use std::time::Duration;

use async_trait::async_trait;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{HandOver, ScopedValue, VaultSource, WrappedValue};
use exequatur_vault::{
    Client, Error, Kind, Paths, SecretPath, engine, engine_named, engine_words, scoped_policy,
};
use prost::Message as _;

use super::{Backend, Handed, Order, Value};

/// A wrapping token waits for the connector this long.
const WRAP_S: u32 = 30;
/// A scoped token outlives the tool's time-out by this.
const SCOPED_MARGIN: Duration = Duration::from_secs(30);

/// A Vault.
#[derive(Debug)]
pub struct Vault {
    /// With this zone's own login.
    pub client: Client,
    /// Mounts and token role.
    pub paths: Paths,
}

#[async_trait]
impl Backend for Vault {
    async fn hand_over(&self, order: Order<'_>) -> Result<Handed, Fault> {
        let source = VaultSource::decode(order.version).map_err(Fault::internal)?;
        let path = self.path(&source, order)?;
        match source.hand_over() {
            HandOver::Wrapped => {
                let version = Some(source.kv_version).filter(|v| *v != 0);
                let wrapped =
                    self.client.read_wrapped(&path, version, WRAP_S).await.map_err(|e| fault(&e))?;
                let value = WrappedValue { source: Some(source), token: wrapped.token.expose().to_owned() };
                Ok(Handed {
                    value: Value::Wrapped(value),
                    path: wrapped.creation_path,
                    accessor: wrapped.accessor,
                })
            }
            HandOver::Scoped => {
                let policy = scoped_policy(order.tenant, order.credential).map_err(|e| fault(&e))?;
                let life = u32::try_from((order.life + SCOPED_MARGIN).as_secs()).unwrap_or(u32::MAX);
                let role = &self.paths.scoped_role;
                let minted = self.client.mint_scoped(role, &policy, life).await.map_err(|e| fault(&e))?;
                let value = ScopedValue { source: Some(source), token: minted.token.expose().to_owned() };
                Ok(Handed { value: Value::Scoped(value), path: path.to_string(), accessor: String::new() })
            }
            HandOver::Unspecified => Err(Fault::internal("a version without a hand-over")),
        }
    }

    fn is_lease_of(&self, tenant: &str, credential: &str, vault_lease: &str) -> bool {
        // Of any engine: the catalog may have moved on since.
        engine_words().filter_map(engine).any(|engine| {
            let path = self.paths.of(engine, tenant, credential);
            path.is_ok_and(|path| {
                vault_lease.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
        })
    }

    async fn revoke(&self, vault_lease: &str) -> Result<(), Fault> {
        self.client.revoke_lease(vault_lease).await.map_err(|e| fault(&e))
    }
}

impl Vault {
    fn path(&self, source: &VaultSource, order: Order<'_>) -> Result<SecretPath, Fault> {
        let engine = engine_named(source.engine().as_str_name())
            .ok_or_else(|| Fault::internal("a version of no engine that this program knows"))?;
        self.paths.of(engine, order.tenant, order.credential).map_err(|e| fault(&e))
    }
}

/// An outage is told apart from a refusal; neither holds a word of Vault's.
fn fault(error: &Error) -> Fault {
    let text = format!("Vault gives no credential: {error}");
    if error.is_retryable() {
        return Fault::new(Reason::Unavailable, text).retryable(true).with("vault", word(error.kind()));
    }
    Fault::new(Reason::CredentialNotGranted, text).with("vault", word(error.kind()))
}

fn word(kind: Kind) -> String {
    format!("{kind:?}")
}
