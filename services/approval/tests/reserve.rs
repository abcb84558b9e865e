//! Reserving, spending and giving back: invariants 3 and 4.
#![allow(clippy::type_complexity, reason = "a table of cases is clearer than a named type for it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use exequatur_proto::approval::v1::{ItemState, ReserveRequest};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{DecisionKind, OutcomeKind, Reservation, Warrant};
use exequatur_statement::sign;
use prost::Message as _;
use support::{Bench, TENANT, WINDOW, reason, reviewer};

async fn release(bench: &Bench, plan: &support::Plan, attempt: u32) -> Result<(), exequatur_fault::Fault> {
    bench.app.release(Some(&bench.outcome(plan, 0, attempt, OutcomeKind::Aborted))).await
}

async fn commit(bench: &Bench, plan: &support::Plan, attempt: u32) -> Result<(), exequatur_fault::Fault> {
    bench.app.commit_item(Some(&bench.outcome(plan, 0, attempt, OutcomeKind::Succeeded))).await
}

/// A change that must be found.
type OnWarrant = fn(&mut Warrant);

#[tokio::test]
async fn a_yes_is_spent_once() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    let envelope = bench.reserve(&plan, 1).await.unwrap();
    let reservation = Reservation::decode(envelope.payload.as_slice()).unwrap();
    assert_eq!(reservation.action_digest, plan.actions[0].digest().to_vec());
    assert_eq!(reservation.wire_digest, plan.prepared[0].wire_digest().to_vec());
    assert_eq!((reservation.index, reservation.attempt), (0, 1));
    assert_eq!(reservation.header.unwrap().audience, "spiffe://dev.exequatur/zone/credential-vault");

    assert_eq!(bench.reserve(&plan, 1).await.unwrap(), envelope, "a repeat gives an equal reservation");
    for _ in 0..2 {
        commit(&bench, &plan, 1).await.unwrap();
    }
    assert_eq!(reason(bench.reserve(&plan, 1).await), "APPROVAL_SPENT");
    assert_eq!(reason(bench.reserve(&plan, 2).await), "APPROVAL_SPENT");
    assert_eq!(
        bench.transitions().await,
        [
            " hold PENDING",
            "PENDING approve APPROVED",
            "APPROVED reserve RESERVED",
            "RESERVED commit CONSUMED"
        ]
    );
}

#[tokio::test]
async fn only_a_signed_abort_gives_it_back() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    bench.reserve(&plan, 1).await.unwrap();
    // Time does not.
    bench.time.advance(WINDOW * 100);
    bench.app.expire_due().await.unwrap();
    assert_eq!(bench.transitions().await.len(), 3);
    for kind in [OutcomeKind::Succeeded, OutcomeKind::Failed, OutcomeKind::InDoubt] {
        let result = bench.app.release(Some(&bench.outcome(&plan, 0, 1, kind))).await;
        assert_eq!(reason(result), "INVALID_FIELD");
    }
    let mut forged = bench.outcome(&plan, 0, 1, OutcomeKind::Aborted);
    forged.signatures[0].sig[5] ^= 1;
    assert_eq!(reason(bench.app.release(Some(&forged)).await), "STATEMENT_INVALID");
    assert_eq!(reason(bench.app.release(None).await), "INVALID_FIELD");
    release(&bench, &plan, 1).await.unwrap();
    assert_eq!(
        bench.transitions().await.last().unwrap(),
        "RESERVED release_late EXPIRED",
        "its window is over"
    );
    assert_eq!(reason(bench.reserve(&plan, 2).await), "EXPIRED");
}

