//! From a decided plan to its receipts: what is dispatched, what never is, and what happens when the
//! connector aborts, vanishes, doubts or lies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_fault::Reason;
use exequatur_lifecycle::Action as State;
use exequatur_proto::approval::v1::{ItemChange, ItemState};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{DecisionKind, ItemVerdict, OutcomeKind};

use support::{Bench, DELETE, Play, RULES, SEND, operator};

const A_READ: (&str, &str) = ("crm.read", r#"{"id":7}"#);
const A_TEXT: (&str, &str) = ("sms.send", r#"{"to":"+1","text":"hello"}"#);

fn now(bench: &Bench) -> i64 {
    bench.app.store.clock().now().unwrap().0
}

#[tokio::test]
async fn what_a_rule_allows_is_executed_and_leaves_its_receipt() {
    let bench = Bench::start().await;
    let plan = bench.run().await.plan("p-1", &[A_READ]).await;
    let done = bench.until(&plan.plan, &[State::Succeeded]).await;
    assert_eq!(done.actions[0].result, b"done");
    let warrants = bench.connector.warrants();
    assert_eq!(warrants.len(), 1);
    assert_eq!(warrants[0].decision_kind(), DecisionKind::Rule);
    assert_eq!((&warrants[0].wire_digest, warrants[0].attempt), (&plan.actions[0].wire_digest, 1));
    let receipts: Vec<_> = bench
        .log()
        .await
        .into_iter()
        .filter_map(|b| match b {
            Body::Receipt(receipt) => Some(receipt),
            _ => None,
        })
        .collect();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].leases, ["l-1"]);
    assert!(!receipts[0].warrant_digest.is_empty() && receipts[0].decision_digest.is_empty());
}

#[tokio::test]
async fn what_is_held_waits_for_a_signed_yes_over_the_stored_digests() {
    let bench = Bench::start().await;
    let plan = bench.run().await.plan("p-1", &[A_TEXT]).await;
    assert_eq!(plan.actions[0].state, State::AwaitingApproval);
    // S01: a decision over other bytes, and an approval without a decision, move nothing.
    let other = |d: &mut exequatur_proto::statement::v1::Decision| d.items[0].wire_digest = vec![9; 32];
    bench.approval.decide_with(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)], other).await;
    let approved = vec![ItemChange { index: 0, state: ItemState::Approved.into(), reason: String::new() }];
    bench.approval.event(&plan.digest, approved, None);
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.until(&plan.plan, &[State::AwaitingApproval]).await;
    assert!(bench.connector.asked().is_empty());

    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    let asked = bench.connector.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].decision.is_some());
    assert_eq!(asked[0].action, plan.actions[0].action, "exactly the frozen bytes");
}

#[tokio::test]
async fn a_reviewers_no_and_not_this_one_are_different_words() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    let plan = run.plan("p-1", &[A_TEXT, ("sms.send", r#"{"to":"+2","text":"hello"}"#)]).await;
    let answer = [(0, ItemVerdict::NotSelected), (1, ItemVerdict::Approved)];
    bench.approval.decide(&plan.digest, now(&bench), &answer).await;
    bench.until(&plan.plan, &[State::NotSelected, State::Succeeded]).await;

    let plan = run.plan("p-2", &[A_TEXT, A_READ]).await;
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Rejected)]).await;
    let ended = bench.until(&plan.plan, &[State::Rejected, State::Skipped]).await;
    assert_eq!(ended.actions[0].reason, "REJECTED");
    assert_eq!(bench.connector.asked().len(), 1, "nothing after a no");
}

