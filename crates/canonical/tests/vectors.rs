//! The normative vectors of docs/spec/vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop at once")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::*;
use serde_json::Value as Json;

fn lines(name: &str) -> Vec<Json> {
    let path = format!("{}/../../docs/spec/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

#[test]
fn canonical_v1() {
    let lines = lines("canonical-v1.jsonl");
    assert!(lines.len() >= 80);
    for line in &lines {
        let name = text(line, "name");
        let json = match line.get("arguments_json_b64") {
            Some(raw) => STANDARD.decode(raw.as_str().unwrap()).unwrap(),
            None => text(line, "arguments_json").as_bytes().to_vec(),
        };
        let digest = hex::decode(text(line, "tool_digest")).unwrap();
        let frozen = freeze_action(text(line, "tool"), &json, text(line, "rationale"), Some(&digest));
        match (line.get("error"), frozen) {
            (Some(error), Err(found)) => {
                assert_eq!(found.code.to_string(), error.as_str().unwrap(), "{name}")
            }
            (None, Ok(frozen)) => {
                assert_eq!(STANDARD.encode(frozen.bytes()), text(line, "canonical"), "{name}");
                assert_eq!(frozen.digest().to_string(), text(line, "digest"), "{name}");
                assert_eq!(frozen.effect_digest().to_string(), text(line, "effect_digest"), "{name}");
                assert_eq!(verify_action(frozen.bytes()).unwrap(), frozen, "{name}");
            }
            (expected, found) => panic!("{name}: {expected:?} but {found:?}"),
        }
    }
}

#[test]
fn noncanonical_v1() {
    let lines = lines("noncanonical-v1.jsonl");
    assert!(lines.len() > 15);
    for line in &lines {
        let bytes = STANDARD.decode(text(line, "bytes")).unwrap();
        let error = verify_action(&bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotCanonical, "{}", text(line, "name"));
    }
}

#[test]
fn plan_v1() {
    for line in &lines("plan-v1.jsonl") {
        let flag = |key: &str| line.get(key).and_then(Json::as_bool).unwrap_or(false);
        let header = PlanHeader {
            tenant: text(line, "tenant").into(),
            run: text(line, "run").into(),
            agent: text(line, "agent").into(),
            plan: text(line, "plan").into(),
            proposed_at: Timestamp {
                seconds: line["seconds"].as_i64().unwrap(),
                nanos: i32::try_from(line["nanos"].as_i64().unwrap()).unwrap(),
            },
            context: text(line, "context").into(),
            action_digests: line["action_digests"]
                .as_array()
                .unwrap()
                .iter()
                .map(|d| d.as_str().unwrap().parse().unwrap())
                .collect(),
            continue_on_failure: flag("continue_on_failure"),
            allow_partial: flag("allow_partial"),
            realm: text(line, "realm").into(),
            owner: text(line, "owner").into(),
        };
        let frozen = freeze_plan(header).unwrap();
        assert_eq!(STANDARD.encode(frozen.bytes()), text(line, "canonical"));
        assert_eq!(frozen.digest().to_string(), text(line, "digest"));
        assert_eq!(frozen.words(), text(line, "words"));
        assert_eq!(frozen.words_high(), text(line, "words_high"));
        assert_eq!(verify_plan(frozen.bytes()).unwrap(), frozen);
    }
}