#[tokio::test]
async fn attempts_close_for_ever() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    // An abort before any reserve closes the attempt all the same.
    release(&bench, &plan, 1).await.unwrap();
    assert_eq!(reason(bench.reserve(&plan, 1).await), "ATTEMPT_CLOSED");
    bench.reserve(&plan, 2).await.unwrap();
    assert_eq!(reason(bench.reserve(&plan, 1).await), "ATTEMPT_CLOSED");
    // A late repeat of the old abort does not touch the new reservation.
    release(&bench, &plan, 1).await.unwrap();
    assert_eq!(bench.transitions().await.last().unwrap(), "APPROVED reserve RESERVED");
    // The next one carries the abort, which may overtake its own release.
    bench.reserve(&plan, 3).await.unwrap();
    for _ in 0..2 {
        release(&bench, &plan, 2).await.unwrap();
    }
    commit(&bench, &plan, 3).await.unwrap();
    let log = bench.transitions().await;
    assert_eq!(
        log[2..],
        [
            "APPROVED reserve RESERVED",
            "RESERVED release APPROVED",
            "APPROVED reserve RESERVED",
            "RESERVED commit CONSUMED"
        ]
    );
}

#[tokio::test]
async fn the_next_attempt_needs_the_abort_before_it() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    let with = |attempt, previous_abort| ReserveRequest {
        warrant: Some(bench.warrant(&plan, 0, attempt)),
        attempt,
        previous_abort,
    };
    let abort = |attempt| Some(bench.outcome(&plan, 0, attempt, OutcomeKind::Aborted));
    let elsewhere = bench.plan(&["other"], |_| ());
    for (attempt, previous) in [
        (0, None),
        (6, abort(5)),
        (1, abort(1)),
        (2, None),
        (2, abort(2)),
        (3, abort(1)),
        (2, Some(bench.outcome(&plan, 0, 1, OutcomeKind::Failed))),
        (2, Some(bench.outcome(&elsewhere, 0, 1, OutcomeKind::Aborted))),
    ] {
        assert_eq!(reason(bench.app.reserve(&with(attempt, previous)).await), "INVALID_FIELD", "{attempt}");
    }
    let mut other = with(1, None);
    other.attempt = 2;
    other.previous_abort = abort(1);
    assert_eq!(reason(bench.app.reserve(&other).await), "INVALID_FIELD", "the warrant is for attempt 1");
    bench.app.reserve(&with(2, abort(1))).await.unwrap();
}

#[tokio::test]
async fn the_window_is_checked_at_use() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    bench.time.advance(WINDOW - Duration::from_millis(1));
    let (fresh, _) = (bench.approved().await, ());
    bench.reserve(&plan, 1).await.unwrap();
    // S06: nothing sweeps here.
    bench.time.advance(WINDOW);
    assert_eq!(reason(bench.reserve(&fresh, 1).await), "EXPIRED");
    assert_eq!(reason(bench.reserve(&fresh, 1).await), "EXPIRED");
    let log = bench.transitions().await;
    assert_eq!(log.iter().filter(|t| *t == "APPROVED expire EXPIRED").count(), 1);
}

#[tokio::test]
async fn the_warrant_names_exactly_the_stored_bytes() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    let changes: [(&str, OnWarrant); 7] = [
        ("DIGEST_MISMATCH", |w| w.action_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |w| w.wire_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |w| w.tool_digest[0] ^= 1),
        ("NOT_FOUND", |w| w.plan_digest[0] ^= 1),
        ("NOT_FOUND", |w| w.index = 1),
        ("NOT_FOUND", |w| "t-blue".clone_into(&mut w.header.as_mut().unwrap().tenant)),
        ("STATEMENT_INVALID", |w| w.decision_kind = DecisionKind::Rule.into()),
    ];
    for (expected, change) in changes {
        let warrant = Some(bench.warrant_with(&plan, 0, 1, change));
        let request = ReserveRequest { warrant, attempt: 1, previous_abort: None };
        assert_eq!(reason(bench.app.reserve(&request).await), expected);
    }
    // Not addressed to the connector, too old, signed with another zone's key, or of another type.
    let audience = bench.warrant_with(&plan, 0, 1, |w| {
        "spiffe://dev.exequatur/zone/approval".clone_into(&mut w.header.as_mut().unwrap().audience);
    });
    let old = bench.warrant(&plan, 0, 1);
    let mut foreign = Warrant::decode(old.payload.as_slice()).unwrap();
    "spiffe://dev.exequatur/zone/connector".clone_into(&mut foreign.header.as_mut().unwrap().issuer);
    assert!(sign(&bench.key("connector", "outcome"), &foreign).is_err(), "the library refuses to sign it");
    let outcome = bench.outcome(&plan, 0, 1, OutcomeKind::Aborted);
    for warrant in [audience, outcome] {
        let request = ReserveRequest { warrant: Some(warrant), attempt: 1, previous_abort: None };
        assert_eq!(reason(bench.app.reserve(&request).await), "STATEMENT_INVALID");
    }
    bench.time.advance(Duration::from_secs(16));
    let request = ReserveRequest { warrant: Some(old), attempt: 1, previous_abort: None };
    assert_eq!(reason(bench.app.reserve(&request).await), "STATEMENT_INVALID");
    bench.reserve(&plan, 1).await.unwrap();
}

