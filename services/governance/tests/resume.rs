//! What a zone that was killed does when it is back, and what it never does: S03, approvals decided
//! meanwhile, a journal that was replaced; and what a proposal's watcher sees.
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
use exequatur_governance::api::Plans;
use exequatur_lifecycle::Action as State;
use exequatur_pki::Pki;
use exequatur_plan_server::plan_service_server::PlanService as _;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::plan::v1::{ActionState, WatchPlanRequest};
use exequatur_proto::statement::v1::{ItemVerdict, OutcomeKind};
use tokio_stream::StreamExt as _;

use support::{Bench, Play, TENANT, operator};

const A_READ: (&str, &str) = ("crm.read", r#"{"id":7}"#);
const A_TEXT: (&str, &str) = ("sms.send", r#"{"to":"+1","text":"hello"}"#);

fn now(bench: &Bench) -> i64 {
    bench.app.store.clock().now().unwrap().0
}

async fn asked(bench: &Bench) {
    for _ in 0..200 {
        if !bench.connector.asked().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the connector was never asked");
}

/// S03: the warrant is durable, the connector never took it.
#[tokio::test]
async fn killed_after_the_warrant_it_executes_once_and_asks_no_person_again() {
    let mut bench = Bench::start().await;
    bench.connector.plays(&vec![Play::Refuse(Reason::Unavailable); 1000]);
    let plan = bench.run().await.plan("p-1", &[A_TEXT]).await;
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    asked(&bench).await;
    bench.kill();
    let kept = bench.app.plan(&operator(), TENANT, &plan.plan).await.unwrap();
    assert_eq!((kept.actions[0].state, kept.actions[0].asked), (State::Ready, true));
    assert_eq!(bench.connector.effects(), 0);

    bench.connector.recovers();
    bench.restart().await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    assert_eq!(bench.connector.effects(), 1);
    assert!(bench.connector.warrants().iter().all(|w| w.attempt == 1), "one attempt, however often asked");
}

#[tokio::test]
async fn what_was_executing_is_asked_about_again() {
    let mut bench = Bench::start().await;
    bench.connector.plays(&vec![Play::Vanish; 1000]);
    let plan = bench.run().await.plan("p-1", &[A_READ]).await;
    bench.until(&plan.plan, &[State::Executing]).await;
    bench.kill();
    bench.connector.recovers();
    bench.restart().await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
    assert_eq!(bench.connector.effects(), 1);
}

#[tokio::test]
async fn a_decision_made_while_it_was_away_is_taken_in() {
    let mut bench = Bench::start().await;
    let plan = bench.run().await.plan("p-1", &[A_TEXT]).await;
    bench.approval.opened(&plan.digest).await;
    bench.kill();
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    assert!(bench.connector.asked().is_empty());
    bench.restart().await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
}

/// I3: a replaced journal knows nothing of what the old one may have sent.
#[tokio::test]
async fn what_another_journal_may_have_sent_is_in_doubt_and_never_sent_again() {
    let mut bench = Bench::start().await;
    bench.connector.plays(&vec![Play::Vanish; 1000]);
    let run = bench.run().await;
    let text = run.plan("p-1", &[A_TEXT]).await;
    let read = run.plan("p-2", &[A_READ]).await;
    bench.approval.decide(&text.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    bench.until(&text.plan, &[State::Executing]).await;
    bench.until(&read.plan, &[State::Executing]).await;
    bench.kill();
    Pki::open(bench.pki.path()).unwrap().new_journal().unwrap();
    bench.connector.recovers();
    let before = bench.connector.asked().len();
    bench.restart().await;

    let doubted = bench.until(&text.plan, &[State::InDoubt]).await;
    assert_eq!(doubted.actions[0].reason, "JOURNAL_MISMATCH");
    bench.until(&read.plan, &[State::Failed]).await;
    assert_eq!(bench.connector.asked().len(), before, "the new journal is not asked");
    // The new journal cannot settle it either: a person's word does, on the record.
    let mut other = operator();
    other.id = "spiffe://dev.exequatur/person/otto".to_owned();
    let settled = bench.app.resolve(&other, TENANT, &text.plan, 0, false, "the provider has no trace").await;
    assert_eq!(settled.unwrap().actions[0].state, State::Failed);
    let by = bench.log().await.into_iter().find_map(|body| match body {
        Body::Transition(t) if t.event == "resolve_failed" => Some(t.actor),
        _ => None,
    });
    assert_eq!(by.as_deref(), Some("spiffe://dev.exequatur/person/otto"));

    // What comes after goes to the new journal.
    let fresh = Agentless::plan(&bench).await;
    bench.until(&fresh, &[State::Succeeded]).await;
}

struct Agentless;

impl Agentless {
    async fn plan(bench: &Bench) -> String {
        bench.run_with("k-2", &["crm.read"]).await.plan("p-1", &[("crm.read", r#"{"id":8}"#)]).await.plan
    }
}

#[tokio::test]
async fn a_watcher_sees_each_change_once_and_the_end() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let plan = agent.plan("p-1", &[A_TEXT]).await;
    let plans = Plans(bench.app.clone());
    let watch = |after_sequence| {
        let request = WatchPlanRequest { plan: plan.plan.clone(), after_sequence, ..Default::default() };
        let mut request = tonic::Request::new(request);
        request.extensions_mut().insert(agent.caller.clone());
        plans.watch_plan(request)
    };
    let mut seen = watch(0).await.unwrap().into_inner();
    let first = seen.next().await.unwrap().unwrap().plan.unwrap();
    assert_eq!(first.actions[0].state(), ActionState::AwaitingApproval);
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    let mut last = first;
    while let Some(change) = seen.next().await {
        let plan = change.unwrap().plan.unwrap();
        assert!(plan.sequence > last.sequence, "each change once");
        last = plan;
    }
    assert_eq!(last.actions[0].state(), ActionState::Succeeded, "the stream ends with the plan");
    assert!(!last.actions[0].receipt.is_empty());
    // Whoever has seen it all gets the end at once.
    assert!(watch(last.sequence).await.unwrap().into_inner().next().await.is_none());
}

#[tokio::test]
async fn what_is_taken_back_does_not_start_and_a_repeat_changes_nothing() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let plan = agent.plan("p-1", &[A_TEXT, A_READ]).await;
    bench.approval.opened(&plan.digest).await;
    let stranger = bench.run_with("k-2", &["crm.read"]).await;
    let refused = bench.app.cancel_plan(&stranger.caller, TENANT, &plan.plan).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::NotFound);
    let first = bench.app.cancel_plan(&agent.caller, TENANT, &plan.plan).await.unwrap();
    let states: Vec<_> = first.actions.iter().map(|a| a.state).collect();
    assert_eq!(states, [State::Withdrawn, State::Skipped]);
    let again = bench.app.cancel_plan(&agent.caller, TENANT, &plan.plan).await.unwrap();
    assert_eq!(again.sequence, first.sequence);
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.until(&plan.plan, &[State::Withdrawn, State::Skipped]).await;
    assert!(bench.connector.asked().is_empty());
}

#[tokio::test]
async fn what_the_connector_cancelled_for_a_plan_says_withdrawn() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let cancelled = [Play::Outcome(OutcomeKind::Aborted, Reason::Cancelled), Play::Refuse(Reason::Cancelled)];
    for (number, play) in cancelled.into_iter().enumerate() {
        bench.connector.plays(&[play]);
        let plan = agent.plan(&format!("p-{number}"), &[A_READ]).await;
        let ended = bench.until(&plan.plan, &[State::Skipped]).await;
        assert_eq!(ended.actions[0].reason, "WITHDRAWN");
    }
    // Nothing of the run itself was cancelled.
    let plan = agent.plan("p-after", &[A_READ]).await;
    bench.until(&plan.plan, &[State::Succeeded]).await;
}

/// S38.
#[tokio::test]
async fn a_stolen_wrapping_token_holds_the_action_until_an_operator_looks() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    bench.connector.plays(&[Play::Stolen]);
    let plan = agent.plan("p-1", &[A_TEXT]).await;
    bench.approval.opened(&plan.digest).await;
    bench.approval.decide(&plan.digest, now(&bench), &[(0, ItemVerdict::Approved)]).await;
    let mut held = bench.until(&plan.plan, &[State::Ready]).await;
    for _ in 0..100 {
        if held.actions[0].on_hold {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        held = bench.until(&plan.plan, &[State::Ready]).await;
    }
    assert_eq!((held.actions[0].on_hold, held.actions[0].reason.as_str()), (true, "OPERATOR_HOLD"));
    // Its deadline stands still, and nothing of the approval is taken back.
    bench.time.advance(Duration::from_secs(3600));
    tokio::time::sleep(Duration::from_millis(300)).await;
    bench.until(&plan.plan, &[State::Ready]).await;
    assert!(bench.approval.withdrawn().is_empty());
    assert_eq!(bench.connector.asked().len(), 1);
    bench.app.release_hold(support::OPERATOR, TENANT, &plan.plan, 0).await.unwrap();
    let again = bench.app.release_hold(support::OPERATOR, TENANT, &plan.plan, 0).await.unwrap_err();
    assert_eq!(again.reason(), Reason::WrongState);
    bench.until(&plan.plan, &[State::Succeeded]).await;
    let records = bench.log().await.into_iter().filter(
        |body| matches!(body, Body::RegisterChanged(c) if c.register == "hold" && c.actor == support::OPERATOR),
    );
    assert_eq!(records.count(), 1);
}