#[tokio::test]
async fn an_aborted_attempt_is_followed_by_the_next_and_never_by_more_than_five() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    bench.connector.plays(&[Play::Abort]);
    let plan = run.plan("p-1", &[A_READ]).await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    let warrants = bench.connector.warrants();
    assert_eq!(warrants.iter().map(|w| w.attempt).collect::<Vec<_>>(), [1, 2]);
    assert!(warrants[0].previous_abort.is_empty() && !warrants[1].previous_abort.is_empty());

    bench.connector.plays(&[Play::Abort, Play::Abort, Play::Abort, Play::Abort, Play::Abort]);
    let plan = run.plan("p-2", &[("crm.read", r#"{"id":8}"#)]).await;
    let mut ended = bench.app.plan(&operator(), support::TENANT, &plan.plan).await.unwrap();
    for _ in 0..100 {
        bench.time.advance(Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(100)).await;
        ended = bench.app.plan(&operator(), support::TENANT, &plan.plan).await.unwrap();
        if ended.actions[0].state == State::Failed {
            break;
        }
    }
    assert_eq!(
        (ended.actions[0].state, ended.actions[0].reason.as_str()),
        (State::Failed, "ATTEMPTS_EXHAUSTED")
    );
    assert_eq!(
        bench.connector.warrants().iter().skip(2).map(|w| w.attempt).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
}

#[tokio::test]
async fn a_connector_that_goes_away_is_asked_about_the_same_attempt_until_it_answers() {
    let bench = Bench::start().await;
    bench.connector.plays(&[Play::Vanish, Play::Refuse(Reason::Unavailable), Play::Vanish]);
    let plan = bench.run().await.plan("p-1", &[A_READ]).await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    let warrants = bench.connector.warrants();
    assert!(warrants.len() >= 4);
    assert!(warrants.iter().all(|w| w.attempt == 1));
    let ids: std::collections::HashSet<_> =
        warrants.iter().map(|w| w.header.as_ref().unwrap().id.clone()).collect();
    assert_eq!(ids.len(), warrants.len(), "each question carries a fresh warrant");
}

#[tokio::test]
async fn a_forged_outcome_ends_nothing() {
    let bench = Bench::start().await;
    bench.connector.plays(&[Play::Forge]);
    let plan = bench.run().await.plan("p-1", &[A_READ]).await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    assert!(bench.connector.asked().len() >= 2, "it is asked again, and believed only with its own key");
}

#[tokio::test]
async fn doubt_blocks_the_rest_until_an_operator_who_is_not_the_owner_settles_it() {
    let bench = Bench::start().await;
    bench.connector.plays(&[Play::Outcome(OutcomeKind::InDoubt, Reason::ProviderUnclear)]);
    let plan = bench.run().await.plan("p-1", &[A_TEXT, A_READ]).await;
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    bench.until(&plan.plan, &[State::InDoubt, State::Ready]).await;
    let settle = |who: exequatur_service::Caller| {
        let (app, plan) = (bench.app.clone(), plan.plan.clone());
        async move { app.resolve(&who, support::TENANT, &plan, 0, true, "the provider's log shows it").await }
    };
    assert_eq!(settle(operator()).await.unwrap_err().reason(), Reason::SelfApproval);
    let mut other = operator();
    other.id = "spiffe://dev.exequatur/person/otto".to_owned();
    settle(other).await.unwrap();
    bench.until(&plan.plan, &[State::Succeeded, State::Succeeded]).await;
    assert_eq!(bench.connector.asked().len(), 2, "settling sends nothing");
}

#[tokio::test]
async fn rules_and_definitions_that_changed_after_the_yes_stop_it() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    let held = run.plan("p-1", &[A_TEXT]).await;
    bench.approval.opened(&held.digest).await;
    bench.rules(&RULES.replace("\"*.send\", action: require_human", "\"*.send\", action: deny")).await;
    bench.approval.decide(&held.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    let ended = bench.until(&held.plan, &[State::Refused]).await;
    assert_eq!(ended.actions[0].reason, "POLICY_CHANGED");

    bench.rules(RULES).await;
    let held = run.plan("p-2", &[("sms.send", r#"{"to":"+2","text":"x"}"#)]).await;
    bench.approval.opened(&held.digest).await;
    bench.apply_tool(&SEND.replace("Send a text", "Send one text")).await;
    bench.approval.decide(&held.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    let ended = bench.until(&held.plan, &[State::Refused]).await;
    assert_eq!(ended.actions[0].reason, "DEFINITION_CHANGED");
    assert!(bench.connector.asked().is_empty());
    let told: Vec<_> = bench.approval.withdrawn().into_iter().map(|w| w.reason).collect();
    assert!(told.contains(&"POLICY_CHANGED".to_owned()), "{told:?}");
}

#[tokio::test]
async fn rows_that_were_rewritten_consistently_are_never_dispatched() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    let held = run.plan("p-1", &[A_TEXT]).await;
    bench.approval.opened(&held.digest).await;
    // Whoever owns the database says that a rule allowed it.
    assert_eq!(bench.sql("UPDATE action SET verdict = 'auto_approve', state = 'READY'").await, 1);
    let ended = bench.until(&held.plan, &[State::Refused]).await;
    assert_eq!(ended.actions[0].reason, "DIGEST_MISMATCH");

    // Bytes, digests and header are swapped for those of another plan that was signed.
    let first = run.plan("p-2", &[("sms.send", r#"{"to":"+2","text":"x"}"#)]).await;
    let second = run.plan("p-3", &[("sms.send", r#"{"to":"+3","text":"x"}"#)]).await;
    bench.approval.opened(&second.digest).await;
    bench
        .sql("UPDATE action SET action = (SELECT b.action FROM action b JOIN plan p ON p.plan = b.plan ORDER BY p.plan DESC LIMIT 1),
                digest = (SELECT b.digest FROM action b JOIN plan p ON p.plan = b.plan ORDER BY p.plan DESC LIMIT 1),
                wire_digest = (SELECT b.wire_digest FROM action b JOIN plan p ON p.plan = b.plan ORDER BY p.plan DESC LIMIT 1)
              WHERE state = 'AWAITING_APPROVAL'")
        .await;
    bench.approval.decide(&first.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let stays = bench.app.plan(&operator(), support::TENANT, &first.plan).await.unwrap();
    assert_ne!(stays.actions[0].state, State::Succeeded);
    assert!(bench.connector.asked().is_empty());
}

#[tokio::test]
async fn a_denied_row_that_was_set_ready_is_never_dispatched() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    let plan = run.plan("p-1", &[("files.delete", r#"{"path":"a"}"#), A_TEXT]).await;
    assert_eq!(plan.actions[0].reason, "DENIED_BY_RULE");
    bench.sql("UPDATE action SET state = 'READY', verdict = 'auto_approve' WHERE position = 0").await;
    bench.until(&plan.plan, &[State::Refused, State::Skipped]).await;
    assert!(bench.connector.asked().is_empty());
    let _ = DELETE;
}

#[tokio::test]
async fn what_cannot_start_in_time_expires() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    // The second waits behind a person; its deadline counts from when it may start.
    let plan = run.plan("p-1", &[A_TEXT, A_READ]).await;
    bench.approval.opened(&plan.digest).await;
    bench.time.advance(Duration::from_secs(11 * 60));
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    bench.until(&plan.plan, &[State::Succeeded, State::Succeeded]).await;
}

#[tokio::test]
async fn revoking_a_run_ends_what_it_has_open_and_tells_the_others() {
    let bench = Bench::start().await;
    let run = bench.run().await;
    let plan = run.plan("p-1", &[A_TEXT]).await;
    bench.approval.opened(&plan.digest).await;
    let revoked =
        bench.app.revoke(&operator(), support::TENANT, &run.minted.run.run, "leaked").await.unwrap();
    assert_eq!(revoked, std::slice::from_ref(&run.minted.run.run));
    let again = bench.app.revoke(&operator(), support::TENANT, &run.minted.run.run, "leaked").await.unwrap();
    assert!(again.is_empty(), "a repeat changes nothing");
    let ended = bench.until(&plan.plan, &[State::Withdrawn]).await;
    assert_eq!(ended.actions[0].reason, "RUN_REVOKED");
    for _ in 0..100 {
        if !bench.approval.withdrawn().is_empty() && !bench.connector.cancelled().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(bench.approval.withdrawn()[0].reason, "RUN_REVOKED");
    assert_eq!(bench.connector.cancelled().len(), 1);
    // A late yes does nothing.
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.until(&plan.plan, &[State::Withdrawn]).await;
    assert!(bench.connector.asked().is_empty());
}

#[tokio::test]
async fn rules_with_what_nothing_enforces_are_refused_and_the_last_good_ones_stay() {
    let bench = Bench::start().await;
    let before = bench.app.rule_set(support::TENANT).await.unwrap();
    for field in ["quorum: 2", "reviewers: [ann]", "notify: ann", "risk: high", "inputs: tainted"] {
        let yaml = format!("rules:\n  - {{id: one, tool: '*', action: require_human, {field}}}\n");
        let set = exequatur_policy::file::read(&yaml).unwrap();
        let fault =
            bench.app.apply_rule_set(support::OPERATOR, support::TENANT, set.bytes()).await.unwrap_err();
        assert_eq!(fault.reason(), Reason::InvalidField, "{field}");
        assert!(fault.message().contains("not enforced") && fault.message().contains("`one`"), "{fault}");
    }
    assert_eq!(bench.app.rule_set(support::TENANT).await.unwrap(), before);
}
