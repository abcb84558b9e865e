//! A zone's program that must not start, does not, and says why: exit 2 for bad configuration, 3 for
//! what keeps it from starting.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use exequatur_testkit::{Plane, eventually, program};

/// Runs a zone on a changed copy of its configuration; exit code and log.
fn start(plane: &Plane, zone: &str, change: &dyn Fn(String) -> String) -> (i32, String) {
    let file = plane.data().join(zone).join("zone.toml");
    let text = change(std::fs::read_to_string(file).unwrap());
    let copy = plane.folder().join("changed.toml");
    std::fs::write(&copy, text).unwrap();
    run(zone, &copy)
}

fn run(zone: &str, config: &Path) -> (i32, String) {
    let mut child = Command::new(program(zone))
        .arg("--config")
        .arg(config)
        .env_remove("EXEQUATUR_CONTEXT")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = eventually("the program ends", Duration::from_secs(20), || child.try_wait().unwrap());
    let log = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    (status.code().unwrap_or(-1), log)
}

#[test]
fn what_must_not_start_does_not() {
    let mut plane = Plane::start();
    let ready = plane.ready();
    assert_eq!(plane.down(), Some(0), "dev stops cleanly");
    for zone in ["governance", "approval", "credential-vault", "connector"] {
        let pid = ready.pid(zone);
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "`{zone}` outlived dev");
    }

    let (code, log) = start(&plane, "governance", &|t| format!("relam = \"x\"\n{t}"));
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("did you mean `realm`"), "{log}");

    let (code, log) =
        start(&plane, "approval", &|t| t.replace("mode = \"development\"", "mode = \"production\""));
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("development trust bundle"), "{log}");

    let (code, log) = start(&plane, "approval", &|t| t.replace("listen = \"127.0.0.1", "listen = \"0.0.0.0"));
    assert_eq!(code, 2, "{log}");

    let other = |t: String| t.replace("zones/governance/tls", "zones/approval/tls");
    let (code, log) = start(&plane, "governance", &other);
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("zone/approval"), "{log}");

    let keys = |t: String| t.replace("zones/approval/keys", "zones/governance/keys");
    let (code, log) = start(&plane, "approval", &keys);
    assert_eq!(code, 3, "{log}");

    let taken = TcpListener::bind(ready.endpoint("credential-vault")).unwrap();
    let (code, log) = start(&plane, "credential-vault", &|t| t);
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("cannot listen"), "{log}");
    drop(taken);

    let pki = plane.data().join("pki");
    let made = plane.cli(&["pki", "new-journal", "--pki", pki.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{} {}", made.stdout, made.stderr);
    let (code, log) = start(&plane, "connector", &|t| t);
    assert_eq!(code, 3, "{log}");
    assert!(log.contains("JOURNAL_MISMATCH"), "{log}");
}
