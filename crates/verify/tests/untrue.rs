//! Every signature holds and the zones still do not say the same: the verifier says which record has no
//! partner. Each lie stands beside the truth that it was made from.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may stop at once")]

mod common;

use common::{EXPORTED, NOW, Story, ZONES};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{LeaseEvent, PlanProposed, Receipt, Transition};

fn moves(story: &mut Story, zone: &'static str, change: impl Fn(&mut Transition)) {
    for (_, body) in story.of(zone) {
        if let Body::Transition(moved) = body {
            change(moved);
        }
    }
}

/// The entries of a zone that are this move.
fn drop_move(story: &mut Story, zone: &'static str, event: &str) {
    let before = story.of(zone).len();
    story.of(zone).retain(|(_, body)| !matches!(body, Body::Transition(t) if t.event == event));
    assert!(story.of(zone).len() < before, "there was a `{event}`");
}

fn proposed(story: &mut Story, change: impl Fn(&mut PlanProposed)) {
    for (_, body) in story.of("governance") {
        if let Body::PlanProposed(plan) = body {
            change(plan);
        }
    }
}

fn receipts(story: &mut Story, change: impl Fn(&mut Receipt)) {
    for (_, body) in story.of("governance") {
        if let Body::Receipt(receipt) = body {
            change(receipt);
        }
    }
}

/// Zone and record of the first fault, whose words must contain `what`.
fn found(change: impl Fn(&mut Story), what: &str) -> (String, u64) {
    let mut story = Story::new();
    change(&mut story);
    let (zone, record, words) = story.export().fault();
    assert!(words.contains(what), "expected `{what}`, found `{zone} {record}: {words}`");
    (zone, record)
}

#[test]
fn a_move_that_is_not_in_the_table_is_found_in_every_zone() {
    for (zone, record) in [("governance", 1), ("approval", 1), ("connector", 1)] {
        let place = found(
            |story| {
                let (_, body) = &mut story.of(zone)[record];
                let Body::Transition(moved) = body else { panic!("no move at {zone} {record}") };
                moved.to = "SUCCEEDED".into();
                moved.from = "NOWHERE".into();
            },
            "transition table",
        );
        assert_eq!(place, (zone.to_owned(), record as u64));
    }
    // In the table, but not from where the last one ended.
    let place = found(|s| drop_move(s, "governance", "approve"), "transition table");
    assert_eq!(place, ("governance".to_owned(), 1));
}

#[test]
fn nothing_is_executed_without_a_proposal() {
    let place = found(|s| proposed(s, |plan| plan.actions.truncate(1)), "transition table");
    assert_eq!(place.0, "governance", "the start of an action that nobody proposed");
    let (zone, record) = found(
        |s| {
            let kept =
                |b: &Body| !matches!(b, Body::PlanProposed(_) | Body::Transition(_) | Body::Receipt(_));
            s.of("governance").retain(|(_, body)| kept(body));
        },
        "governance has no record of what was executed",
    );
    assert_eq!((zone.as_str(), record), ("connector", 0));
    for (change, place, what) in [
        ((|p| p.actions[1].tool_digest[0] ^= 1) as fn(&mut PlanProposed), ("connector", 3), "other digests"),
        (|p| p.actions[0].wire_digest = p.actions[1].wire_digest.clone(), ("connector", 0), "other digests"),
        (
            |p| p.actions[0].action_digest = p.actions[1].action_digest.clone(),
            ("connector", 0),
            "other digests",
        ),
        (|p| p.actions[0].wire_digest[0] ^= 1, ("governance", 0), "the body of kind `prepared_request`"),
        (|p| p.actions[0].verdict = "allow".into(), ("connector", 0), "another kind of decision"),
        (|p| p.actions[1].verdict = "require_human".into(), ("connector", 3), "another kind of decision"),
        (|p| p.actions[1].verdict = "deny".into(), ("connector", 3), "another kind of decision"),
    ] {
        let (zone, record) = found(|story| proposed(story, change), what);
        assert_eq!((zone.as_str(), record), place, "{what}");
    }
}

#[test]
fn nothing_held_is_executed_without_a_person() {
    let place = found(
        |s| {
            s.told.insert("approval", Vec::new());
        },
        "approval has no record of the reservation",
    );
    assert_eq!(place, ("connector".to_owned(), 1));
    // A reservation that the connector did not show.
    let dropped = |s: &mut Story| {
        moves(s, "connector", |t| {
            if t.event == "dispatch" {
                t.relied_on.clear();
            }
        });
    };
    assert_eq!(found(dropped, "reservation"), ("connector".to_owned(), 1));
    // A decision that says another word than the record.
    let place = found(
        |s| {
            moves(s, "approval", |t| {
                if t.event == "approve" {
                    t.event = "reject".into();
                    t.to = "REJECTED".into();
                }
            });
            s.of("approval").truncate(2);
        },
        "the decision does not say what the record says",
    );
    assert_eq!(place, ("approval".to_owned(), 1));
    // A decision of no signature.
    let unsigned = |s: &mut Story| {
        moves(s, "approval", |t| {
            if t.event == "approve" {
                t.statement.truncate(t.statement.len() - 3);
            }
        });
    };
    assert_eq!(found(unsigned, ""), ("approval".to_owned(), 1));
}

