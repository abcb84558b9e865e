//! Each planted fault is found, by a property that says what it breaks or because something never ends.
#![allow(clippy::print_stdout, reason = "tests print what was tried")]

use exequatur_model::{Bounds, Fault, Protocol};

const PROTOCOL: Protocol = Protocol { bounds: Bounds { crashes: 1, mishaps: 1 }, faults: &[] };

#[test]
fn every_planted_fault_is_found() {
    let mut missed = Vec::new();
    for fault in Fault::SINGLE.chunks(1) {
        let found = Protocol { faults: fault, ..PROTOCOL }.finds();
        println!("{fault:?}: {found:?}");
        if found.is_empty() {
            missed.push(fault);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn what_one_zone_does_wrong_another_catches_and_both_are_found() {
    for pair in Fault::PAIRS {
        assert_ne!(Protocol { faults: pair, ..PROTOCOL }.finds(), Vec::<&str>::new(), "{pair:?}");
        for alone in pair.chunks(1) {
            let small = Protocol { bounds: Bounds { crashes: 1, mishaps: 0 }, faults: alone };
            assert_eq!(small.check().broken, Vec::<&str>::new(), "{alone:?}");
        }
    }
}
