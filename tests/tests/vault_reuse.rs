//! How many actions one hand-over serves, and an engine that computes: counted in Vault's own audit log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::path::Path;
use std::time::Duration;

use exequatur_proto::statement::v1::{Envelope, Outcome};
use exequatur_testkit::eventually;
use prost::Message as _;
use serde_json::{Value as Json, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};
use vault_world::World;

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];
const SOON: Duration = Duration::from_secs(20);

fn put(world: &World, reuse: &str) -> Json {
    let put = ["credential", "put", "orders-reader", "--vault", "database", "--hand-over", "wrapped"];
    world.scene.plane.cli(&[put.as_slice(), &["--reuse", reuse]].concat()).ok()
}

/// One query in a run; the lease at Vault that the connector's signed outcome names.
fn query(world: &World, token: &Path) -> String {
    let plan = world.scene.plan("db.query", &json!({"customer": "117"}));
    let answer = world.scene.plane.propose(token, &plan, &["--wait", "--timeout", "60s"]).json;
    assert_eq!(answer["actions"][0]["state"], "SUCCEEDED", "{answer}");
    let digest = answer["digest"].as_str().unwrap();
    let journal = world.scene.plane.data().join("connector/zone.db");
    let outcome: Vec<u8> = world.runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(journal).read_only(true);
        let mut journal = SqliteConnection::connect_with(&options).await.unwrap();
        let query = sqlx::query_scalar("SELECT outcome FROM journal WHERE lower(hex(plan_digest)) = ?");
        query.bind(digest).fetch_one(&mut journal).await.unwrap()
    });
    let envelope = Envelope::decode(outcome.as_slice()).unwrap();
    let outcome = Outcome::decode(envelope.payload.as_slice()).unwrap();
    assert_eq!((outcome.leases.len(), outcome.vault_leases.len()), (1, 1), "{outcome:?}");
    outcome.vault_leases[0].clone()
}

/// Requests that the two zones made of Vault; what keeps a login alive is none.
fn calls(world: &World) -> usize {
    let of_zones = |entry: &&Json| {
        let path = entry["request"]["path"].as_str().unwrap_or_default();
        entry["type"] == "request"
            && !path.starts_with("auth/token/renew")
            && !path.starts_with("auth/approle")
            && !entry["auth"]["policies"].as_array().is_some_and(|p| p.contains(&json!("root")))
    };
    world.audit().iter().filter(of_zones).count()
}

fn users(world: &World, expected: &str) {
    eventually(&format!("{expected} database users"), SOON, || {
        (world.dynamic_users() == expected).then_some(())
    });
}

#[test]
fn one_hand_over_serves_what_the_catalog_lets_it() {
    let world = World::start();
    let plane = &world.scene.plane;
    let (first_run, first) = plane.run_token(&["db.query"]);
    let (_, second) = plane.run_token(&["db.query"]);

    // Per action, the default: each has its own user, and none stays.
    assert_ne!(query(&world, &first), query(&world, &first));
    users(&world, "0");

    // Until expiry: one user, over runs, and Vault hears nothing of the second and third action.
    put(&world, "until-expiry");
    let lease = query(&world, &first);
    let before = calls(&world);
    assert!(before > 0);
    assert_eq!((query(&world, &first), query(&world, &second)), (lease.clone(), lease.clone()));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(calls(&world), before, "no call of Vault");
    users(&world, "1");

    // Ended at Vault behind everybody's back: the first attempt is refused, the second has a new user.
    world.write("sys/leases/revoke", &json!({"lease_id": lease, "sync": true}));
    users(&world, "0");
    let ended = lease;
    let lease = query(&world, &second);
    assert_ne!(lease, ended);
    users(&world, "1");

    // Rotated: the next action has a new user, and the old one goes.
    put(&world, "per-run");
    let mine = query(&world, &first);
    assert_ne!(mine, lease);
    users(&world, "1");
    assert_eq!(query(&world, &first), mine);
    // Another run does not get it; a connector that died has lost it.
    let other = query(&world, &second);
    assert_ne!(other, mine);
    users(&world, "2");
    plane.kill("connector");
    assert_ne!(query(&world, &second), other);
    users(&world, "3");

    // A revoked run: what its connector holds open is closed and revoked.
    let third = query(&world, &first);
    assert_ne!(third, mine, "the connector that knew it is gone");
    users(&world, "4");
    assert_eq!(plane.cli(&["run", "revoke", &first_run]).code, 0);
    users(&world, "3");

    let (code, said) = world.scene.verified();
    assert_eq!(code, 0, "{said}");
    let (root, audit) = (plane.ready().text("/root_key"), plane.ready().text("/vault/audit_log"));
    let evidence = plane.folder().join("evidence.jsonl");
    let said = plane.cli(&[
        "ledger",
        "verify",
        evidence.to_str().unwrap(),
        "--root-key",
        &root,
        "--vault-audit",
        &audit,
    ]);
    assert_eq!(said.code, 0, "{}", said.stdout);
    let counted = said.json["vault"].as_array().unwrap();
    let orders = counted.iter().find(|c| c["credential"] == "orders-reader").unwrap();
    assert_eq!((&orders["read"], &orders["leased"]), (&json!(8), &json!(8)), "of twelve attempts");
}

