//! The plane over a real OpenBao and a real PostgreSQL: each way of handing a credential over, what is left
//! behind afterwards, and a Vault that is sealed in between.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::path::Path;
use std::time::Duration;

use exequatur_testkit::eventually;
use exequatur_vault::{Paths, engine};
use serde_json::{Value as Json, json};

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];

mod vault_world;

use vault_world::World;

fn secrets(accounts: &Path) -> Vec<String> {
    let accounts: Json = serde_json::from_slice(&std::fs::read(accounts).unwrap()).unwrap();
    ["/crm/token", "/sms/token"]
        .iter()
        .map(|at| accounts.pointer(at).unwrap().as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_hand_over_works_and_leaves_nothing_behind() {
    let world = World::start();
    let scene = &world.scene;
    let (code, said) = world.doctor();
    assert_eq!((code, &said["ok"]), (0, &json!(true)), "{said}");

    // Wrapped, dynamic and wrapped, scoped.
    let read = scene.propose("crm.read", &json!({"id": "117"}));
    assert_eq!(scene.until(&read, &ENDS)["state"], "SUCCEEDED");
    let query = scene.propose("db.query", &json!({"customer": "117"}));
    let ended = scene.until(&query, &ENDS);
    assert_eq!(ended["state"], "SUCCEEDED", "{ended}");
    let rows: Json = serde_json::from_str(ended["result"].as_str().unwrap()).unwrap();
    assert_eq!((&rows["row_count"], &rows["rows"][0]["item"]), (&json!(2), &json!("Lamp")));
    let hostile = scene.propose("db.query", &json!({"customer": "117' OR '1'='1"}));
    let ended = scene.until(&hostile, &ENDS);
    assert_eq!(ended["result"], json!("{\"row_count\":0,\"rows\":[]}"), "{ended}");
    let text = scene.sms("+15550160");
    assert_eq!(scene.until(&text, &ENDS)["state"], "SUCCEEDED");

    // The database users are gone, by a revocation and not by their time to live.
    eventually("the users are gone", Duration::from_secs(20), || {
        (world.dynamic_users() == "0").then_some(())
    });
    let audit = world.audit();
    let requests = |path: &str| {
        let of = |entry: &&Json| entry["type"] == "request" && entry["request"]["path"] == path;
        audit.iter().filter(of).cloned().collect::<Vec<Json>>()
    };
    assert_eq!(requests("sys/leases/revoke").len(), 2);
    // credential-vault never reads plainly; the connector alone reads what is scoped.
    let wrapped = requests("secret/data/demo/crm-token");
    let asked = wrapped.iter().find(|e| e["request"]["operation"] == "read").unwrap();
    assert!(asked["request"]["wrap_ttl"].as_i64().unwrap() > 0, "{asked}");
    assert_eq!(asked["request"]["remote_address"], "127.0.0.1");
    let scoped = requests("secret/data/demo/sms-token");
    let read: Vec<&Json> = scoped.iter().filter(|e| e["request"]["operation"] == "read").collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0]["request"]["remote_address"], "127.0.0.2");

    // The provider saw the secrets, and nothing that agents, people or zones keep holds one.
    let data = scene.plane.data();
    let secrets = secrets(&data.join("demo-providers/accounts.json"));
    let seen = scene.plane.providers().of("crm");
    assert!(seen.iter().any(|r| r.to_string().contains(&secrets[0])), "the search would find it");
    for zone in ["governance", "approval", "credential-vault", "connector"] {
        for entry in std::fs::read_dir(data.join(zone)).unwrap() {
            let content = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            for secret in &secrets {
                assert!(!content.windows(secret.len()).any(|w| w == secret.as_bytes()), "{zone}");
            }
        }
    }
    let (code, said) = scene.verified();
    assert_eq!(code, 0, "{said}");
    counted(&world);
}

/// Vault's audit log against the evidence: equal, until credential-vault asks once more by itself.
fn counted(world: &World) {
    let plane = &world.scene.plane;
    let ready = plane.ready();
    let evidence = plane.folder().join("evidence.jsonl");
    let (root, audit) = (ready.text("/root_key"), ready.text("/vault/audit_log"));
    let evidence = evidence.to_str().unwrap();
    let verify = || plane.cli(&["ledger", "verify", evidence, "--root-key", &root, "--vault-audit", &audit]);
    let said = verify();
    assert_eq!(said.code, 0, "{}", said.stdout);
    let of = |name: &str| {
        let all = said.json["vault"].as_array().unwrap();
        all.iter().find(|r| r["credential"] == name).cloned().unwrap()
    };
    assert_eq!(of("crm-token"), json!({"credential": "crm-token", "read": 1, "minted": 0, "leased": 1}));
    assert_eq!(of("sms-token"), json!({"credential": "sms-token", "read": 1, "minted": 1, "leased": 1}));
    assert_eq!(of("orders-reader")["read"], 2);

    let secret_id = plane.data().join("vault/secret-id");
    let config = json!({
        "address": ready.text("/vault/address"), "ca": ready.text("/vault/ca"),
        "auth": {"method": "approle", "role_id": world.role_id(), "secret_id_file": secret_id},
    });
    let stolen = async {
        let path = Paths::default().of(engine("kv2").unwrap(), "demo", "crm-token").unwrap();
        let client = exequatur_vault::Client::new(serde_json::from_value(config).unwrap()).unwrap();
        client.read_wrapped(&path, None, 30).await.unwrap();
    };
    world.runtime.block_on(stolen);
    let said = verify();
    assert_eq!((said.code, &said.json["valid"]), (1, &json!(false)), "{}", said.stdout);
    assert_eq!(said.json["first_fault"]["zone"], "credential-vault");
}

#[test]
fn a_sealed_vault_burns_no_approval_and_a_rotated_value_is_the_next_one() {
    let world = World::start();
    let scene = &world.scene;
    world.seal();
    let (code, said) = world.doctor();
    assert_eq!(code, 1);
    let vault = said["checks"].as_array().unwrap().iter().find(|c| c["name"] == "vault").unwrap();
    assert!(vault["detail"].as_str().unwrap().contains("sealed"), "{vault}");
    let text = scene.sms("+15550161");
    std::thread::sleep(Duration::from_secs(2));
    let waits = scene.until(&text, &["READY", "EXECUTING"]);
    assert_eq!(scene.seen("sms", "15550161"), 0, "{waits}");
    world.unseal();
    assert_eq!(scene.until(&text, &ENDS)["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550161"), 1);

    // The provider refuses what Vault holds now: the next attempt takes the newest value, not a kept one.
    world.write("secret/data/demo/crm-token", &json!({"data": {"value": "rotated-elsewhere"}}));
    let read = scene.propose("crm.read", &json!({"id": "117"}));
    assert_eq!(scene.until(&read, &ENDS)["state"], "FAILED");
    let right = secrets(&scene.plane.data().join("demo-providers/accounts.json"))[0].clone();
    world.write("secret/data/demo/crm-token", &json!({"data": {"value": right}}));
    let read = scene.propose("crm.read", &json!({"id": "118"}));
    assert_eq!(scene.until(&read, &ENDS)["state"], "SUCCEEDED");
}
