//! A plane over a real OpenBao and a real PostgreSQL, with an operator's look at both.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod front;

use std::collections::BTreeSet;
use std::process::Command;

use exequatur_testkit::Scene;
use exequatur_vault::Token;
use exequatur_vault::setup::Operator;
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

/// The plane and a runtime for the calls of tests.
pub(crate) struct World {
    pub(crate) scene: Scene,
    pub(crate) runtime: Runtime,
}

impl World {
    pub(crate) fn start() -> Self {
        let scene = Scene::with(&["--vault", "openbao", "--pg"]);
        Self { scene, runtime: Runtime::new().unwrap() }
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

    /// A server before OpenBao that the zones speak to from now on.
    pub(crate) fn front(&self) -> front::Front {
        exequatur_identity::install_crypto();
        let (plane, real) = (&self.scene.plane, self.scene.plane.ready().text("/vault/address"));
        let front = self.runtime.block_on(front::Front::start(real.clone(), &plane.data().join("vault")));
        for zone in ["credential-vault", "connector"] {
            let file = plane.data().join(zone).join("zone.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(&real), "{text}");
            std::fs::write(&file, text.replace(&real, &format!("https://{}", front.address))).unwrap();
            plane.kill(zone);
        }
        front
    }

    pub(crate) fn doctor(&self) -> (i32, Json) {
        let said = self.scene.plane.cli(&["doctor"]);
        (said.code, said.json)
    }
}