#[test]
fn reuse_is_refused_where_a_rotated_value_would_be_missed() {
    let world = World::start();
    let plane = &world.scene.plane;
    let put = |more: &[&str]| {
        let put = ["credential", "put", "crm-token", "--hand-over", "wrapped", "--vault"];
        plane.cli(&[put.as_slice(), more].concat())
    };
    for refused in [["kv2", "--reuse", "per-run"], ["totp", "--reuse", "until-expiry"]] {
        let said = put(&refused);
        assert_eq!(said.json["error"]["metadata"]["field"], "vault.reuse", "{}", said.stdout);
    }
    assert_eq!(put(&["kv2", "--reuse", "per-run", "--kv-version", "1"]).code, 0);
    let read = |id: &str| {
        let plan = world.scene.propose("crm.read", &json!({"id": id}));
        world.scene.until(&plan, &ENDS)["state"].clone()
    };
    assert_eq!((read("117"), read("118")), (json!("SUCCEEDED"), json!("SUCCEEDED")));
    let path = "secret/data/demo/crm-token";
    let reads = |world: &World| {
        world
            .audit()
            .iter()
            .filter(|e| {
                e["type"] == "request" && e["request"]["path"] == path && e["request"]["operation"] == "read"
            })
            .count()
    };
    assert_eq!(reads(&world), 1);
    passcode(&world);
}

/// A code that Vault computes is sent beside the token, and is the right one.
fn passcode(world: &World) {
    let plane = &world.scene.plane;
    world
        .write("totp/keys/demo--crm-otp", &json!({"generate": true, "issuer": "crm", "account_name": "bot"}));
    let folder = plane.folder();
    let text = std::fs::read_to_string(plane.data().join("tenant/crm.read.yaml")).unwrap();
    let text = text.replace("tool: crm.read", "tool: crm.guarded").replace(
        "timeout: 10s",
        "  - {name: crm-otp, as: {header: x-passcode}, attestation: auto}\ntimeout: 10s",
    );
    std::fs::write(folder.join("guarded.yaml"), text).unwrap();
    let rules = std::fs::read_to_string(plane.data().join("tenant/rules.yaml")).unwrap();
    let rules = rules.replace("tool: crm.read", "tool: crm.*");
    std::fs::write(folder.join("rules.yaml"), rules).unwrap();
    let run = |arguments: &[&str]| {
        let said = plane.cli(arguments);
        assert_eq!(said.code, 0, "{arguments:?} {}", said.stdout);
    };
    run(&["tool", "apply", folder.join("guarded.yaml").to_str().unwrap()]);
    run(&["policy", "apply", folder.join("rules.yaml").to_str().unwrap()]);
    run(&["credential", "put", "crm-otp", "--vault", "totp", "--hand-over", "wrapped"]);
    let (_, token) = plane.run_token(&["crm.guarded"]);
    let plan = world.scene.plan("crm.guarded", &json!({"id": "119"}));
    let answer = plane.propose(&token, &plan, &["--wait", "--timeout", "60s"]).json;
    assert_eq!(answer["actions"][0]["state"], "SUCCEEDED", "{answer}");
    let seen = plane.providers().of("crm");
    let header = |request: &Json| {
        let headers = request["headers"].clone();
        headers.as_object().and_then(|h| h.get("x-passcode").cloned()).unwrap_or_default()
    };
    let codes: Vec<String> = seen.iter().filter_map(|r| header(r).as_str().map(ToOwned::to_owned)).collect();
    assert_eq!(codes.len(), 1, "{seen:?}");
    let valid = world.write("totp/code/demo--crm-otp", &json!({"code": codes[0]}));
    assert_eq!(valid["data"]["valid"], true, "{valid}");
}
