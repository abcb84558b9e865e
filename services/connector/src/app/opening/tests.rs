//! A real OpenBao, set up as an operator would: what opens, what was opened by somebody else, and what is
//! of another path.

use std::path::Path;

use exequatur_dev_servers::{OpenBao, ServerTls};
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{
    HandOver, LeaseResponse, ScopedValue, SealContext, VaultEngine, VaultSource, WrappedValue,
};
use exequatur_seal::OpeningKey;
use exequatur_vault::setup::Operator;
use exequatur_vault::{Client, Config, Opened, Paths, SecretPath, engine, scoped_policy};
use serde_json::json;

use super::{KeyRing, Opening};

const TENANT: &str = "t-green";

struct World {
    _server: OpenBao,
    folder: tempfile::TempDir,
    operator: Operator,
    /// Asks, as credential-vault does, with the root's rights.
    opening: Opening,
    address: String,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tls = ServerTls::make(folder.path()).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let server = OpenBao::start(here, folder.path(), &tls).unwrap();
        let address = server.address();
        let config = Self::config(folder.path(), &address, "127.0.0.2");
        let bare = Operator::new(Self::config(folder.path(), &address, "127.0.0.1"), None).unwrap();
        let fresh = bare.initialize().await.unwrap();
        let operator = Operator::new(Self::config(folder.path(), &address, "127.0.0.1"), Some(fresh.root));
        let operator = operator.unwrap();
        operator.unseal(&fresh.key).await.unwrap();
        let values = [("CREDENTIAL_VAULT_CIDR", "127.0.0.1/32"), ("CONNECTOR_CIDR", "127.0.0.2/32")];
        let deploy = here.join("../../deploy/vault");
        operator.apply(&deploy, &values).await.unwrap();
        for name in ["crm-token", "sms-token"] {
            let body = json!({"data": {"value": format!("secret of {name}")}});
            while operator.write(&format!("secret/data/{TENANT}/{name}"), &body).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            let policy = scoped_policy(TENANT, name).unwrap();
            let values = [("TENANT", TENANT), ("CREDENTIAL", name)];
            operator.policy(&policy, &deploy.join("policies/scoped-kv2.hcl"), &values).await.unwrap();
        }
        let role = "auth/approle/role/credential-vault";
        let role_id = operator.read(&format!("{role}/role-id")).await.unwrap();
        let secret_id = operator.write(&format!("{role}/secret-id"), &json!({})).await.unwrap();
        std::fs::write(folder.path().join("secret-id"), secret_id["data"]["secret_id"].as_str().unwrap())
            .unwrap();
        std::fs::write(folder.path().join("role-id"), role_id["data"]["role_id"].as_str().unwrap()).unwrap();
        OpeningKey::generate("seal-1").save(&folder.path().join("seal.key")).unwrap();
        let opening = Opening {
            keys: KeyRing::load(folder.path().to_path_buf()).unwrap(),
            vault: Some(Client::new(config).unwrap()),
            paths: Paths::default(),
        };
        Self { _server: server, folder, operator, opening, address }
    }

    fn config(folder: &Path, address: &str, from: &str) -> Config {
        serde_json::from_value(json!({
            "address": address, "ca": folder.join("ca.crt"), "local_address": from, "timeout_ms": 20000,
        }))
        .unwrap()
    }

    /// credential-vault's own client.
    fn asker(&self) -> Client {
        let file = self.folder.path().join("role-id");
        let role_id = std::fs::read_to_string(file).unwrap();
        let mut config = Self::config(self.folder.path(), &self.address, "127.0.0.1");
        config.auth = serde_json::from_value(json!({
            "method": "approle", "role_id": role_id, "secret_id_file": self.folder.path().join("secret-id"),
        }))
        .unwrap();
        Client::new(config).unwrap()
    }

    async fn wrapped(&self, credential: &str) -> WrappedValue {
        let path = path_of(credential);
        let token = self.asker().read_wrapped(&path, None, 30).await.unwrap().token;
        WrappedValue { source: Some(source(HandOver::Wrapped)), token: token.expose().to_owned() }
    }

    async fn open(&self, lease: LeaseResponse) -> Result<Opened, Fault> {
        let context = SealContext {
            realm: "dev.exequatur".to_owned(),
            tenant: TENANT.to_owned(),
            credential: "crm-token".to_owned(),
            version: 1,
        };
        self.opening.open(&context, lease).await
    }
}

