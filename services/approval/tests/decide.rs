//! Deciding: who may, over which bytes, and what becomes of it.
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

use exequatur_approval::app::Subject;
use exequatur_proto::approval::v1::{ApprovalState, DecideRequest, ItemState};
use exequatur_proto::statement::v1::{Decision, ItemVerdict};
use prost::Message as _;
use support::{Bench, TENANT, WAIT, person, reason, reviewer};

/// A change that must be found.
type OnRequest = fn(&mut DecideRequest);

#[tokio::test]
async fn a_yes_is_a_signed_decision_over_the_digests() {
    let bench = Bench::start().await;
    let mut events = bench.app.follow(0);
    let (plan, approval) = bench.opened(&["Hello"]).await;
    let after = bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await.unwrap();
    assert_eq!(after.state(), ApprovalState::Decided);
    assert_eq!(bench.states(&approval).await, [ItemState::Approved]);

    let event = events.recv().await.unwrap().unwrap();
    assert_eq!((event.sequence, event.items[0].state()), (1, ItemState::Approved));
    let decision = Decision::decode(event.decision.unwrap().payload.as_slice()).unwrap();
    let item = &decision.items[0];
    assert_eq!(item.verdict(), ItemVerdict::Approved);
    assert_eq!(item.action_digest, plan.actions[0].digest().to_vec());
    assert_eq!(item.wire_digest, plan.prepared[0].wire_digest().to_vec());
    assert_eq!(decision.plan_digest, plan.frozen.digest().to_vec());
    assert_eq!(decision.rule_set_digest, vec![9; 32]);
    assert_eq!(decision.reviewers[0].subject, person("rita"));
    assert_eq!(decision.header.unwrap().audience, "spiffe://dev.exequatur/zone/connector");
    assert_eq!(bench.transitions().await, [" hold PENDING", "PENDING approve APPROVED"]);
    // Who comes later reads the same from the store.
    let mut again = bench.app.follow(0);
    assert_eq!(again.recv().await.unwrap().unwrap().sequence, 1);
}

#[tokio::test]
async fn who_owns_or_acts_cannot_decide() {
    let bench = Bench::start().await;
    let operator = support::operator();
    for name in ["oscar", "mailer"] {
        bench.app.put_reviewer(&operator, TENANT, &person(name)).await.unwrap();
    }
    // S07. The owner that an internal service named counts as one who started the run.
    let (plan, approval) = bench.opened_with(&["Hello"], |h| h.owner = person("oscar")).await;
    for name in ["oscar", "mailer"] {
        let caller = reviewer(name);
        let result = bench.app.decide(&caller, &plan.yes(&approval, &[])).await;
        let method = "/exequatur.approval.v1.InboxService/Decide";
        let answered = bench.app.answer(Subject { method, caller: &caller }, result).await;
        assert_eq!(reason(answered), "SELF_APPROVAL", "{name}");
    }
    assert_eq!(bench.states(&approval).await, [ItemState::Pending]);
    let refused = bench.refusals(TENANT).await;
    assert_eq!(refused.len(), 2, "one record each");
    assert_eq!(refused[0].plan_digest, plan.frozen.digest().to_vec());
    bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await.unwrap();
}

#[tokio::test]
async fn only_the_enrolled_decide() {
    let bench = Bench::start().await;
    let (plan, approval) = bench.opened(&["Hello"]).await;
    // S08: another certificate of the realm, and one whose enrolment ended after the access layer let it in.
    assert_eq!(reason(bench.app.decide(&reviewer("mallory"), &plan.yes(&approval, &[])).await), "NOT_FOUND");
    bench.app.remove_reviewer(&support::operator(), TENANT, &person("rita")).await.unwrap();
    assert_eq!(reason(bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await), "NOT_FOUND");
    assert_eq!(bench.transitions().await, [" hold PENDING"]);
}

#[tokio::test]
async fn the_digests_shown_are_those_of_the_stored_bytes() {
    let bench = Bench::start().await;
    let (plan, approval) = bench.opened(&["one", "two"]).await;
    let changes: [(&str, OnRequest); 7] = [
        ("DIGEST_MISMATCH", |r| r.plan_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |r| r.shown[1].action_digest[31] ^= 1),
        ("DIGEST_MISMATCH", |r| r.shown[0].wire_digest[0] ^= 1),
        ("INVALID_FIELD", |r| r.shown[0].wire_digest.clear()),
        ("INVALID_FIELD", |r| drop(r.shown.pop())),
        ("INVALID_FIELD", |r| r.shown.swap(0, 1)),
        ("INVALID_FIELD", |r| r.answer = None),
    ];
    for (expected, change) in changes {
        let mut request = plan.yes(&approval, &[]);
        change(&mut request);
        assert_eq!(reason(bench.app.decide(&reviewer("rita"), &request).await), expected);
    }
    assert_eq!(bench.states(&approval).await, [ItemState::Pending, ItemState::Pending]);
}

