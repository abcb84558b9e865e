//! The examples and how-to pages, run as their readers would run them. They need the tools that
//! `cargo xtask tools` installs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use exequatur_testkit::{Output, Plane, program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn tool(name: &str) -> PathBuf {
    let path = root().join(".tools/py/bin").join(name);
    assert!(path.exists(), "`{}` is missing: run `cargo xtask tools`", path.display());
    path
}

#[test]
fn the_python_agent_proposes_waits_and_sees_its_message_sent() {
    let plane = Plane::start();
    let folder = plane.folder().join("python");
    std::fs::create_dir(&folder).unwrap();
    let generated = Command::new(tool("python"))
        .args(["-m", "grpc_tools.protoc", "-I"])
        .arg(root().join("proto"))
        .arg(format!("--python_out={}", folder.display()))
        .arg(format!("--grpc_python_out={}", folder.display()))
        .args(["exequatur/access/v1/access.proto", "exequatur/plan/v1/plan.proto"])
        .status()
        .unwrap();
    assert!(generated.success());

    let agent = Command::new(program("exequatur"))
        .args(["run", "--scope", "sms.send", "--"])
        .arg(tool("python"))
        .arg(root().join("examples/python/agent.py"))
        .args(["+15550100", "Shift moved to 09:00"])
        .env("PYTHONPATH", &folder)
        .env("AGENT_TIMEOUT", "60")
        .env("EXEQUATUR_CONTEXT", plane.ready_file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let approval =
        exequatur_testkit::eventually("the message waits", std::time::Duration::from_secs(30), || {
            let inbox = plane.cli(&["inbox", "list"]).json;
            inbox["items"].as_array()?.first()?["approval"].as_str().map(ToOwned::to_owned)
        });
    let _ = plane.cli(&["inbox", "approve", &approval]).ok();
    let output = agent.wait_with_output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said["actions"][0]["state"], "SUCCEEDED");
    assert_eq!(plane.providers().of("sms").len(), 1);
    // The run ended with its program.
    let runs = plane.cli(&["run", "list"]).ok();
    assert_eq!(runs["runs"][0]["state"], "REVOKED");
}

#[test]
fn grpcurl_serves_an_operator_and_nobody_else() {
    let plane = Plane::start();
    let ready = plane.ready();
    let call = |identity: Option<&str>, arguments: &[&str]| {
        let mut command = Command::new(tool("grpcurl"));
        command.arg("-cacert").arg(ready.path("/ca"));
        if let Some(identity) = identity {
            command.arg("-cert").arg(ready.path(&format!("/{identity}/cert")));
            command.arg("-key").arg(ready.path(&format!("/{identity}/key")));
        }
        Output::of(command.args(arguments), b"")
    };
    let governance = ready.endpoint("governance");
    let listed = call(Some("operator"), &[&governance, "list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("exequatur.run.v1.RunService"), "{}", listed.stdout);
    let runs = call(
        Some("operator"),
        &["-d", r#"{"tenant":"demo"}"#, &governance, "exequatur.run.v1.RunService/ListRuns"],
    );
    assert_eq!(runs.code, 0, "{}", runs.stderr);
    let missing = call(
        Some("operator"),
        &["-d", r#"{"tenant":"demo","run":"none"}"#, &governance, "exequatur.run.v1.RunService/GetRun"],
    );
    assert_ne!(missing.code, 0);
    assert!(missing.stderr.contains("google.rpc.ErrorInfo"), "{}", missing.stderr);
    for zone in ["governance", "approval", "credential-vault", "connector"] {
        let healthy = call(Some("operator"), &[&ready.endpoint(zone), "grpc.health.v1.Health/Check"]);
        assert!(healthy.stdout.contains("SERVING"), "{zone}: {}", healthy.stderr);
    }
    let other = call(Some("reviewer"), &[&governance, "list"]);
    assert_ne!(other.code, 0, "a reviewer is no operator");
    assert_ne!(call(None, &[&governance, "list"]).code, 0, "without a certificate nothing answers");
}
