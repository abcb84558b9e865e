//! `rules_equal PAIRS SEED`: compares the index with the naive interpreter on so many generated pairs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which stops at the first difference"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

const CALLS: u64 = 200;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [pairs, seed] = numbers.as_slice() else {
        eprintln!("rules_equal PAIRS SEED");
        return ExitCode::from(2);
    };
    let mut done = 0;
    let mut set = 0_u64;
    while done < *pairs {
        match support::compare(seed.wrapping_mul(1 << 32).wrapping_add(set), CALLS.min(pairs - done)) {
            Ok(compared) => done += compared,
            Err(difference) => {
                println!("{difference}");
                return ExitCode::FAILURE;
            }
        }
        set += 1;
    }
    println!("{done} pairs of {set} rule sets are equal, seed {seed}");
    ExitCode::SUCCESS
}
