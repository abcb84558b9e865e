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
        assert_eq!(output.status.code(), Some(1), "{to}");
        let answer = object(&output);
        let finding = &answer["findings"][0];
        assert_eq!((&answer["ok"], &finding["code"]), (&false.into(), &"invalid".into()));
        assert!(finding["message"].as_str().unwrap().contains(nearest), "{finding}");
        assert!(finding["line"].as_u64().unwrap() > 0 && finding["column"].as_u64().unwrap() > 0);
    }
}

#[test]
fn rules_decide_test_replay_explain_and_differ() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rules = put(
        "rules.yaml",
        "rules:\n  - {id: big, tool: pay, action: deny, when: 'args.amount > 100'}\n  - {id: all, tool: pay, action: auto_approve}\n",
    );
    let calls = put(
        "calls.jsonl",
        "{\"tool\":\"pay\",\"arguments\":{\"amount\":1e3}}\n{\"tool\":\"pay\",\"arguments_json\":\"{\\\"amount\\\":\\\"500\\\"}\"}\n{\"tool\":\"pay\",\"arguments\":{\"amount\":1}}\nno\n",
    );
    let output = run(&["policy", "decide", "--rules", &rules, "--jsonl", "--file", &calls]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<&Value> = lines.iter().map(|line| &line["action"]).collect();
    assert_eq!(actions[..3], ["deny", "require_human", "auto_approve"]);
    assert!(lines[1]["unclear"].is_string());
    assert_eq!(lines[3]["error"], "INVALID_LINE");
    assert_eq!(lines.len(), 4);

    let cases = put(
        "cases.yaml",
        "rules: rules.yaml\ncases:\n  - {tool: pay, arguments: {amount: 101}, expect: {action: deny, rule: big}}\n  - {tool: pay, expect: require_human}\n",
    );
    let output = run(&["--output", "json", "policy", "test", &cases]);
    assert_eq!(output.status.code(), Some(0));
    let answer = object(&output);
    assert_eq!((&answer["ok"], &answer["coverage"]["missed"][0]), (&true.into(), &"all".into()));
    let bad = put("bad.yaml", "rules: rules.yaml\ncases:\n  - {tool: pay, expect: auto_approve}\n");
    let output = run(&["--output", "json", "policy", "test", &bad]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(object(&output)["failed"][0]["line"], 3);

    let recorded = put(
        "recorded.jsonl",
        "{\"tool\":\"pay\",\"arguments\":{},\"action\":\"auto_approve\",\"reviewer\":\"r\",\"time\":\"2030-01-31T09:00:00Z\"}\n",
    );
    let answer =
        object(&run(&["--output", "json", "policy", "replay", "--rules", &rules, "--file", &recorded]));
    assert_eq!(answer["changed"][0]["to"], "require_human");
    assert_eq!(answer["prompts"][0]["day"], "2030-01-31");
    assert_eq!((&answer["prompts"][0]["before"], &answer["prompts"][0]["after"]), (&0.into(), &1.into()));

    let answer =
        object(&run(&["--output", "json", "policy", "explain", "--rules", &rules, "pay", "{\"amount\":2}"]));
    assert_eq!((&answer["steps"][0]["fields"][0]["field"], &answer["rule"]), (&"when".into(), &"all".into()));

    let other = put("other.yaml", "rules:\n  - {id: all, tool: pay, action: deny}\n");
    let output = run(&["--output", "json", "policy", "diff", &rules, &other]);
    assert_eq!(output.status.code(), Some(1));
    let answer = object(&output);
    assert_eq!((&answer["removed"][0], &answer["changed"][0]), (&"big".into(), &"all".into()));
    assert_eq!(run(&["policy", "diff", &rules, &rules]).status.code(), Some(0));
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