#[tokio::test]
async fn a_revoke_before_wins_and_after_is_too_late() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    assert_eq!(bench.withdraw(&plan, "RUN_REVOKED").await.0, ItemState::Revoked);
    assert_eq!(reason(bench.reserve(&plan, 1).await), "RUN_REVOKED");

    let plan = bench.approved().await;
    bench.reserve(&plan, 1).await.unwrap();
    let answer = bench.withdraw(&plan, "RUN_REVOKED").await;
    assert_eq!(answer, (ItemState::Reserved, "TOO_LATE".to_owned()));
    // It takes effect if the item comes back.
    release(&bench, &plan, 1).await.unwrap();
    assert_eq!(bench.transitions().await.last().unwrap(), "APPROVED revoke REVOKED");
    assert_eq!(reason(bench.reserve(&plan, 2).await), "RUN_REVOKED");

    // And not if it was spent.
    let plan = bench.approved().await;
    bench.reserve(&plan, 1).await.unwrap();
    bench.withdraw(&plan, "RUN_REVOKED").await;
    commit(&bench, &plan, 1).await.unwrap();
    assert_eq!(bench.withdraw(&plan, "RUN_REVOKED").await.0, ItemState::Consumed);
}

#[tokio::test]
async fn each_reason_has_its_word() {
    let bench = Bench::start().await;
    for (reason, pending, approved) in [
        ("WITHDRAWN", ItemState::Withdrawn, ItemState::Revoked),
        ("RUN_REVOKED", ItemState::Withdrawn, ItemState::Revoked),
        ("POLICY_CHANGED", ItemState::Withdrawn, ItemState::Void),
        ("DEFINITION_CHANGED", ItemState::Withdrawn, ItemState::Void),
        ("SKIPPED", ItemState::Withdrawn, ItemState::Void),
        ("ATTEMPTS_EXHAUSTED", ItemState::Withdrawn, ItemState::Void),
        ("EXPIRED", ItemState::Expired, ItemState::Expired),
    ] {
        let (waiting, _) = bench.opened(&["Hello"]).await;
        assert_eq!(bench.withdraw(&waiting, reason).await, (pending, reason.to_owned()));
        let yes = bench.approved().await;
        assert_eq!(bench.withdraw(&yes, reason).await, (approved, reason.to_owned()));
    }
}

#[tokio::test]
async fn what_the_connector_cannot_say_is_recorded() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    assert_eq!(reason(commit(&bench, &plan, 1).await), "WRONG_STATE", "never reserved");
    bench.reserve(&plan, 1).await.unwrap();
    commit(&bench, &plan, 1).await.unwrap();
    assert_eq!(reason(release(&bench, &plan, 1).await), "WRONG_STATE", "spent, and now said to be aborted");
    let security = bench.log(TENANT).await.iter().filter(|b| matches!(b, Body::Security(_))).count();
    assert_eq!(security, 2);
    let lie = bench.outcome_with(&plan, 0, 1, OutcomeKind::Succeeded, |o| o.wire_digest[0] ^= 1);
    assert_eq!(reason(bench.app.commit_item(Some(&lie)).await), "DIGEST_MISMATCH");
}