#[tokio::test]
async fn a_subset_only_where_the_plan_allows_it() {
    let bench = Bench::start().await;
    let rita = reviewer("rita");
    let (plan, approval) = bench.opened(&["one", "two"]).await;
    assert_eq!(reason(bench.app.decide(&rita, &plan.yes(&approval, &[1])).await), "INVALID_FIELD");
    assert_eq!(reason(bench.app.decide(&rita, &plan.yes(&approval, &[0, 2])).await), "INVALID_FIELD");
    assert_eq!(reason(bench.app.decide(&rita, &plan.yes(&approval, &[0, 0])).await), "INVALID_FIELD");
    bench.app.decide(&rita, &plan.yes(&approval, &[1, 0])).await.unwrap();
    assert_eq!(bench.states(&approval).await, [ItemState::Approved, ItemState::Approved]);

    let (plan, approval) = bench.opened_with(&["one", "two"], |h| h.allow_partial = true).await;
    bench.app.decide(&rita, &plan.yes(&approval, &[1])).await.unwrap();
    assert_eq!(bench.states(&approval).await, [ItemState::NotSelected, ItemState::Approved]);
}

#[tokio::test]
async fn a_no_has_a_reason() {
    let bench = Bench::start().await;
    let rita = reviewer("rita");
    let (plan, approval) = bench.opened(&["Hello"]).await;
    for bad in [String::new(), "  ".to_owned(), "x".repeat(1025)] {
        assert_eq!(reason(bench.app.decide(&rita, &plan.no(&approval, &bad)).await), "INVALID_FIELD");
    }
    bench.app.decide(&rita, &plan.no(&approval, "not today")).await.unwrap();
    assert_eq!(bench.states(&approval).await, [ItemState::Rejected]);
    assert_eq!(reason(bench.reserve(&plan, 1).await), "REJECTED");
}

#[tokio::test]
async fn the_first_answer_wins() {
    let bench = Bench::start().await;
    bench.app.put_reviewer(&support::operator(), TENANT, &person("ruth")).await.unwrap();
    let (plan, approval) = bench.opened(&["Hello"]).await;
    let rita = reviewer("rita");
    let first = bench.app.decide(&rita, &plan.yes(&approval, &[])).await.unwrap();
    assert_eq!(bench.app.decide(&rita, &plan.yes(&approval, &[])).await.unwrap(), first, "a repeat");
    assert_eq!(reason(bench.app.decide(&rita, &plan.no(&approval, "changed my mind")).await), "WRONG_STATE");
    assert_eq!(reason(bench.app.decide(&reviewer("ruth"), &plan.yes(&approval, &[])).await), "WRONG_STATE");
    assert_eq!(bench.transitions().await.len(), 2);
}

#[tokio::test]
async fn two_answers_at_once_leave_one() {
    let bench = Bench::start().await;
    bench.app.put_reviewer(&support::operator(), TENANT, &person("ruth")).await.unwrap();
    for _ in 0..10 {
        let (plan, approval) = bench.opened(&["Hello"]).await;
        let barrier = Arc::new(tokio::sync::Barrier::new(2));
        let answers = [("rita", plan.yes(&approval, &[])), ("ruth", plan.no(&approval, "no"))].map(
            |(name, request)| {
                let (app, barrier) = (Arc::clone(&bench.app), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    app.decide(&reviewer(name), &request).await.is_ok()
                })
            },
        );
        let mut won = 0;
        for answer in answers {
            won += u32::from(answer.await.unwrap());
        }
        assert_eq!(won, 1);
    }
}

