//! Vault misbehaves, end to end: each time the action tells why in a typed word, nothing is sent, no approval
//! is spent, a failing Vault is left alone, and the same approval is executed once it is well again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::time::{Duration, Instant};

use exequatur_testkit::eventually;
use exequatur_vault::{Client, Paths, engine};
use serde_json::{Value as Json, json};
use vault_world::World;
use vault_world::front::Does;

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];
const WHILE: Duration = Duration::from_secs(60);

/// Waits until an action that has not ended names a reason.
fn waits(world: &World, plan: &str) -> Json {
    eventually("the action says why it waits", WHILE, || {
        let now = world.scene.plane.plan(&world.scene.token, plan)["actions"][0].clone();
        assert!(!ENDS.contains(&now["state"].as_str().unwrap()), "{now}");
        now["reason"].as_str().is_some_and(|reason| !reason.is_empty()).then_some(now)
    })
}

fn ended(world: &World, plan: &str) -> Json {
    world.scene.until(plan, &ENDS)
}

/// Approved texts that wait for Vault are sent once each, once it is well.
#[test]
fn a_vault_that_fails_spends_no_approval_and_is_left_alone() {
    let world = World::start();
    let front = world.front();
    let faults = [
        Does::Status(429),
        Does::Status(500),
        Does::Status(503),
        Does::Garbage,
        Does::Hang,
        Does::Late(Duration::from_secs(30)),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let number = format!("1555016{number}");
        front.does(fault.clone());
        let start = Instant::now();
        let plan = world.scene.sms(&format!("+{number}"));
        let waiting = waits(&world, &plan);
        assert_eq!(waiting["reason"], "UNAVAILABLE", "{fault:?} {waiting}");
        assert_eq!(world.scene.seen("sms", &number), 0, "{fault:?}");
        let asked = front.asked(start, "/token/create/");
        assert!((1..=6).contains(&asked), "{fault:?}: {asked} calls");
        front.does(Does::Pass);
        let last = ended(&world, &plan);
        assert_eq!(last["state"], "SUCCEEDED", "{fault:?} {last}");
        assert_eq!(world.scene.seen("sms", &number), 1, "{fault:?}");
        // One approval, reserved for each attempt and committed once.
        assert!(front.asked(start, "/token/create/") <= 7, "{fault:?}");
    }
    // Too much is no outage: it would be too much again.
    front.does(Does::Flood);
    let plan = world.scene.sms("+15550169");
    let last = ended(&world, &plan);
    assert_eq!((&last["state"], &last["reason"]), (&json!("FAILED"), &json!("CREDENTIAL_NOT_GRANTED")));
    assert_eq!(world.scene.seen("sms", "15550169"), 0);
    let (code, said) = world.scene.verified();
    assert_eq!(code, 0, "{said}");
}

/// S38: somebody else opened the wrapping token, or put another in its place.
#[test]
fn a_wrapping_token_that_is_not_ours_alone_stops_the_action() {
    let world = World::start();
    let front = world.front();
    let other = Paths::default().of(engine("kv2").unwrap(), "demo", "sms-token").unwrap();
    let ready = world.scene.plane.ready();
    let config = json!({
        "address": ready.text("/vault/address"), "ca": ready.text("/vault/ca"),
        "auth": {"method": "approle", "role_id": world.role_id(),
            "secret_id_file": world.scene.plane.data().join("vault/secret-id")},
    });
    let swapped = world.runtime.block_on(async {
        let asker = Client::new(serde_json::from_value(config).unwrap()).unwrap();
        asker.read_wrapped(&other, None, 60).await.unwrap().token.expose().to_owned()
    });
    for fault in [Does::Open, Does::Swap(swapped)] {
        front.does(fault.clone());
        let plan = world.scene.propose("crm.read", &json!({"id": "117"}));
        let held = eventually("the action is on hold", WHILE, || {
            let now = world.scene.plane.plan(&world.scene.token, &plan)["actions"][0].clone();
            (now["reason"] == "OPERATOR_HOLD").then_some(now)
        });
        assert!(held["message"].as_str().unwrap().contains("rotate"), "{held}");
        let log = std::fs::read_to_string(world.scene.plane.data().join("connector/process.log")).unwrap();
        assert!(log.contains("security event"), "{fault:?}");
        assert!(world.scene.plane.providers().of("crm").is_empty(), "{fault:?}");
        front.does(Does::Pass);
        std::thread::sleep(Duration::from_secs(3));
        let still = world.scene.plane.plan(&world.scene.token, &plan)["actions"][0].clone();
        assert_eq!(still["reason"], "OPERATOR_HOLD", "only a person lets it go: {still}");
        assert_eq!(world.scene.plane.cli(&["plan", "cancel", &plan]).code, 0);
    }
    let plan = world.scene.propose("crm.read", &json!({"id": "117"}));
    assert_eq!(ended(&world, &plan)["state"], "SUCCEEDED");
}

