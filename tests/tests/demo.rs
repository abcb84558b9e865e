//! The demo is a test of the product, so it is tested itself: it holds, and each sabotage fails its own line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::process::Command;

use exequatur_testkit::{Output, program};
use serde_json::Value;

const LINES: u64 = 12;

/// Runs the demo on a plane of its own.
fn demo(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("exequatur"));
    command
        .args(["--output", "json", "demo", "--yes"])
        .args(arguments)
        .env("XDG_CONFIG_HOME", home.path())
        .env_remove("EXEQUATUR_CONTEXT");
    Output::of(&mut command, b"")
}

#[test]
fn the_demo_holds() {
    let told = demo(&[]);
    assert_eq!(told.code, 0, "{}\n{}", told.stdout, told.stderr);
    assert_eq!(told.json["held"], LINES);
    assert_eq!(told.json["of"], LINES);
    // Every line says what it saw.
    let lines = told.json["lines"].as_array().unwrap();
    assert!(
        lines
            .iter()
            .all(|line| line["held"] == true && line["saw"].as_object().is_some_and(|s| !s.is_empty()))
    );
}

#[test]
fn every_sabotage_fails_its_own_line() {
    for number in 1..=LINES {
        let told = demo(&["--sabotage", &number.to_string()]);
        assert_eq!(told.code, 1, "sabotage {number}: {}\n{}", told.stdout, told.stderr);
        assert_eq!(told.json["failed_line"], number, "sabotage {number}: {}", told.stdout);
        assert_eq!(told.json["held"], number - 1);
        assert!(told.json["why"].as_str().is_some_and(|why| !why.is_empty()));
    }
}

#[test]
fn the_last_line_says_how_many_held() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("exequatur"));
    command
        .args(["demo", "--yes", "--sabotage", "1"])
        .env("XDG_CONFIG_HOME", home.path())
        .env_remove("EXEQUATUR_CONTEXT");
    let told = Output::of(&mut command, b"");
    assert_eq!(told.code, 1);
    assert_eq!(told.stdout.lines().last(), Some("demo: 0 of 12 held"));
    assert_eq!(told.json, Value::Null);
}
