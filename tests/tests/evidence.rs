//! A running plane's own export under the verifier: genuine it is valid, touched it is not, and the CLI
//! says so with the exit codes of its reference.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::path::Path;

use exequatur_statement::PublicRoot;
use exequatur_testkit::{Output, Plane};
use exequatur_verify::verify;
use serde_json::{Value as Json, json};

const VALID: i32 = 0;
const INVALID: i32 = 1;
const CANNOT_TELL: i32 = 3;

/// One action that a person approved and one that a rule allowed, both done; then the export.
fn export(plane: &Plane) -> String {
    let (_, token) = plane.run_token(&["crm.read", "sms.send"]);
    let plan = json!({"context": "c", "idempotency_key": "evidence", "actions": [
        {"tool": "crm.read", "arguments": {"id": "117"}, "rationale": "r"},
        {"tool": "sms.send", "arguments": {"to": "+15550170", "body": "Hello"}, "rationale": "r"}]});
    let plan = plane.propose(&token, &plan, &[]).json["plan"].as_str().unwrap().to_owned();
    assert_eq!(plane.cli(&["inbox", "approve", &plane.approval_of(&plan)]).code, 0);
    for index in [0, 1] {
        let done = plane.until(&token, &plan, index, &["SUCCEEDED", "FAILED", "IN_DOUBT"]);
        assert_eq!(done["actions"][index]["state"], "SUCCEEDED", "{done}");
    }
    let file = plane.folder().join("evidence.jsonl");
    assert_eq!(plane.cli(&["ledger", "export", "--out", file.to_str().unwrap()]).code, 0);
    std::fs::read_to_string(file).unwrap()
}

fn check(plane: &Plane, content: &[u8], root: &Path) -> Output {
    let file = plane.folder().join("checked.jsonl");
    std::fs::write(&file, content).unwrap();
    plane.cli(&["ledger", "verify", file.to_str().unwrap(), "--root-key", root.to_str().unwrap()])
}

#[test]
fn an_export_is_valid_until_somebody_touches_it() {
    let plane = Plane::start();
    let genuine = export(&plane);
    let root = plane.ready().path("/root_key");
    let said = check(&plane, genuine.as_bytes(), &root);
    assert_eq!(said.code, VALID, "{}", said.stdout);
    assert_eq!(said.json["valid"], true);
    for zone in ["governance", "approval", "credential-vault", "connector"] {
        assert!(said.json["zones"][zone]["size"].as_u64().unwrap() > 0, "{zone} recorded something");
    }
    codes(&plane, &genuine, &root);
    dropped(&genuine, &root);
    flipped(&genuine, &root);
}

fn codes(plane: &Plane, genuine: &str, root: &Path) {
    for (content, code) in [
        ("", CANNOT_TELL),
        ("{}\n", CANNOT_TELL),
        ("no export", CANNOT_TELL),
        (&genuine[..genuine.len() - 20], INVALID),
        (&genuine[..genuine.find('\n').unwrap() + 1], INVALID),
    ] {
        let said = check(plane, content.as_bytes(), root);
        assert_eq!(said.code, code, "{} bytes: {}", content.len(), said.stdout);
        assert_ne!(said.json["valid"], true);
    }
    let changed = genuine.replacen("\"kind\":\"action\"", "\"kind\":\"result\"", 1);
    assert_ne!(changed, genuine);
    let said = check(plane, changed.as_bytes(), root);
    assert_eq!((said.code, said.json["first_fault"]["zone"].as_str()), (INVALID, Some("governance")));
    // A root key that is another plane's, and one that is none.
    let other = plane.folder().join("other");
    let made = plane.cli(&["pki", "init", "--out", other.to_str().unwrap(), "--realm", "other.example"]);
    let key = other.join("root.pub");
    assert_eq!(made.code, VALID, "{} {}", made.stdout, made.stderr);
    let said = check(plane, genuine.as_bytes(), &key);
    assert_eq!(said.code, INVALID, "{}", said.stdout);
    assert_eq!(said.json["first_fault"]["record"], 1);
    let said = check(plane, genuine.as_bytes(), &plane.ready_file());
    assert_eq!(said.code, CANNOT_TELL, "{}", said.stdout);
}

fn valid(content: &[u8], root: &Path) -> bool {
    verify(content, &PublicRoot::load(root).unwrap()).is_ok_and(|report| report.valid)
}

/// Every entry and head, and every body that an entry names.
fn dropped(genuine: &str, root: &Path) {
    let lines: Vec<&str> = genuine.split_inclusive('\n').collect();
    let mut seen = 0;
    for skipped in 0..lines.len() {
        let line: Json = serde_json::from_str(lines[skipped]).unwrap();
        let copy =
            line["body"].is_object() && line["zone"] != "governance" && line["body"]["kind"] != "result";
        // Other zones keep copies beside their own logs; nothing hangs on them.
        if copy {
            continue;
        }
        let rest: String =
            lines.iter().enumerate().filter(|(n, _)| *n != skipped).map(|(_, line)| *line).collect();
        assert!(!valid(rest.as_bytes(), root), "line {} does not matter: {line}", skipped + 1);
        seen += 1;
    }
    assert!(seen > 20, "{seen} lines");
}

fn flipped(genuine: &str, root: &Path) {
    let step = genuine.len() / 300 + 1;
    let mut bytes = genuine.as_bytes().to_vec();
    for position in (0..bytes.len()).step_by(step) {
        let mask = [0x01, 0x20, 0x80, 0x04][position % 4];
        bytes[position] ^= mask;
        assert!(!valid(&bytes, root), "byte {position} does not matter");
        bytes[position] ^= mask;
    }
    assert!(valid(&bytes, root), "put back, it is valid again");
}
