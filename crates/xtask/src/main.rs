//! The one command runner for people and CI: `cargo xtask COMMAND`.
//! Standard library only, so that it builds in a second on a fresh machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command runner talks to its terminal")]

mod suites;
mod tools;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "cargo xtask COMMAND
  test [SUITE…]     install what is needed, then run all suites, or the named ones; prints the time of each
  tools             install the pinned outside tools into .tools/
  lint              format, clippy, protobuf lint and breaking check
  lease-kills [COUNT [SEED]]   kill the connector so often while it holds a dynamic credential (default 500)
  model [CRASHES [MISHAPS]]   check the protocol's model exhaustively at these bounds (default 2 and 2)
  bench             every benchmark; prints ratios to what is measured beside it in the same run
  fuzz [SECONDS]    run every fuzz target for so long each (default 60; needs a nightly toolchain)
  rules-equal --pairs N --seed S
                    compare the rules' index with the naive interpreter on N generated pairs
  deny              licences, bans and sources of all dependencies (installs cargo-deny)
  baseline          take today's protobuf contract as the one that later ones must not break";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let result = match words.as_slice() {
        ["test", names @ ..] => suites::test(&root, names),
        ["lint"] => suites::test(&root, &["tools", "format", "proto", "clippy"]),
        ["tools"] => tools::install(&root),
        ["fuzz"] => suites::fuzz(&root, 60),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => suites::fuzz(&root, seconds),
            Err(_) => Err(format!("`{seconds}` is no number of seconds")),
        },
        ["lease-kills"] => suites::lease_kills(&root, "500", "1"),
        ["lease-kills", count] => suites::lease_kills(&root, count, "1"),
        ["lease-kills", count, seed] => suites::lease_kills(&root, count, seed),
        ["model", bounds @ ..] if bounds.len() <= 2 => suites::model(&root, bounds),
        ["bench"] => suites::bench(&root),
        ["rules-equal", "--pairs", pairs, "--seed", seed] => suites::rules_equal(&root, pairs, seed),
        ["deny"] => suites::deny(&root),
        ["baseline"] => suites::baseline(&root),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root: two folders above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
