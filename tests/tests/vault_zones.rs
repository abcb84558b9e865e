//! What Vault holds and how it is handed over, when either is not as it should be: a secret of the wrong form,
//! a login without rights, a wrapping token that somebody swapped or opened.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_testkit::{Scene, VaultFault, eventually};
use serde_json::{Value as Json, json};
use vault_world::{ENDS, World};

/// A plan that a person approved fails with this reason, and nothing was sent or spent.
fn refused(world: &World, to: &str, what: &str) {
    refused_for(world, to, what, "CREDENTIAL_NOT_GRANTED");
}

fn refused_for(world: &World, to: &str, what: &str, reason: &str) {
    let scene = &world.scene;
    let plan = scene.sms(to);
    let ended = scene.until(&plan, &ENDS);
    assert_eq!(ended["state"], "FAILED", "{what}: {ended}");
    assert_eq!(ended["reason"], reason, "{what}: {ended}");
    assert_eq!(scene.seen("sms", to.trim_start_matches('+')), 0, "{what}");
    // The connector gives the reservation back after it has answered.
    eventually(&format!("{what}: the approval is given back"), Duration::from_secs(20), || {
        let state = world.approvals().pop()?;
        assert_ne!(state, "CONSUMED", "{what}");
        (state != "RESERVED").then_some(())
    });
}

fn sent(world: &World, to: &str) -> Json {
    let plan = world.scene.sms(to);
    let ended = world.scene.until(&plan, &ENDS);
    assert_eq!(world.scene.seen("sms", to.trim_start_matches('+')), 1, "{ended}");
    ended
}

#[test]
fn a_secret_of_the_wrong_form_is_never_sent() {
    let world = World::fronted();
    let right = world.sms_token();
    for (way, first) in [("wrapped", 400), ("scoped", 410)] {
        let to = |number: i32| format!("+15550{}", first + number);
        world.catalog("sms-token", way, "token");
        world.put("sms-token", &json!({"other": "left-behind"}));
        refused(&world, &to(0), "no such field");
        world.put("sms-token", &json!({"token": 7}));
        refused(&world, &to(1), "a number for a text");
        world.put("sms-token", &json!({"token": "x".repeat(64 * 1024 + 1)}));
        refused(&world, &to(2), "larger than the limit");
        // Longer than an answer may be; and it closes Vault for nobody.
        world.put("sms-token", &json!({"token": "x".repeat(600 * 1024)}));
        refused(&world, &to(3), "larger than an answer may be");
        world.catalog("sms-token", way, "token_base64");
        world.put("sms-token", &json!({"token_base64": "not base64"}));
        refused(&world, &to(4), "no base64");
        world.put("sms-token", &json!({"token_base64": STANDARD.encode(&right)}));
        assert_eq!(sent(&world, &to(5))["state"], "SUCCEEDED");
        assert!(password(&world.scene).ends_with(format!(":{right}").as_bytes()));
        // Bytes that fit no header are not bent until they do.
        world.put("sms-token", &json!({"token_base64": STANDARD.encode([0x80_u8, 0xff, 0x41])}));
        refused_for(&world, &to(6), "bytes that fit no header", "VALUE_DOES_NOT_FIT");
    }
    world.nothing_holds(right.as_bytes());
    assert_eq!(world.scene.verified().0, 0);
}

/// What the provider of text messages was last given as user and password.
fn password(scene: &Scene) -> Vec<u8> {
    let last = scene.plane.providers().of("sms").pop().unwrap();
    let header = last["headers"]["authorization"].as_str().unwrap_or_else(|| panic!("{last}"));
    STANDARD.decode(header.trim_start_matches("Basic ")).unwrap()
}

#[test]
fn a_client_without_rights_gets_nothing_and_burns_no_approval() {
    let world = World::fronted();
    assert_eq!(sent(&world, "+15550420")["state"], "SUCCEEDED");
    let policy = "sys/policies/acl/credential-vault";
    let whole = world.read(policy)["data"]["policy"].clone();
    let login = "path \"auth/token/lookup-self\" { capabilities = [\"read\"] }";
    world.write(policy, &json!({ "policy": login }));
    refused(&world, "+15550421", "the policy is taken away");
    world.write(policy, &json!({ "policy": whole }));
    assert_eq!(sent(&world, "+15550422")["state"], "SUCCEEDED");

    // The right path in a namespace that is another one, or none.
    world.write("sys/namespaces/elsewhere", &json!({}));
    let at = "local_address = \"127.0.0.1\"\n";
    for (number, name) in (15_550_423..).zip(["elsewhere", "nowhere"]) {
        let with = format!("{at}namespace = \"{name}\"\n");
        world.configure("credential-vault", at, &with);
        refused(&world, &format!("+{number}"), name);
        world.configure("credential-vault", &with, at);
    }
    assert_eq!(sent(&world, "+15550425")["state"], "SUCCEEDED");
    assert_eq!(world.scene.verified().0, 0);
}

#[test]
fn a_wrapping_token_that_was_swapped_or_opened_holds_the_action_until_a_person_looked() {
    let world = World::fronted();
    let scene = &world.scene;
    world.catalog("sms-token", "wrapped", "value");
    let path = "/v1/secret/data/demo/sms-token";
    let swapped = VaultFault::Swapped("/v1/secret/data/demo/crm-token");
    for (to, fault) in [("15550430", swapped), ("15550431", VaultFault::Opened)] {
        world.front().order(path, fault);
        let plan = scene.sms(&format!("+{to}"));
        let held = world.until_reason(&plan, "OPERATOR_HOLD");
        assert_eq!(held["state"], "READY", "{held}");
        let reads = || world.front().asked().iter().filter(|a| a.path == path).count();
        let before = reads();
        world.front().heal();
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(reads(), before, "it does not try again by itself");
        assert_eq!(scene.seen("sms", to), 0);
        let log = scene.plane.data().join("connector");
        assert!(mentions(&log, "security event"), "an alarm is raised");
        let released = scene.plane.cli(&["plan", "release", &plan, "0"]);
        assert_eq!(released.code, 0, "{} {}", released.stdout, released.stderr);
        assert_eq!(scene.until(&plan, &ENDS)["state"], "SUCCEEDED");
        assert_eq!(scene.seen("sms", to), 1);
    }
    world.nothing_holds(world.sms_token().as_bytes());
    assert_eq!(scene.verified().0, 0);
}

fn mentions(folder: &std::path::Path, text: &str) -> bool {
    let read = |entry: std::fs::DirEntry| std::fs::read(entry.path()).unwrap_or_default();
    let holds = |content: Vec<u8>| content.windows(text.len()).any(|part| part == text.as_bytes());
    std::fs::read_dir(folder).unwrap().any(|entry| holds(read(entry.unwrap())))
}