/// What Vault holds, and what it lets us: no retry mends these, and an operator's hand does.
#[test]
fn what_vault_refuses_or_lacks_is_told_apart_from_an_outage() {
    let world = World::start();
    let secret = "secret/data/demo/crm-token";
    let right = world.runtime.block_on(world.vault().read(secret)).unwrap()["data"]["data"]["value"].clone();
    let read = || {
        let plan = world.scene.propose("crm.read", &json!({"id": "117"}));
        ended(&world, &plan)
    };
    let granted = |data: &Json| {
        world.write(secret, &json!({"data": data}));
        read()
    };
    for data in [
        json!({"other": right}),
        json!({"value": ""}),
        json!({"value": 7}),
        json!({"value": {"a": "b"}}),
        json!({"value": "x".repeat(64 * 1024 + 1)}),
        json!({"value": "two\nlines"}),
    ] {
        let refused = granted(&data);
        assert_eq!(refused["state"], "FAILED", "{refused}");
        assert_ne!(refused["reason"], "PROVIDER_REFUSED", "{refused}");
    }
    assert!(world.scene.plane.providers().of("crm").is_empty(), "nothing was sent");
    assert_eq!(granted(&json!({"value": right}))["state"], "SUCCEEDED");

    // Binary, by the field's name.
    let put = ["credential", "put", "crm-token", "--vault", "kv2", "--hand-over", "wrapped"];
    let field = [put.as_slice(), &["--field", "value_base64"]].concat();
    assert_eq!(world.scene.plane.cli(&field).code, 0);
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(right.as_str().unwrap());
    assert_eq!(granted(&json!({"value_base64": encoded}))["state"], "SUCCEEDED");
    assert_eq!(granted(&json!({"value_base64": "no base64!"}))["reason"], "CREDENTIAL_NOT_GRANTED");
    assert_eq!(world.scene.plane.cli(&put).code, 0);
    assert_eq!(granted(&json!({"value": right}))["state"], "SUCCEEDED");

    // Permission denied: the policy is taken away and given back.
    let policies = world.scene.plane.data().join("vault/setup/policies");
    let policy = std::fs::read_to_string(policies.join("credential-vault.hcl")).unwrap();
    let narrowed = policy.replace("secret/data/*", "secret/data/nobody/*");
    world.write("sys/policies/acl/credential-vault", &json!({"policy": narrowed}));
    let refused = read();
    assert_eq!((&refused["state"], &refused["reason"]), (&json!("FAILED"), &json!("CREDENTIAL_NOT_GRANTED")));
    world.write("sys/policies/acl/credential-vault", &json!({"policy": policy}));
    assert_eq!(read()["state"], "SUCCEEDED");

    // The login is revoked behind its back, while a dynamic user is held: the next action logs in anew.
    let list = world.runtime.block_on(world.vault().list("auth/token/accessors")).unwrap();
    for accessor in list["data"]["keys"].as_array().unwrap() {
        let body = json!({"accessor": accessor});
        let state = world.write("auth/token/lookup-accessor", &body);
        if state["data"]["policies"] == json!(["credential-vault"]) {
            world.write("auth/token/revoke-accessor", &body);
        }
    }
    let query = world.scene.propose("db.query", &json!({"customer": "117"}));
    assert_eq!(ended(&world, &query)["state"], "SUCCEEDED");
    assert_eq!(read()["state"], "SUCCEEDED");
}
