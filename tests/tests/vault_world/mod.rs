//! A plane over a real OpenBao and a real PostgreSQL, with an operator's look at both.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use exequatur_testkit::{Scene, VaultFront, eventually};
use exequatur_vault::Token;
use exequatur_vault::setup::Operator;
use serde_json::{Value as Json, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};
use tokio::runtime::Runtime;

pub(crate) const ENDS: [&str; 4] = ["SUCCEEDED", "FAILED", "REFUSED", "IN_DOUBT"];

/// The plane and a runtime for the calls of tests.
pub(crate) struct World {
    pub(crate) scene: Scene,
    pub(crate) runtime: Runtime,
    front: Option<VaultFront>,
}

impl World {
    pub(crate) fn start() -> Self {
        let scene = Scene::with(&["--vault", "openbao", "--pg"]);
        Self { scene, runtime: Runtime::new().unwrap(), front: None }
    }

    /// The same with a front between the zones and OpenBao.
    pub(crate) fn fronted() -> Self {
        let mut world = Self::start();
        let address = world.scene.plane.ready().text("/vault/address");
        let folder = world.scene.plane.data().join("vault");
        let front = VaultFront::start(address.trim_start_matches("https://"), &folder);
        let before = format!("\"{}\"", front.address());
        world.front = Some(front);
        for zone in ["credential-vault", "connector"] {
            world.configure(zone, &format!("\"{address}\""), &before);
        }
        world
    }

    pub(crate) fn front(&self) -> &VaultFront {
        self.front.as_ref().unwrap()
    }

    /// Changes a zone's configuration and has the zone started again.
    pub(crate) fn configure(&self, zone: &str, from: &str, to: &str) {
        let file = self.scene.plane.data().join(zone).join("zone.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "`{from}` is in {text}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        self.scene.plane.kill(zone);
    }

    pub(crate) fn read(&self, path: &str) -> Json {
        self.runtime.block_on(self.vault().read(path)).unwrap()
    }

    pub(crate) fn put(&self, credential: &str, data: &Json) {
        self.write(&format!("secret/data/demo/{credential}"), &json!({ "data": data }));
    }

    /// Where the catalog says that a credential is.
    pub(crate) fn catalog(&self, credential: &str, hand_over: &str, field: &str) {
        let arguments = ["credential", "put", credential, "--vault", "kv2", "--hand-over", hand_over];
        let said = self.scene.plane.cli(&[&arguments[..], &["--field", field]].concat());
        assert_eq!(said.code, 0, "{} {}", said.stdout, said.stderr);
    }

    /// The first action, once it says this reason.
    pub(crate) fn until_reason(&self, plan: &str, reason: &str) -> Json {
        eventually(&format!("the action says {reason}"), Duration::from_secs(60), || {
            let action = self.scene.plane.plan(&self.scene.token, plan)["actions"][0].clone();
            (action["reason"] == reason).then_some(action)
        })
    }

    /// States of approval's items, of which each was approved by a person, oldest first.
    pub(crate) fn approvals(&self) -> Vec<String> {
        let file = self.scene.plane.data().join("approval/zone.db");
        self.runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(file).read_only(true);
            let mut connection = options.connect().await.unwrap();
            let rows = sqlx::query("SELECT state FROM item ORDER BY rowid").fetch_all(&mut connection).await;
            rows.unwrap().iter().map(|row| row.get(0)).collect()
        })
    }

    /// What the provider of text messages takes for a password.
    pub(crate) fn sms_token(&self) -> String {
        let file = self.scene.plane.data().join("demo-providers/accounts.json");
        let accounts: Json = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        accounts.pointer("/sms/token").unwrap().as_str().unwrap().to_owned()
    }

    /// No file of the plane holds the secret: logs, databases, exports, Vault's audit log. The providers' own
    /// folder is where it must be.
    pub(crate) fn nothing_holds(&self, secret: &[u8]) {
        let _ = self.scene.verified();
        let providers = self.scene.plane.data().join("demo-providers");
        let holds = |folder: &Path| {
            let files = files(folder);
            let with = |file: &&PathBuf| {
                let content = std::fs::read(file).unwrap_or_default();
                content.windows(secret.len()).any(|part| part == secret)
            };
            files.iter().filter(with).cloned().collect::<Vec<_>>()
        };
        assert!(!holds(&providers).is_empty(), "the search finds what is there");
        let found: Vec<_> = holds(self.scene.plane.folder())
            .into_iter()
            .filter(|file| !file.starts_with(&providers))
            .collect();
        assert!(found.is_empty(), "{found:?}");
    }

    pub(crate) fn vault(&self) -> Operator {
        let ready = self.scene.plane.ready();
        let config = serde_json::from_value(json!({
            "address": ready.text("/vault/address"), "ca": ready.text("/vault/ca"), "timeout_ms": 20000,
        }))
        .unwrap();
        let token = std::fs::read_to_string(ready.text("/vault/root_token_file")).unwrap();
        let _inside = self.runtime.enter();
        Operator::new(config, Some(Token::new(token).unwrap())).unwrap()
    }

    pub(crate) fn write(&self, path: &str, body: &Json) -> Json {
        self.runtime.block_on(self.vault().write(path, body)).unwrap()
    }

    pub(crate) fn seal(&self) {
        self.write("sys/seal", &json!({}));
    }

    pub(crate) fn unseal(&self) {
        let key = std::fs::read_to_string(self.scene.plane.data().join("vault/unseal-key")).unwrap();
        self.runtime.block_on(self.vault().unseal(&Token::new(key).unwrap())).unwrap();
    }

    /// One value from the database, as its superuser.
    pub(crate) fn sql(&self, query: &str) -> String {
        let dsn = self.scene.plane.ready().text("/pg/dsn");
        let psql = Command::new("psql").args([&dsn, "-X", "-A", "-t", "-c", query]).output().unwrap();
        assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
        String::from_utf8(psql.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn dynamic_users(&self) -> String {
        self.user_names().len().to_string()
    }

    /// Users that Vault made.
    pub(crate) fn user_names(&self) -> BTreeSet<String> {
        let names = self.sql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'v-%'");
        names.lines().map(ToOwned::to_owned).collect()
    }

    /// Users whose statement sleeps now.
    pub(crate) fn sleeping(&self) -> BTreeSet<String> {
        let names = self
            .sql("SELECT usename FROM pg_stat_activity WHERE usename LIKE 'v-%' AND wait_event = 'PgSleep'");
        names.lines().map(ToOwned::to_owned).collect()
    }

    /// Leases of database users that Vault holds.
    pub(crate) fn live_leases(&self) -> BTreeSet<String> {
        let path = "sys/leases/lookup/database/creds/demo--orders-reader";
        let found = self.runtime.block_on(self.vault().list(path)).unwrap();
        let keys = found["data"]["keys"].as_array().cloned().unwrap_or_default();
        keys.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn audit(&self) -> Vec<Json> {
        let text = std::fs::read_to_string(self.scene.plane.ready().text("/vault/audit_log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn role_id(&self) -> String {
        let path = "auth/approle/role/credential-vault/role-id";
        let answer = self.runtime.block_on(self.vault().read(path)).unwrap();
        answer["data"]["role_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn doctor(&self) -> (i32, Json) {
        let said = self.scene.plane.cli(&["doctor"]);
        (said.code, said.json)
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => all.push(entry.path()),
            _ => {}
        }
    }
    all
}
