//! The table is whole and unambiguous.
#![allow(clippy::unwrap_used, reason = "tests may stop at once")]

use std::collections::HashSet;

use crate::{Action, Event, Item, Journal, Machine, Plan, Run, TRANSITIONS, derive_plan, next};

fn known<M: Machine>(name: &str, word: &str) -> bool {
    M::NAME != name || word.is_empty() || M::parse(word).is_some()
}

#[test]
fn every_row_names_known_states_and_no_two_rows_compete() {
    let mut seen = HashSet::new();
    for t in TRANSITIONS {
        for word in [t.from, t.to] {
            assert!(known::<Run>(t.machine, word) && known::<Action>(t.machine, word), "{t:?}");
            assert!(known::<Item>(t.machine, word) && known::<Journal>(t.machine, word), "{t:?}");
        }
        assert!(seen.insert((t.machine, t.from, t.event)), "two rows for {t:?}");
    }
}

#[test]
fn terminal_states_are_those_of_the_design() {
    let terminal: Vec<_> = Action::ALL.iter().filter(|a| a.is_terminal()).map(|a| a.as_str()).collect();
    assert_eq!(
        terminal,
        [
            "DENIED",
            "REJECTED",
            "NOT_SELECTED",
            "EXPIRED",
            "WITHDRAWN",
            "SKIPPED",
            "REFUSED",
            "REVOKED",
            "SUCCEEDED",
            "FAILED"
        ]
    );
    let terminal: Vec<_> = Item::ALL.iter().filter(|a| a.is_terminal()).map(|a| a.as_str()).collect();
    assert_eq!(terminal, ["REJECTED", "NOT_SELECTED", "EXPIRED", "WITHDRAWN", "REVOKED", "VOID", "CONSUMED"]);
}

#[test]
fn what_may_have_been_sent_never_becomes_ready_again() {
    assert_eq!(next(Some(Journal::InDoubt), Event::Abort), None);
    assert_eq!(next(Some(Journal::Aborted), Event::Dispatch), None);
    assert_eq!(next(Some(Action::InDoubt), Event::Abort), None);
    assert_eq!(next(Some(Item::Reserved), Event::Expire), None);
}

#[test]
fn plan_state_is_derived() {
    assert_eq!(derive_plan(&[Action::Succeeded, Action::InDoubt, Action::AwaitingApproval]), Plan::InDoubt);
    assert_eq!(derive_plan(&[Action::Ready, Action::AwaitingApproval]), Plan::Waiting);
    assert_eq!(derive_plan(&[Action::Ready, Action::Denied]), Plan::Running);
    assert_eq!(derive_plan(&[Action::Skipped, Action::Failed]), Plan::Done);
}