#[tokio::test]
async fn a_wait_that_is_over_cannot_be_answered() {
    let bench = Bench::start().await;
    let (plan, approval) = bench.opened(&["Hello"]).await;
    bench.time.advance(WAIT - Duration::from_secs(1));
    bench.app.expire_due().await.unwrap();
    assert_eq!(bench.transitions().await, [" hold PENDING"], "not before its time");
    bench.time.advance(Duration::from_secs(1));
    // No sweeper runs here.
    assert_eq!(reason(bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await), "EXPIRED");
    assert_eq!(bench.states(&approval).await, [ItemState::Expired]);
    assert_eq!(bench.transitions().await, [" hold PENDING", "PENDING expire EXPIRED"]);
}

#[tokio::test]
async fn a_withdrawn_plan_cannot_be_answered() {
    let bench = Bench::start().await;
    let (plan, approval) = bench.opened(&["Hello"]).await;
    assert_eq!(bench.withdraw(&plan, "WITHDRAWN").await.0, ItemState::Withdrawn);
    assert_eq!(
        bench.withdraw(&plan, "RUN_REVOKED").await.0,
        ItemState::Withdrawn,
        "a repeat changes nothing"
    );
    assert_eq!(reason(bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await), "WITHDRAWN");
    assert_eq!(bench.transitions().await, [" hold PENDING", "PENDING withdraw WITHDRAWN"]);
}

/// S01 at the store: bytes rewritten in the database, alone and together with every digest in it.
#[tokio::test]
async fn rewritten_rows_are_found() {
    let bench = Bench::start().await;
    let rita = reviewer("rita");
    let (plan, approval) = bench.opened(&["Hello"]).await;
    let (evil, other) = bench.opened(&["Evil!"]).await;
    assert_eq!(plan.actions[0].bytes().len(), evil.actions[0].bytes().len());

    // The bytes alone.
    bench.sql("CREATE TABLE kept AS SELECT * FROM action").await;
    assert_eq!(
        bench
            .sql(
                "UPDATE action SET action = (SELECT e.action FROM action e ORDER BY e.approval DESC LIMIT 1)
                  WHERE approval = (SELECT min(approval) FROM approval)"
            )
            .await,
        1
    );
    assert_eq!(reason(bench.app.decide(&rita, &plan.yes(&approval, &[])).await), "DIGEST_MISMATCH");

    // Header, digest, action and wire digest together: the reviewer's client sees a consistent plan.
    bench
        .sql("UPDATE action SET wire_digest = (SELECT e.wire_digest FROM action e ORDER BY e.approval DESC LIMIT 1)
              WHERE approval = (SELECT min(approval) FROM approval)")
        .await;
    bench
        .sql("CREATE TABLE evil AS SELECT header, plan_digest FROM approval ORDER BY approval DESC LIMIT 1")
        .await;
    bench
        .sql("UPDATE approval SET plan_digest = x'00' WHERE approval = (SELECT max(approval) FROM approval)")
        .await;
    bench
        .sql("UPDATE approval SET header = (SELECT header FROM evil), plan_digest = (SELECT plan_digest FROM evil)
              WHERE approval = (SELECT min(approval) FROM approval)")
        .await;
    let fault = bench.app.decide(&rita, &evil.yes(&approval, &[])).await.unwrap_err();
    assert_eq!(fault.reason_str(), "DIGEST_MISMATCH");
    assert!(fault.message().contains("what this zone signed"), "{fault}");
    assert_eq!(bench.transitions().await, [" hold PENDING", " hold PENDING"], "{other}");
}

/// I6: what cannot be recorded does not happen.
#[tokio::test]
async fn a_log_that_cannot_be_written_decides_nothing() {
    let bench = Bench::start().await;
    let (plan, approval) = bench.opened(&["Hello"]).await;
    bench.sql("CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'full'); END").await;
    assert_eq!(
        reason(bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await),
        "STORAGE_FAILED"
    );
    let other = bench.plan(&["other"], |_| ());
    assert_eq!(reason(bench.app.open(&other.request).await), "STORAGE_FAILED");
    assert_eq!(bench.states(&approval).await, [ItemState::Pending]);
    let list = exequatur_approval::app::ListRequest::default();
    assert_eq!(bench.app.list(&reviewer("rita"), &list).await.unwrap().0.len(), 1, "nothing half opened");
    bench.sql("DROP TRIGGER full").await;
    bench.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await.unwrap();

    bench.sql("CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'full'); END").await;
    assert_eq!(reason(bench.reserve(&plan, 1).await), "STORAGE_FAILED");
    assert_eq!(bench.states(&approval).await, [ItemState::Approved], "not burned");
    bench.sql("DROP TRIGGER full").await;
    bench.reserve(&plan, 1).await.unwrap();
}
