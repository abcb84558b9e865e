//! The suites of `cargo xtask test`, in order, each timed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::tools::{install, path, run};

type Suite = (&'static str, &'static str, fn(&Path) -> Result<(), String>);

/// One profile builds everything, so that CI compiles each crate once.
const SUITES: &[Suite] = &[
    ("tools", "pinned outside tools", install),
    ("format", "cargo fmt", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("proto", "buf lint, format, breaking", proto),
    ("clippy", "one lint table, warnings fail", |root| {
        cargo(root, &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"])
    }),
    ("build", "every program", |root| cargo(root, &["build", "--release", "--workspace", "--bins"])),
    ("unit", "crates and zones", |root| {
        // Without doc tests: there are no examples in docs, and asking each crate takes minutes.
        let kinds = ["--lib", "--bins", "--tests"];
        let crates = ["test", "--release", "--workspace", "--exclude", "exequatur-tests", "--no-fail-fast"];
        cargo(root, &[crates.as_slice(), &kinds].concat())
    }),
    ("end-to-end", "real processes", |root| {
        cargo(
            root,
            &["test", "--release", "-p", "exequatur-tests", "--no-fail-fast", "--", "--test-threads=2"],
        )
    }),
    ("demo", "the main job", |root| {
        run(Command::new(root.join("target/release/exequatur")).current_dir(root).args(["demo", "--yes"]))
    }),
];

/// Runs all suites, or those named, and prints the time of each.
pub(crate) fn test(root: &Path, names: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|n| !SUITES.iter().any(|s| s.0 == **n)) {
        let known: Vec<_> = SUITES.iter().map(|s| s.0).collect();
        return Err(format!("no suite `{unknown}`; there are {}", known.join(", ")));
    }
    let mut times: Vec<(&str, Duration, bool)> = Vec::new();
    for (name, what, suite) in SUITES.iter().filter(|s| names.is_empty() || names.contains(&s.0)) {
        println!("== {name}: {what}");
        let start = Instant::now();
        let result = suite(root);
        if let Err(text) = &result {
            eprintln!("{text}");
        }
        times.push((name, start.elapsed(), result.is_ok()));
        // Later suites need what these make.
        if result.is_err() && ["tools", "build"].contains(name) {
            break;
        }
    }
    println!("\nsuite         time    result");
    for (name, time, held) in &times {
        println!("{name:<12} {:>6.1} s  {}", time.as_secs_f64(), if *held { "passed" } else { "FAILED" });
    }
    let failed = times.iter().filter(|t| !t.2).count();
    println!("suites: {} passed, {failed} failed", times.len() - failed);
    if failed == 0 { Ok(()) } else { Err("not all suites passed".to_owned()) }
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), String> {
    run(Command::new("cargo").current_dir(root).args(arguments))
}

fn proto(root: &Path) -> Result<(), String> {
    let buf = |arguments: &[&str]| run(Command::new(path(root, "buf")).current_dir(root).args(arguments));
    buf(&["lint"])?;
    buf(&["format", "--diff", "--exit-code"])?;
    buf(&["breaking", "--against", "proto/baseline.binpb"])
}

/// Writes the contract that `breaking` compares with.
pub(crate) fn baseline(root: &Path) -> Result<(), String> {
    install(root)?;
    run(Command::new(path(root, "buf")).current_dir(root).args(["build", "-o", "proto/baseline.binpb"]))
}

/// The long campaign of `tests/tests/lease_kills.rs`; a short one runs with all tests.
pub(crate) fn lease_kills(root: &Path, count: &str, seed: &str) -> Result<(), String> {
    for number in [count, seed] {
        if number.parse::<u64>().is_err() {
            return Err(format!("`{number}` is no number"));
        }
    }
    install(root)?;
    cargo(root, &["build", "--release", "--workspace", "--bins"])?;
    let arguments =
        ["test", "--release", "-p", "exequatur-tests", "--test", "lease_kills", "--", "--nocapture"];
    run(Command::new("cargo").current_dir(root).args(arguments).env("KILLS", count).env("SEED", seed))
}

/// The model of the protocol; small bounds run with all tests.
pub(crate) fn model(root: &Path, bounds: &[&str]) -> Result<(), String> {
    let run = ["run", "--release", "--quiet", "-p", "exequatur-model", "--"];
    cargo(root, &[run.as_slice(), bounds].concat())
}

/// Benchmarks over real processes.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    install(root)?;
    cargo(root, &["build", "--release", "--workspace", "--bins"])?;
    cargo(root, &["bench", "-p", "exequatur-tests"])
}

/// Every target for so many seconds, from the kept seeds.
pub(crate) fn fuzz(root: &Path, seconds: u32) -> Result<(), String> {
    if run(Command::new("cargo").args(["fuzz", "--version"])).is_err() {
        cargo(root, &["install", "cargo-fuzz", "--locked"])?;
    }
    let targets = std::fs::read_dir(root.join("fuzz/fuzz_targets")).map_err(|e| e.to_string())?;
    for target in targets {
        let target = target.map_err(|e| e.to_string())?.path();
        let Some(name) = target.file_stem().and_then(|s| s.to_str()) else { continue };
        println!("== fuzz {name} for {seconds} s");
        let limit = format!("-max_total_time={seconds}");
        let corpus = format!("fuzz/corpus/{name}");
        let seeds = format!("fuzz/seeds/{name}");
        std::fs::create_dir_all(root.join(&corpus)).map_err(|e| e.to_string())?;
        let mut folders = vec![corpus.as_str()];
        if root.join(&seeds).is_dir() {
            folders.push(&seeds);
        }
        let mut arguments = vec!["+nightly", "fuzz", "run", name];
        arguments.extend(folders);
        arguments.extend(["--", &limit]);
        cargo(root, &arguments)?;
    }
    Ok(())
}

/// The long comparison of the rules' index with the naive interpreter.
pub(crate) fn rules_equal(root: &Path, pairs: &str, seed: &str) -> Result<(), String> {
    cargo(
        root,
        &["run", "--release", "-p", "exequatur-policy", "--example", "rules_equal", "--", pairs, seed],
    )
}

/// Advisories need a network that CI does not have.
pub(crate) fn deny(root: &Path) -> Result<(), String> {
    if run(Command::new("cargo").args(["deny", "--version"])).is_err() {
        cargo(root, &["install", "cargo-deny", "--locked"])?;
    }
    cargo(root, &["deny", "--offline", "check", "bans", "licenses", "sources"])
}
