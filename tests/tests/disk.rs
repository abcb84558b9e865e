//! A full disk at each zone's log, one after the other: a clear refusal or a wait, nothing lost, nothing
//! half done, and no repair by hand once there is space again (rows S46 and the limits of design 6).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::process::Command;
use std::time::Duration;

use exequatur_testkit::{Scene, eventually};
use serde_json::json;

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];

/// A zone whose files cannot grow, until it is dropped.
struct Full<'a> {
    scene: &'a Scene,
    zone: &'static str,
    pid: i32,
}

fn limit(pid: i32, bytes: &str) {
    // Only the soft limit, so that it can be lifted again.
    let done = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:unlimited")])
        .status()
        .unwrap();
    assert!(done.success());
}

impl<'a> Full<'a> {
    fn of(scene: &'a Scene, zone: &'static str) -> Self {
        let pid = scene.plane.ready().pid(zone);
        limit(pid, "1");
        Self { scene, zone, pid }
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        limit(self.pid, "unlimited");
        if !std::thread::panicking() {
            assert_eq!(self.scene.plane.ready().pid(self.zone), self.pid, "{} lived on", self.zone);
        }
    }
}

#[test]
fn governance_and_approval_refuse_and_keep_what_they_had() {
    let scene = Scene::new();
    let order = scene.plan("sms.send", &json!({"to": "+15550150", "body": "Hello"}));
    let full = Full::of(&scene, "governance");
    let refused = scene.plane.propose(&scene.token, &order, &[]);
    assert_eq!(refused.reason(), "STORAGE_FAILED", "{}", refused.stdout);
    assert_eq!((&refused.json["error"]["retryable"], refused.code), (&json!(true), 6), "{}", refused.stdout);
    assert_eq!(refused.json["error"]["effect"], "none");
    drop(full);
    let plan = scene.plane.propose(&scene.token, &order, &[]).json["plan"].as_str().unwrap().to_owned();
    let approval = scene.plane.approval_of(&plan);

    let full = Full::of(&scene, "approval");
    let refused = scene.plane.cli(&["inbox", "approve", &approval]);
    assert_eq!(refused.reason(), "STORAGE_FAILED", "{}", refused.stdout);
    drop(full);
    assert_eq!(scene.until(&plan, &["AWAITING_APPROVAL"])["state"], "AWAITING_APPROVAL");
    scene.approve(&plan);
    assert_eq!(scene.until(&plan, &ENDS)["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550150"), 1);
    let (code, said) = scene.verified();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_full_connector_or_vault_sends_nothing_until_it_can_write() {
    let scene = Scene::new();
    for (zone, to) in [("connector", "15550151"), ("credential-vault", "15550152")] {
        let full = Full::of(&scene, zone);
        let plan = scene.sms(&format!("+{to}"));
        std::thread::sleep(Duration::from_secs(2));
        let waits = scene.until(&plan, &["READY", "EXECUTING"]);
        assert_eq!(scene.seen("sms", to), 0, "{zone}: {waits}");
        drop(full);
        assert_eq!(scene.until(&plan, &ENDS)["state"], "SUCCEEDED", "{zone}");
        assert_eq!(scene.seen("sms", to), 1, "{zone}");
    }
    let (code, said) = scene.verified();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn an_outcome_that_cannot_be_written_is_never_a_second_send() {
    let scene = Scene::new();
    scene.plane.providers().fault(&json!({"provider": "sms", "delay_ms": 3000}));
    let plan = scene.sms("+15550153");
    eventually("the provider has it", Duration::from_secs(20), || {
        (scene.seen("sms", "15550153") == 1).then_some(())
    });
    let full = Full::of(&scene, "connector");
    std::thread::sleep(Duration::from_secs(4));
    // The answer came and could not be recorded: nothing is said about it, and nothing else starts.
    let waits = scene.until(&plan, &["EXECUTING", "IN_DOUBT"]);
    assert_ne!(waits["state"], "SUCCEEDED");
    let next = scene.sms("+15550154");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(scene.seen("sms", "15550154"), 0);
    drop(full);
    let ended = scene.until(&plan, &["SUCCEEDED", "IN_DOUBT", "FAILED"]);
    assert_ne!(ended["state"], "FAILED", "{ended}");
    assert_eq!(scene.seen("sms", "15550153"), 1);
    assert_eq!(scene.until(&next, &ENDS)["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550154"), 1);
}
