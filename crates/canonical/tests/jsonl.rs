//! The line forms of the commands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::jsonl::{self, Kind};

const INVALID: &str = r#"{"error":"INVALID_LINE"}"#;

fn digest(line: &str) -> String {
    jsonl::digest(line.as_bytes())
}

fn lines(name: &str) -> Vec<String> {
    let path = format!("{}/../../docs/spec/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().lines().map(ToOwned::to_owned).collect()
}

fn field(line: &str, name: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line.get(name).map(|v| v.as_str().unwrap().to_owned())
}

#[test]
fn vectors_can_be_given_as_they_stand() {
    let mut frozen = 0;
    for line in lines("canonical-v1.jsonl") {
        let expected = match field(&line, "error") {
            Some(code) => format!(r#"{{"error":"{code}"}}"#),
            None => {
                frozen += 1;
                format!(
                    r#"{{"canonical":"{}","digest":"{}","effect_digest":"{}"}}"#,
                    field(&line, "canonical").unwrap(),
                    field(&line, "digest").unwrap(),
                    field(&line, "effect_digest").unwrap()
                )
            }
        };
        assert_eq!(digest(&line), expected, "{line}");
    }
    assert!(frozen > 25);
    for line in lines("noncanonical-v1.jsonl") {
        assert_eq!(jsonl::verify(Kind::Action, line.as_bytes()), r#"{"error":"NOT_CANONICAL"}"#);
        assert_eq!(jsonl::show(Kind::Action, line.as_bytes()), r#"{"error":"NOT_CANONICAL"}"#);
    }
}

#[test]
fn frozen_vectors_verify_and_show() {
    for (name, kind) in [("canonical-v1.jsonl", Kind::Action), ("plan-v1.jsonl", Kind::Plan)] {
        for line in lines(name) {
            let Some(bytes) = field(&line, "canonical") else { continue };
            let given = format!(r#"{{"bytes":"{bytes}"}}"#);
            let expected = format!(r#"{{"ok":true,"digest":"{}"}}"#, field(&line, "digest").unwrap());
            assert_eq!(jsonl::verify(kind, given.as_bytes()), expected);
            let shown = jsonl::show(kind, given.as_bytes());
            assert!(shown.starts_with(r#"{"text":""#) && !shown.contains('\n'), "{shown}");
            assert!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["warnings"].is_array());
            // The other kind's door is closed.
            let other = if kind == Kind::Action { Kind::Plan } else { Kind::Action };
            assert_eq!(jsonl::verify(other, given.as_bytes()), r#"{"error":"NOT_CANONICAL"}"#);
        }
    }
}

#[test]
fn what_is_no_such_object_is_an_invalid_line() {
    let good = r#"{"tool":"a","arguments_json":"{}"}"#;
    assert!(digest(good).starts_with(r#"{"canonical":""#));
    assert_eq!(digest(&format!(" {good} \r")), digest(good));
    for line in [
        "",
        "null",
        "[]",
        "{",
        "{}",
        r#""x""#,
        r#"{"tool":"a"}"#,
        r#"{"arguments_json":"{}"}"#,
        r#"{"tool":1,"arguments_json":"{}"}"#,
        r#"{"tool":"a","arguments_json":{}}"#,
        r#"{"tool":"a","arguments_json":"{}","rationale":null}"#,
        r#"{"tool":"a","arguments_json":"{}","rationale":["x"]}"#,
        r#"{"tool":"a","arguments_json":"{}","tool_digest":0}"#,
        r#"{"tool":"a","arguments_json":"{}","rationle":"typo"}"#,
        r#"{"tool":"a","arguments_json":"{}","bytes":""}"#,
        r#"{"tool":"a","arguments_json":"{}","arguments_json_b64":"e30="}"#,
        r#"{"tool":"a","arguments_json_b64":"e30"}"#,
        r#"{"tool":"a","arguments_json_b64":"e31="}"#,
        r#"{"tool":"a","arguments_json_b64":"e3 0="}"#,
        r#"{"tool":"a","tool":"a","arguments_json":"{}"}"#,
        r#"{"tool":"a","arguments_json":"{}"}x"#,
        r#"{"tool":"a","arguments_json":"{}",}"#,
        r#"{"tool":"a","arguments_json":"{}","rationale":"\ud800"#,
        r#"{"tool":"a","arguments_json":"{}","\ud800":"x"}"#,
    ] {
        assert_eq!(digest(line), INVALID, "{line}");
    }
    assert_eq!(jsonl::digest(b"{\"tool\":\"a\",\"arguments_json\":\"\xff\"}"), INVALID);
    for line in
        ["", "{}", r#"{"bytes":1}"#, r#"{"bytes":"!"}"#, r#"{"bytes":"EgA"}"#, r#"{"bytes":"","tool":"a"}"#]
    {
        for kind in [Kind::Action, Kind::Plan] {
            assert_eq!(jsonl::verify(kind, line.as_bytes()), INVALID, "{line}");
            assert_eq!(jsonl::show(kind, line.as_bytes()), INVALID, "{line}");
        }
    }
}

#[test]
fn lone_surrogates_have_their_place_in_the_order() {
    let error = |code: &str| format!(r#"{{"error":"{code}"}}"#);
    let with = |tool: &str, json: &str, reason: &str, tool_digest: &str| {
        digest(&format!(
            r#"{{"tool":"{tool}","arguments_json":"{json}","rationale":"{reason}","tool_digest":"{tool_digest}"}}"#
        ))
    };
    assert_eq!(with("a", "{}", r"x\ud800", ""), error("LONE_SURROGATE"));
    assert_eq!(with("a", "{}", r"\udc00\ud800", ""), error("LONE_SURROGATE"));
    assert_eq!(with("a b", "{}", r"\ud800", ""), error("INVALID_TOOL_NAME"));
    assert_eq!(with(r"a\ud800", "{}", "", ""), error("INVALID_TOOL_NAME"));
    assert_eq!(with("a", "[]", r"\ud800", ""), error("NOT_AN_OBJECT"));
    assert_eq!(with("a", "{}", r"\ud800", "00"), error("LONE_SURROGATE"));
    assert_eq!(with("a", r"{\ud800", "", ""), error("LONE_SURROGATE"));
    assert_eq!(with("a", "{}", "", "00"), error("INVALID_TOOL_DIGEST"));
    assert_eq!(with("a", "{}", "", "zz"), error("INVALID_TOOL_DIGEST"));
    assert_eq!(with("a", r#"{\"s\":\"\\ud800\"}"#, "", ""), error("LONE_SURROGATE"));
    assert!(with("a", "{}", r"\ud83d\ude00", "").starts_with(r#"{"canonical":"#));
}

#[test]
fn a_line_of_output_holds_nothing_raw() {
    let action = digest("{\"tool\":\"a\",\"arguments_json\":\"{\\\"k\u{202e}\\\":\\\"\\\\u001b[2J\\\"}\"}");
    let bytes = field(&action, "canonical").unwrap_or_else(|| panic!("{action}"));
    let shown = jsonl::show(Kind::Action, format!(r#"{{"bytes":"{bytes}"}}"#).as_bytes());
    assert!(shown.chars().all(|c| !exequatur_canonical::display::is_hidden(c)), "{shown}");
    assert!(
        shown.contains(r#"{"code":"BIDI_CONTROL","place":"/arguments/k\\u{202e}","message":"#),
        "{shown}"
    );
    assert!(STANDARD.decode(bytes).is_ok());
}
