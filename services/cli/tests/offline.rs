//! The program as scripts meet it, in what needs no plane.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn exequatur() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exequatur"));
    command.env_remove("EXEQUATUR_CONTEXT").env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    exequatur().args(arguments).output().unwrap()
}

/// Exactly one JSON object on standard output.
fn object(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn lines(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(repository(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn canonical(arguments: &[&str], input: &str) -> Vec<Value> {
    let mut child = exequatur()
        .arg("canonical")
        .args(arguments)
        .arg("--jsonl")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_vectors_hold_through_the_command() {
    let vectors = lines("docs/spec/vectors/canonical-v1.jsonl");
    let input: String = vectors.iter().map(|v| format!("{v}\n")).collect();
    let answers = canonical(&["digest"], &input);
    assert_eq!(answers.len(), vectors.len());
    for (vector, answer) in vectors.iter().zip(&answers) {
        for key in ["canonical", "digest", "effect_digest", "error"] {
            assert_eq!(vector.get(key), answer.get(key), "{key} of {}", vector["name"]);
        }
    }
    // What was frozen verifies and shows; what is not canonical does neither.
    let frozen: String = answers
        .iter()
        .filter_map(|a| a.get("canonical"))
        .map(|bytes| format!("{}\n", serde_json::json!({"bytes": bytes})))
        .collect();
    assert!(canonical(&["verify"], &frozen).iter().all(|answer| answer["ok"] == true));
    assert!(canonical(&["show"], &frozen).iter().all(|answer| answer["text"].is_string()));
    let bad: String =
        lines("docs/spec/vectors/noncanonical-v1.jsonl").iter().map(|v| format!("{v}\n")).collect();
    for command in ["verify", "show"] {
        let answers = canonical(&[command], &bad);
        assert!(!answers.is_empty() && answers.iter().all(|answer| answer["error"] == "NOT_CANONICAL"));
    }
}

#[test]
fn plan_headers_verify_as_plans_only() {
    let plans = lines("docs/spec/vectors/plan-v1.jsonl");
    let input: String =
        plans.iter().map(|p| format!("{}\n", serde_json::json!({"bytes": p["canonical"]}))).collect();
    let answers = canonical(&["verify", "--kind", "plan"], &input);
    for (plan, answer) in plans.iter().zip(&answers) {
        assert_eq!(plan["digest"], answer["digest"], "{}", plan["name"]);
    }
    assert!(canonical(&["verify", "--kind", "action"], &input).iter().all(|a| a["error"] == "NOT_CANONICAL"));
}

#[test]
fn a_line_that_is_no_such_object_is_answered_and_the_next_goes_on() {
    let good = r#"{"tool":"a.b","arguments_json":"{}"}"#;
    let answers = canonical(&["digest"], &format!("nonsense\n\n[]\n{good}\n{{\"tool\":1}}\n{good}"));
    assert_eq!(answers.len(), 6);
    for place in [0, 1, 2, 4] {
        assert_eq!(answers[place]["error"], "INVALID_LINE", "{place}");
    }
    assert_eq!(answers[3], answers[5]);
    assert!(answers[3]["digest"].is_string());
}

#[test]
fn a_caller_may_wait_for_each_answer() {
    let mut child = exequatur()
        .args(["canonical", "digest", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(b"{\"tool\":\"a.b\",\"arguments_json\":\"{}\"}\n").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("digest"), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_usage_error_is_one_object_where_json_was_asked_for() {
    for arguments in [
        &["--output", "json", "plan", "get"][..],
        &["plan", "get", "--output=json"][..],
        &["--output", "json", "no-such-command"][..],
        &["--output", "json", "run", "list"][..],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = &object(&output)["error"];
        assert_eq!(error["reason"], "USAGE");
        assert_eq!(error["effect"], "none");
        assert_eq!(error["retryable"], false);
        assert!(error["metadata"].is_object() && error["message"].is_string());
    }
    let output = run(&["plan", "get"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn rules_are_checked_with_line_and_nearest_word() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    let rules = repository("deploy/demo/rules.yaml");
    let good = object(&run(&["--output", "json", "policy", "check", rules.to_str().unwrap()]));
    assert_eq!(good["digest"].as_str().unwrap().len(), 64);
    let text = std::fs::read_to_string(&rules).unwrap();
    for (from, to, nearest) in
        [("mode: enforce", "mode: enforse", "enforce"), ("auto_approve", "auto-approve", "auto_approve")]
    {
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let output = run(&["--output", "json", "policy", "check", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(65), "{to}");
        let message = object(&output)["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(nearest) && message.contains("line"), "{message}");
    }
}

#[test]
fn the_demos_tool_files_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(repository("deploy/demo/tools")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let text = text
            .replace("${HTTP_PORT}", "9001")
            .replace("${SMTP_PORT}", "9002")
            .replace("${PG_PORT}", "9003")
            .replace("${SMS_ACCOUNT}", "AC1");
        let file = folder.path().join("tool.yaml");
        std::fs::write(&file, text).unwrap();
        let output = run(&["--output", "json", "tool", "check", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", object(&output));
        seen += 1;
    }
    assert_eq!(seen, 5);
}

#[test]
fn text_from_outside_never_reaches_the_terminal_raw() {
    let output =
        run(&["plan", "propose", "--token-file", "/dev/null", "--file", "/nonexistent/\u{1b}[2Jx\u{9b}31m"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}'), "{text:?}");
    assert!(text.contains("\\u{1b}") || text.contains("\\u{1B}"), "{text:?}");
}