fn path_of(credential: &str) -> SecretPath {
    Paths::default().of(engine("kv2").unwrap(), TENANT, credential).unwrap()
}

fn source(way: HandOver) -> VaultSource {
    VaultSource { engine: VaultEngine::Kv2.into(), hand_over: way.into(), ..VaultSource::default() }
}

fn with(wrapped: WrappedValue) -> LeaseResponse {
    LeaseResponse { wrapped: Some(wrapped), ..LeaseResponse::default() }
}

fn reason(result: Result<Opened, Fault>) -> Reason {
    result.err().map_or(Reason::Unspecified, |fault| fault.reason())
}

/// S38, and what the connector takes from nobody's word.
#[tokio::test]
async fn a_token_opens_its_own_path_once() {
    let world = World::start().await;
    let once = world.wrapped("crm-token").await;
    let material = world.open(with(once.clone())).await.unwrap();
    assert_eq!(material.secret.expose(), b"secret of crm-token");
    // Somebody was first: an alarm, never another way in.
    assert_eq!(reason(world.open(with(once)).await), Reason::WrappingTokenUsed);
    let stolen = world.wrapped("crm-token").await;
    let thief = world.asker();
    let path = path_of("crm-token");
    let token = exequatur_vault::Token::new(stolen.token.clone()).unwrap();
    thief.unwrap(&token, &path, "value").await.unwrap();
    let fault = world.open(with(stolen)).await.err().unwrap();
    assert_eq!((fault.reason(), fault.is_retryable()), (Reason::WrappingTokenUsed, true));

    // A token of another credential is not even opened: its owner still can.
    let swapped = world.wrapped("sms-token").await;
    assert_eq!(reason(world.open(with(swapped.clone())).await), Reason::WrappingTokenUsed);
    let path = path_of("sms-token");
    let token = exequatur_vault::Token::new(swapped.token).unwrap();
    thief.unwrap(&token, &path, "value").await.unwrap();

    // Two values, or none, are no answer.
    let wrapped = world.wrapped("crm-token").await;
    let both = LeaseResponse { scoped: Some(ScopedValue::default()), ..with(wrapped) };
    assert_eq!(reason(world.open(both).await), Reason::Internal);
    assert_eq!(reason(world.open(LeaseResponse::default()).await), Reason::Internal);
}

#[tokio::test]
async fn a_scoped_token_works_from_the_connector_only() {
    let world = World::start().await;
    let policy = scoped_policy(TENANT, "crm-token").unwrap();
    let minted = world.asker().mint_scoped("exequatur-scoped", &policy, 40).await.unwrap();
    let scoped = || LeaseResponse {
        scoped: Some(ScopedValue {
            source: Some(source(HandOver::Scoped)),
            token: minted.token.expose().to_owned(),
        }),
        ..LeaseResponse::default()
    };
    assert_eq!(world.open(scoped()).await.unwrap().secret.expose(), b"secret of crm-token");
    // The zone that minted it cannot use it.
    let path = path_of("crm-token");
    let refused = world.asker().read_with(&minted.token, &path, None, "value").await.unwrap_err();
    assert_eq!(refused.kind(), exequatur_vault::Kind::Refused);
    // Pinned to a version that Vault has left behind.
    let body = json!({"data": {"value": "rotated"}});
    world.operator.write(&format!("secret/data/{TENANT}/crm-token"), &body).await.unwrap();
    assert_eq!(world.open(scoped()).await.unwrap().secret.expose(), b"rotated");
    let mut pinned = scoped();
    if let Some(ScopedValue { source: Some(source), .. }) = &mut pinned.scoped {
        source.kv_version = 1;
    }
    assert_eq!(world.open(pinned).await.unwrap().secret.expose(), b"secret of crm-token");
    let mut missing = scoped();
    if let Some(ScopedValue { source: Some(source), .. }) = &mut missing.scoped {
        source.field = "other".to_owned();
    }
    assert_eq!(reason(world.open(missing).await), Reason::CredentialNotGranted);
}
