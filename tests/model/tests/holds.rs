//! The protocol holds in every state that its bounds let it reach, and can always come to an end.
#![allow(clippy::print_stdout, reason = "tests print what was tried")]

use exequatur_model::{Bounds, Protocol, can_always_end};

const PROTOCOL: Protocol = Protocol { bounds: Bounds { crashes: 1, mishaps: 1 }, faults: &[] };

#[test]
fn every_property_holds_in_every_state() {
    let found = PROTOCOL.check();
    println!("{:?}: {} states", PROTOCOL.bounds, found.states);
    assert_eq!(found.broken, Vec::<&str>::new());
    assert!(found.states > 1_000_000, "the space is not the one that it was");
}

#[test]
fn every_run_can_come_to_an_end() {
    let protocol = Protocol { bounds: Bounds { crashes: 1, mishaps: 0 }, ..PROTOCOL };
    let states = can_always_end(&protocol).map_err(|at| format!("nothing ends from here: {at:#?}"));
    assert!(states.as_ref().is_ok_and(|states| *states > 10_000), "{states:?}");
}
