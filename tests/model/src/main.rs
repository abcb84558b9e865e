//! `cargo xtask model`: the whole space at the given bounds, then every planted fault. Exit 1 if a property
//! breaks or a fault is not found.
#![allow(clippy::print_stdout, reason = "a program that tells what it checked")]

use std::process::ExitCode;

use exequatur_model::{Bounds, Fault, Protocol};

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let bounds = Bounds { crashes: given.next().unwrap_or(2), mishaps: given.next().unwrap_or(2) };
    let protocol = Protocol { bounds, faults: &[] };
    let found = protocol.check();
    println!(
        "{} crashes, {} messages lost or repeated: {} states",
        bounds.crashes, bounds.mishaps, found.states
    );
    let planted = Fault::SINGLE.chunks(1).chain(Fault::PAIRS.iter().map(<[Fault; 2]>::as_slice));
    let (mut count, mut missed) = (0, 0);
    for faults in planted {
        let breaks = Protocol { faults, ..protocol }.finds();
        println!(
            "planted {faults:?}: {}",
            if breaks.is_empty() { "NOT FOUND".to_owned() } else { breaks.join("; ") }
        );
        count += 1;
        missed += u32::from(breaks.is_empty());
    }
    println!(
        "model: {} states, {} properties broken {:?}, {count} faults planted, {missed} not found",
        found.states,
        found.broken.len(),
        found.broken
    );
    if found.broken.is_empty() && missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
