//! The real outside servers of a development plane, where they are asked for: OpenBao, set up with the files
//! that an operator would apply, and PostgreSQL. Both begin anew at every start.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use exequatur_dev_servers::{OpenBao, Postgres, ServerTls};
use exequatur_proto::credential::v1::{HandOver, VaultEngine, VaultSource};
use exequatur_vault::setup::Operator;
use exequatur_vault::{Config, scoped_policy};
use serde_json::{Value, json};

use super::accounts::{Accounts, private};
use super::configure::toml_string;
use super::{Layout, TENANT};
use crate::context::{Pg, Vault};
use crate::failure::Failure;

/// credential-vault calls Vault from here, and the connector from there.
const CREDENTIAL_VAULT: &str = "127.0.0.1";
const CONNECTOR: &str = "127.0.0.2";
/// The credential of `db.query`.
pub(crate) const ORDERS: &str = "orders-reader";

/// What an operator applies; the program needs no source tree.
const SETUP: [(&str, &str); 12] = [
    ("steps", include_str!("../../../../../deploy/vault/steps")),
    ("policies/connector.hcl", include_str!("../../../../../deploy/vault/policies/connector.hcl")),
    (
        "policies/credential-vault.hcl",
        include_str!("../../../../../deploy/vault/policies/credential-vault.hcl"),
    ),
    ("policies/scoped-kv2.hcl", include_str!("../../../../../deploy/vault/policies/scoped-kv2.hcl")),
    (
        "roles/approle-connector.json",
        include_str!("../../../../../deploy/vault/roles/approle-connector.json"),
    ),
    (
        "roles/approle-credential-vault.json",
        include_str!("../../../../../deploy/vault/roles/approle-credential-vault.json"),
    ),
    ("roles/auth-approle.json", include_str!("../../../../../deploy/vault/roles/auth-approle.json")),
    ("roles/auth-cert.json", include_str!("../../../../../deploy/vault/roles/auth-cert.json")),
    ("roles/mount-database.json", include_str!("../../../../../deploy/vault/roles/mount-database.json")),
    ("roles/mount-kv2.json", include_str!("../../../../../deploy/vault/roles/mount-kv2.json")),
    ("roles/mount-totp.json", include_str!("../../../../../deploy/vault/roles/mount-totp.json")),
    ("roles/scoped-token.json", include_str!("../../../../../deploy/vault/roles/scoped-token.json")),
];
const DATABASE_CONFIG: &str = include_str!("../../../../../deploy/demo/vault/database-config.json");
const DATABASE_ROLE: &str = include_str!("../../../../../deploy/demo/vault/database-role.json");
const ORDERS_SQL: &str = include_str!("../../../../../deploy/demo/vault/orders.sql");

/// The servers that run; stopped when dropped.
#[derive(Default)]
pub(crate) struct Outside {
    vault: Option<Bao>,
    pg: Option<Postgres>,
    ca: PathBuf,
}

struct Bao {
    server: OpenBao,
    role_id: String,
    secret_id: PathBuf,
    root_token: PathBuf,
}

impl Outside {
    /// Starts what is asked for and sets it up; `tools`: where OpenBao is, if it is asked for.
    pub(crate) async fn start(
        layout: &Layout,
        tools: Option<&Path>,
        pg: bool,
        accounts: &Accounts,
    ) -> Result<Self, Failure> {
        let Some(tools) = tools else { return Ok(Self::default()) };
        let folder = layout.root().join("vault");
        let failed = |e: std::io::Error| Failure::failed("UNAVAILABLE", e.to_string());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let tls = ServerTls::make(&folder).map_err(failed)?;
        let pg = match pg {
            true => {
                let password = uuid::Uuid::new_v4().simple().to_string();
                let server = Postgres::start(&password, Some(&tls)).map_err(failed)?;
                server.sql(ORDERS_SQL).map_err(failed)?;
                Some(server)
            }
            false => None,
        };
        let server = OpenBao::start(tools, &folder, &tls).map_err(failed)?;
        let vault = setup(&folder, server, &tls, pg.as_ref(), accounts).await?;
        Ok(Self { vault: Some(vault), pg, ca: tls.ca })
    }

    /// Process ids, for whoever must end them.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let vault = self.vault.iter().map(|v| v.server.pid());
        vault.chain(self.pg.iter().map(Postgres::pid)).collect()
    }

    /// Sections of credential-vault's configuration.
    pub(crate) fn credential_vault(&self) -> String {
        let Some(vault) = &self.vault else { return String::new() };
        let path = |path: &Path| toml_string(&path.display().to_string());
        let mut text = self.section(&vault.server, CREDENTIAL_VAULT);
        let _ = writeln!(
            text,
            "[vault.auth]\nmethod = \"approle\"\nrole_id = {}\nsecret_id_file = {}",
            toml_string(&vault.role_id),
            path(&vault.secret_id)
        );
        text
    }

    /// Sections of the connector's configuration.
    pub(crate) fn connector(&self) -> String {
        self.vault.as_ref().map_or_else(String::new, |vault| self.section(&vault.server, CONNECTOR))
    }

    fn section(&self, server: &OpenBao, from: &str) -> String {
        format!(
            "[vault]\naddress = \"{}\"\nca = {}\nlocal_address = \"{from}\"\n",
            server.address(),
            toml_string(&self.ca.display().to_string())
        )
    }

    /// Port of PostgreSQL.
    pub(crate) fn pg_port(&self) -> Option<u16> {
        self.pg.as_ref().map(Postgres::port)
    }

    /// The CA of the servers, for the connector's egress.
    pub(crate) fn extra_root(&self) -> Option<&Path> {
        self.pg.as_ref().map(|_| self.ca.as_path())
    }

    /// Where Vault keeps a credential of the demo tenant, if it does.
    pub(crate) fn source(&self, credential: &str) -> Option<VaultSource> {
        self.vault.as_ref()?;
        let (engine, way) = match credential {
            "crm-token" => (VaultEngine::Kv2, HandOver::Wrapped),
            "sms-token" => (VaultEngine::Kv2, HandOver::Scoped),
            ORDERS if self.pg.is_some() => (VaultEngine::Database, HandOver::Wrapped),
            _ => return None,
        };
        Some(VaultSource { engine: engine.into(), hand_over: way.into(), ..VaultSource::default() })
    }

    /// What the ready file tells of Vault.
    pub(crate) fn vault_context(&self) -> Option<Vault> {
        self.vault.as_ref().map(|vault| Vault {
            address: vault.server.address(),
            ca: self.ca.clone(),
            audit_log: vault.server.audit_log().to_owned(),
            root_token_file: vault.root_token.clone(),
        })
    }

    /// What the ready file tells of PostgreSQL.
    pub(crate) fn pg_context(&self) -> Option<Pg> {
        self.pg.as_ref().map(|pg| Pg { dsn: pg.dsn() })
    }
}