#[tokio::test]
async fn doubt_spends_and_exhaustion_voids() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    bench.reserve(&plan, 1).await.unwrap();
    bench.app.commit_item(Some(&bench.outcome(&plan, 0, 1, OutcomeKind::InDoubt))).await.unwrap();
    // Settled later: nothing is left to change.
    commit(&bench, &plan, 1).await.unwrap();
    assert_eq!(bench.transitions().await.last().unwrap(), "RESERVED commit CONSUMED");

    let plan = bench.approved().await;
    for attempt in 1..=5 {
        bench.reserve(&plan, attempt).await.unwrap();
        release(&bench, &plan, attempt).await.unwrap();
    }
    let failed = bench.outcome_with(&plan, 0, 5, OutcomeKind::Failed, |o| {
        "ATTEMPTS_EXHAUSTED".clone_into(&mut o.reason);
    });
    bench.app.commit_item(Some(&failed)).await.unwrap();
    assert_eq!(bench.transitions().await.last().unwrap(), "APPROVED void VOID");
}

/// S02 within one zone: 64 at once, and one reservation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_reserve_at_once() {
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    let barrier = Arc::new(tokio::sync::Barrier::new(64));
    let mut calls = Vec::new();
    for _ in 0..64 {
        let (app, barrier) = (Arc::clone(&bench.app), Arc::clone(&barrier));
        let request =
            ReserveRequest { warrant: Some(bench.warrant(&plan, 0, 1)), attempt: 1, previous_abort: None };
        calls.push(tokio::spawn(async move {
            barrier.wait().await;
            app.reserve(&request).await.unwrap()
        }));
    }
    let mut seen = Vec::new();
    for call in calls {
        seen.push(call.await.unwrap());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "all got the one reservation");
    assert_eq!(bench.transitions().await.len(), 3);
}

/// Rows rewritten in the database: a yes cannot be made, moved or stretched there.
#[tokio::test]
async fn a_yes_cannot_be_written_into_the_store() {
    let bench = Bench::start().await;
    let (waiting, _) = bench.opened(&["Hello"]).await;
    bench.sql("UPDATE item SET state = 'APPROVED', ends_at = 9999999999999").await;
    bench.sql("UPDATE approval SET window_ends_at = 9999999999999, state = 2").await;
    assert_eq!(reason(bench.reserve(&waiting, 1).await), "DIGEST_MISMATCH");

    let bench = Bench::start().await;
    let plan = bench.approved().await;
    bench.sql("UPDATE approval SET window_ends_at = window_ends_at + 86400000").await;
    assert_eq!(reason(bench.reserve(&plan, 1).await), "DIGEST_MISMATCH", "the signed window counts");
    bench.sql("UPDATE approval SET window_ends_at = window_ends_at - 86400000").await;

    // The decision of another plan.
    let (other, id) = bench.opened(&["other"]).await;
    bench
        .sql("UPDATE approval SET decision = (SELECT decision FROM approval WHERE decision IS NOT NULL)")
        .await;
    bench.sql("UPDATE item SET state = 'APPROVED', last_entry = (SELECT max(last_entry) FROM item WHERE state = 'APPROVED')").await;
    assert_eq!(reason(bench.reserve(&other, 1).await), "DIGEST_MISMATCH");
    assert!(bench.app.decide(&reviewer("rita"), &other.yes(&id, &[])).await.is_err());

    // The counter-case: the row that nobody touched.
    let bench = Bench::start().await;
    let plan = bench.approved().await;
    bench.reserve(&plan, 1).await.unwrap();
}