#[test]
fn nothing_is_dispatched_or_spent_twice() {
    // A second attempt of the same action without an abort in between.
    let place = found(
        |s| {
            let again: Vec<_> = s.of("connector")[3..6]
                .iter()
                .map(|(seconds, body)| {
                    let Body::Transition(moved) = body.clone() else { panic!("only moves") };
                    (*seconds, Body::Transition(Transition { attempt: 2, ..moved }))
                })
                .collect();
            s.of("connector").extend(again);
        },
        "dispatched twice",
    );
    assert_eq!(place, ("connector".to_owned(), 7));
    // An approval cannot be spent again: the table has no way back.
    let place = found(
        |s| {
            let last = s.of("approval")[3].clone();
            s.of("approval").push(last);
        },
        "transition table",
    );
    assert_eq!(place, ("approval".to_owned(), 4));
    // A warrant for the other action.
    let place = found(
        |s| {
            let other = match &s.of("connector")[3].1 {
                Body::Transition(moved) => moved.relied_on.clone(),
                _ => panic!("only moves"),
            };
            if let Body::Transition(moved) = &mut s.of("connector")[0].1 {
                moved.relied_on = other;
            }
        },
        "the warrant is for another action",
    );
    assert_eq!(place, ("connector".to_owned(), 0));
}

#[test]
fn receipts_and_leases_have_their_partners() {
    let (zone, record) = found(
        |s| {
            s.told.insert("credential-vault", Vec::new());
        },
        "credential-vault has no record of a lease",
    );
    assert_eq!((zone.as_str(), record), ("connector", 2));
    for (change, what) in [
        ((|r| r.outcome.push(0)) as fn(&mut Receipt), "not the one that it names"),
        (|r| r.wire_digest = vec![1; 32], "other digests than the proposal"),
        (|r| r.index = 7, "a receipt without a proposal"),
        (|r| r.decision_digest = vec![1; 32], "approval has no record of the receipt's decision"),
        (|r| r.warrant_digest = vec![1; 32], "names another warrant than its outcome"),
    ] {
        let place = found(|story| receipts(story, change), what);
        assert_eq!(place, ("governance".to_owned(), 4), "{what}");
    }
    let place = found(
        |s| {
            s.told.insert("connector", Vec::new());
        },
        "the connector has no record of the receipt's outcome",
    );
    assert_eq!(place, ("governance".to_owned(), 4));
}

/// Puts a lease before the story's own, which then reuses it.
fn reusing(story: &mut Story, version: u64, events: &[&str]) {
    let vault = story.of("credential-vault");
    let (at, body) = &mut vault[0];
    let Body::Lease(own) = body else { panic!("no lease") };
    own.reuse_of = "held".into();
    let (at, own) = (*at, own.clone());
    let event = |event: &&str| {
        let lease = "held".into();
        let before =
            LeaseEvent { event: (*event).into(), lease, version, reuse_of: String::new(), ..own.clone() };
        (at, Body::Lease(before))
    };
    vault.splice(0..0, events.iter().map(event));
}

#[test]
fn only_an_open_secret_is_reused() {
    let what = "not open under the lease";
    let held = ["granted", "handed_over", "kept"];
    let (zone, record) = found(|story| reusing(story, 0, &[]), what);
    assert_eq!((zone.as_str(), record), ("credential-vault", 0));
    found(|story| reusing(story, 0, &["granted", "failed"]), what);
    found(|story| reusing(story, 0, &[held.as_slice(), &["returned"]].concat()), what);
    found(|story| reusing(story, 0, &[held.as_slice(), &["expired"]].concat()), what);
    found(|story| reusing(story, 7, &held), what);
    let mut story = Story::new();
    reusing(&mut story, 0, &held);
    let report = story.export().verify().unwrap();
    assert_eq!((report.valid, report.open), (true, 1), "{:?}", report.first_fault);
}

#[test]
fn a_body_that_an_entry_names_must_be_there() {
    for (zone, kinds) in
        [("governance", vec!["plan_header", "action", "prepared_request"]), ("connector", vec!["result"])]
    {
        for kind in kinds {
            let place = found(
                |s| s.beside.get_mut(zone).unwrap().retain(|b| b.kind != kind),
                &format!("the body of kind `{kind}` is missing"),
            );
            assert_eq!(place.0, zone);
        }
    }
}

#[test]
fn what_is_not_yet_due_is_open_and_no_fault() {
    // Still on its way: reserved, prepared, lease out, no receipt.
    let mut story = Story::new();
    story.of("connector").truncate(1);
    story.of("approval").truncate(3);
    story.of("credential-vault").truncate(1);
    story.of("governance").truncate(3);
    let report = story.export().verify().unwrap();
    assert_eq!(report.first_fault, None);
    assert_eq!(report.open, 3, "one reservation, one attempt, one lease");
    // Younger than the partner's export.
    let mut story = Story::new();
    for zone in ZONES {
        for (seconds, _) in story.of(zone) {
            *seconds += EXPORTED - NOW;
        }
    }
    drop_move(&mut story, "approval", "commit");
    story.told.insert("credential-vault", Vec::new());
    let report = story.export().verify().unwrap();
    assert_eq!(report.first_fault, None);
    assert!(report.open >= 3, "{}", report.open);
}