/// Initializes, unseals, applies the operator's files, and puts the demo tenant's secrets in.
async fn setup(
    folder: &Path,
    server: OpenBao,
    tls: &ServerTls,
    pg: Option<&Postgres>,
    accounts: &Accounts,
) -> Result<Bao, Failure> {
    let config = Config {
        address: server.address(),
        ca: tls.ca.clone(),
        namespace: None,
        auth: None,
        timeout_ms: 20_000,
        local_address: None,
        plain_loopback: false,
    };
    let files = folder.join("setup");
    for (name, text) in SETUP {
        let file = files.join(name);
        let parent = file.parent().unwrap_or(&files);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&file, text)).map_err(stored)?;
    }
    let fresh = Operator::new(config.clone(), None).map_err(said)?.initialize().await.map_err(said)?;
    let operator = Operator::new(config, Some(fresh.root.clone())).map_err(said)?;
    operator.unseal(&fresh.key).await.map_err(said)?;
    let (own, connector) = (format!("{CREDENTIAL_VAULT}/32"), format!("{CONNECTOR}/32"));
    let values = [("CREDENTIAL_VAULT_CIDR", own.as_str()), ("CONNECTOR_CIDR", connector.as_str())];
    operator.apply(&files, &values).await.map_err(said)?;
    secrets(&operator, &files, accounts).await?;
    if let Some(pg) = pg {
        database(&operator, pg).await?;
    }
    let role = "auth/approle/role/credential-vault";
    let role_id = text(&operator.read(&format!("{role}/role-id")).await.map_err(said)?, "/data/role_id")?;
    let made = operator.write(&format!("{role}/secret-id"), &json!({})).await.map_err(said)?;
    let (secret_id, root_token) = (folder.join("secret-id"), folder.join("root-token"));
    private(&folder.join("unseal-key"), fresh.key.expose().as_bytes()).map_err(stored)?;
    private(&secret_id, text(&made, "/data/secret_id")?.as_bytes()).map_err(stored)?;
    private(&root_token, fresh.root.expose().as_bytes()).map_err(stored)?;
    Ok(Bao { server, role_id, secret_id, root_token })
}

async fn secrets(operator: &Operator, files: &Path, accounts: &Accounts) -> Result<(), Failure> {
    for (name, value) in accounts.credentials() {
        let way = match name {
            "crm-token" => HandOver::Wrapped,
            "sms-token" => HandOver::Scoped,
            _ => continue,
        };
        let body = json!({"data": {"value": value}});
        // The engine prepares itself for a moment after it was mounted.
        let mut tries = 0;
        while let Err(error) = operator.write(&format!("secret/data/{TENANT}/{name}"), &body).await {
            tries += 1;
            if tries > 100 {
                return Err(said(error));
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        if way == HandOver::Scoped {
            let policy = scoped_policy(TENANT, name).map_err(said)?;
            let values = [("TENANT", TENANT), ("CREDENTIAL", name)];
            operator.policy(&policy, &files.join("policies/scoped-kv2.hcl"), &values).await.map_err(said)?;
        }
    }
    Ok(())
}

async fn database(operator: &Operator, pg: &Postgres) -> Result<(), Failure> {
    let filled = |text: &str| -> Result<Value, Failure> {
        let text = text
            .replace("${PG_PORT}", &pg.port().to_string())
            .replace("${PG_PASSWORD}", pg.password())
            .replace("${TENANT}", TENANT);
        serde_json::from_str(&text).map_err(|e| Failure::failed("INTERNAL", e.to_string()))
    };
    operator.write("database/config/orders", &filled(DATABASE_CONFIG)?).await.map_err(said)?;
    let role = format!("database/roles/{TENANT}--{ORDERS}");
    operator.write(&role, &filled(DATABASE_ROLE)?).await.map_err(said)?;
    Ok(())
}

fn text(answer: &Value, pointer: &str) -> Result<String, Failure> {
    let found = answer.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
    found.ok_or_else(|| Failure::failed("INTERNAL", format!("Vault answered without `{pointer}`")))
}

fn said(error: exequatur_vault::Error) -> Failure {
    Failure::failed("UNAVAILABLE", format!("cannot set Vault up: {error}"))
}

fn stored(error: std::io::Error) -> Failure {
    Failure::failed("STORAGE_FAILED", format!("cannot write Vault's files: {error}"))
}
