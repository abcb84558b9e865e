//! A Vault that fails, in every way that one can: what agents and people see, that nothing is sent, and that
//! the same approval serves afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::time::Duration;

use exequatur_testkit::{VaultFault, eventually};
use serde_json::json;
use vault_world::{ENDS, World};

const SEALED: &str = r#"{"errors":["Vault is sealed"]}"#;
const STANDBY: &str = r#"{"errors":["local node not active but active cluster node not found"]}"#;
const LATE: Duration = Duration::from_secs(30);

/// What fails, at which paths, how, and whose client meets it.
const OUTAGES: [(&str, &str, VaultFault, &str); 12] = [
    ("sealed", "/v1/", VaultFault::Answer(503, SEALED), "credential-vault"),
    ("standby", "/v1/", VaultFault::Answer(500, STANDBY), "credential-vault"),
    ("standby that sends on", "/v1/", VaultFault::Answer(307, ""), "credential-vault"),
    ("429", "/v1/auth/token/create", VaultFault::Answer(429, "{}"), "credential-vault"),
    ("500", "/v1/auth/approle/login", VaultFault::Answer(500, "{}"), "credential-vault"),
    (
        "a page of something else",
        "/v1/auth/token/create",
        VaultFault::Answer(200, "<html>"),
        "credential-vault",
    ),
    ("slow", "/v1/", VaultFault::Late(LATE), "credential-vault"),
    ("cut", "/v1/auth/token/create", VaultFault::Cut, "credential-vault"),
    ("503 to the connector", "/v1/secret/", VaultFault::Answer(503, "{}"), "connector"),
    ("429 to the connector", "/v1/secret/", VaultFault::Answer(429, "{}"), "connector"),
    ("the connector is cut off", "/v1/secret/", VaultFault::Cut, "connector"),
    ("hanging for the connector", "/v1/secret/", VaultFault::Hang, "connector"),
];

#[test]
fn an_outage_sends_nothing_and_spends_no_approval() {
    let world = World::fronted();
    let scene = &world.scene;
    for (number, (what, path, fault, zone)) in (15_550_300..).zip(OUTAGES) {
        // A fresh process: no login and no memory of the outage before.
        scene.plane.kill(zone);
        world.front().order(path, fault);
        let plan = scene.sms(&format!("+{number}"));
        let waits = world.until_reason(&plan, "UNAVAILABLE");
        assert!(["READY", "EXECUTING"].contains(&waits["state"].as_str().unwrap()), "{what}: {waits}");
        assert_eq!(scene.seen("sms", &number.to_string()), 0, "{what}");
        world.front().heal();
        scene.plane.kill(zone);
        let ended = scene.until(&plan, &ENDS);
        assert_eq!(ended["state"], "SUCCEEDED", "{what}: {ended}");
        assert_eq!(scene.seen("sms", &number.to_string()), 1, "{what}");
    }
    world.nothing_holds(world.sms_token().as_bytes());
    let (code, said) = scene.verified();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_login_that_died_behind_the_clients_back_is_made_again() {
    let world = World::fronted();
    let scene = &world.scene;
    let read = || {
        let plan = scene.propose("crm.read", &json!({"id": "117"}));
        assert_eq!(scene.until(&plan, &ENDS)["state"], "SUCCEEDED");
    };
    read();
    // Every login of the role is revoked at once.
    world.write("sys/leases/revoke-prefix/auth/approle/login", &json!({}));
    world.front().forget();
    read();
    let logins = world.front().asked().iter().filter(|a| a.path == "/v1/auth/approle/login").count();
    assert_eq!(logins, 1);

    // The login dies while an attempt holds a dynamic user: a new one ends that user's lease.
    let file = scene.plane.data().join("tenant/db.query.yaml");
    let slow = std::fs::read_to_string(file)
        .unwrap()
        .replace("WHERE customer = $1", "WHERE customer = $1 AND pg_sleep(2) IS NOT NULL");
    let changed = scene.plane.folder().join("slow.yaml");
    std::fs::write(&changed, &slow).unwrap();
    assert_eq!(scene.plane.cli(&["tool", "apply", changed.to_str().unwrap()]).code, 0);
    let query = scene.propose("db.query", &json!({"customer": "118"}));
    eventually("the user is there", Duration::from_secs(20), || (world.dynamic_users() == "1").then_some(()));
    world.write("sys/leases/revoke-prefix/auth/approle/login", &json!({}));
    let ended = scene.until(&query, &ENDS);
    assert!(["SUCCEEDED", "FAILED"].contains(&ended["state"].as_str().unwrap()), "{ended}");
    eventually("the user is gone", Duration::from_secs(20), || (world.dynamic_users() == "0").then_some(()));
}
