//! Proposals: what makes no plan, what makes a denied action, repeats, limits, tenants, runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::Action as State;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::plan::v1::ToolCall;

use support::{Agent, Bench, operator, request, start};

fn meta(fault: &Fault, key: &str) -> String {
    fault.metadata().get(key).cloned().unwrap_or_default()
}

async fn refused(agent: &Agent<'_>, tool: &str, arguments: &str) -> Fault {
    let calls = [("crm.read", r#"{"id":1}"#), (tool, arguments)];
    agent.propose("p-bad", &calls).await.unwrap_err()
}

#[tokio::test]
async fn what_cannot_be_frozen_makes_no_plan_and_is_named() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    // S14.
    let deep = r#"{"id":1,"a":[{"b":[{"c":5,"c":5000}]}]}"#;
    for arguments in [r#"{"id":5,"id":5000}"#, deep] {
        let fault = refused(&agent, "crm.read", arguments).await;
        assert_eq!((fault.reason(), meta(&fault, "code").as_str()), (Reason::NotFreezable, "DUPLICATE_NAME"));
        assert_eq!(meta(&fault, "index"), "1");
    }
    let fault = refused(&agent, "crm.raed", r#"{"id":1}"#).await;
    assert_eq!((fault.reason(), meta(&fault, "nearest").as_str()), (Reason::UnknownTool, "crm.read"));
    let fault = refused(&agent, "crm.read", r#"{"id":[1]}"#).await;
    assert_eq!((fault.reason(), meta(&fault, "pointer").as_str()), (Reason::SchemaViolation, "/id"));
    // S23: names that look alike are no names of the register.
    for tool in ["Crm.read", "crm.read ", "crm.read.", "crm\\u002eread", "crm-read"] {
        assert_eq!(refused(&agent, tool, r#"{"id":1}"#).await.reason(), Reason::UnknownTool, "{tool:?}");
    }
    assert!(!bench.log().await.iter().any(|b| matches!(b, Body::PlanProposed(_))));
}

#[tokio::test]
async fn a_denied_action_is_an_answer_and_not_an_error() {
    let bench = Bench::start().await;
    let agent = bench.run_with("k-1", &["crm.read", "files.delete"]).await;
    let calls = [
        ("sms.send", r#"{"to":"+1","text":"x"}"#),
        ("files.delete", r#"{"path":"a"}"#),
        ("crm.read", r#"{"id":1}"#),
    ];
    let plan = agent.plan("p-1", &calls).await;
    let reasons: Vec<_> = plan.actions.iter().map(|a| (a.state, a.reason.as_str())).collect();
    assert_eq!(reasons[0], (State::Denied, "SCOPE_MISSING"));
    assert_eq!(reasons[1], (State::Denied, "DENIED_BY_RULE"));
    assert_eq!(plan.actions[2].filled, ["/limit"]);
    // All or nothing: one no ends it before anything starts.
    let mut whole = request("p-2", &calls);
    whole.allow_partial = false;
    whole.allow_duplicate = true;
    let plan = bench.app.propose(&agent.caller, &whole).await.unwrap().plan;
    assert_eq!(plan.actions[2].state, State::Skipped);
}

#[tokio::test]
async fn the_same_key_gives_the_same_plan_and_another_body_is_refused() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let text = [("sms.send", r#"{"to":"+1","text":"x"}"#)];
    let first = agent.plan("p-1", &text).await;
    assert_eq!(agent.plan("p-1", &text).await.plan, first.plan);
    let other = [("sms.send", r#"{"to":"+1","text":"y"}"#)];
    assert_eq!(agent.propose("p-1", &other).await.unwrap_err().reason(), Reason::IdempotencyMismatch);
    // The same effects under another key: the open plan, unless said otherwise.
    let again = agent.propose("p-2", &text).await.unwrap();
    assert!(again.duplicate && again.plan.plan == first.plan);
    let mut twice = request("p-3", &text);
    twice.allow_duplicate = true;
    assert_ne!(bench.app.propose(&agent.caller, &twice).await.unwrap().plan.plan, first.plan);
    // Another run's equal key is another key (S49).
    let stranger = bench.run_with("k-2", &["sms.send"]).await;
    assert_ne!(stranger.plan("p-1", &text).await.plan, first.plan);
    assert_eq!(
        bench.app.plan(&stranger.caller, support::TENANT, &first.plan).await.unwrap_err().reason(),
        Reason::NotFound,
        "a run sees its own plans only"
    );
    assert_eq!(
        bench.app.plan(&operator(), "t-blue", &first.plan).await.unwrap_err().reason(),
        Reason::NotFound
    );
}

#[tokio::test]
async fn limits_are_refused_before_anything_is_kept() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let call = |rationale: String| ToolCall {
        tool: "crm.read".to_owned(),
        arguments_json: br#"{"id":1}"#.to_vec(),
        rationale,
    };
    let base = request("p-1", &[]);
    let propose = |r| {
        let (app, caller) = (bench.app.clone(), agent.caller.clone());
        async move { app.propose(&caller, &r).await }
    };
    let mut many = base.clone();
    many.actions = vec![call(String::new()); 257];
    assert_eq!(propose(many).await.unwrap_err().reason(), Reason::LimitExceeded);
    let mut wordy = base.clone();
    wordy.actions = vec![call("x".repeat(4097))];
    assert_eq!(propose(wordy).await.unwrap_err().reason(), Reason::LimitExceeded);
    let mut context = base.clone();
    context.actions = vec![call(String::new())];
    context.context = "x".repeat(16 * 1024 + 1);
    assert_eq!(propose(context).await.unwrap_err().reason(), Reason::LimitExceeded);
    assert_eq!(propose(base.clone()).await.unwrap_err().reason(), Reason::InvalidField, "an empty plan");
    for key in ["", "a\nb", "\u{e4}", &"k".repeat(129)] {
        let mut bad = base.clone();
        bad.idempotency_key = key.to_owned();
        bad.actions = vec![call(String::new())];
        assert_eq!(propose(bad).await.unwrap_err().reason(), Reason::InvalidField, "{key:?}");
    }
    let long = format!(r#"{{"to":"+1","text":"{}"}}"#, "x".repeat(70_000));
    let shown = agent.propose("p-2", &[("sms.send", &long)]).await.unwrap_err();
    assert_eq!(shown.reason(), Reason::TooLargeToShow);
    for n in 0..64 {
        agent.plan(&format!("o-{n}"), &[("sms.send", &format!(r#"{{"to":"+{n}","text":"x"}}"#))]).await;
    }
    let open = agent.propose("o-64", &[("sms.send", r#"{"to":"+64","text":"x"}"#)]).await.unwrap_err();
    assert_eq!(open.reason(), Reason::LimitExceeded);
}

#[tokio::test]
async fn an_action_stays_within_its_runs_tenant() {
    let bench = Bench::start().await;
    let scoped = "
tool: crm.read
summary: Read one account
effect: read
reversible: true
risk: low
attestation: auto
input_schema:
  properties:
    account: {type: string}
  required: [account]
http: {method: GET, url: \"http://127.0.0.1:9001\", path: \"/accounts/{account}\"}
tenant_scope: {$arg: account, pattern: \"{tenant}/*\"}
";
    bench.apply_tool(scoped).await;
    let agent = bench.run().await;
    let plan = agent.plan("p-1", &[("crm.read", r#"{"account":"t-blue/117"}"#)]).await;
    assert_eq!((plan.actions[0].state, plan.actions[0].reason.as_str()), (State::Denied, "TENANT_SCOPE"));
    assert!(bench.connector.asked().is_empty());
}

#[tokio::test]
async fn rules_never_approve_what_has_another_shape_or_is_missing() {
    let bench = Bench::start().await;
    let tool = "
tool: ops.run
summary: Run
effect: write
reversible: true
risk: low
attestation: auto
input_schema:
  additionalProperties: true
  properties: {verb: {}}
http: {method: POST, url: \"http://127.0.0.1:9001\", path: /run, json: {verb: {$arg: verb}}}
";
    bench.apply_tool(tool).await;
    let rules = "
mode: enforce
default: deny
rules:
  - {id: danger, tool: ops.run, args_match: {verb: [delete, drain]}, action: require_human}
  - {id: rest, tool: ops.run, action: auto_approve}
";
    bench.rules(rules).await;
    let agent = bench.run_with("k-1", &["ops.run"]).await;
    for (n, arguments) in
        [r#"{"verb":["get","delete"]}"#, r#"{"verb":{"v":"delete"}}"#, r#"{"verb":null}"#].iter().enumerate()
    {
        if let Ok(proposal) = agent.propose(&format!("p-{n}"), &[("ops.run", arguments)]).await {
            assert_eq!(proposal.plan.actions[0].state, State::AwaitingApproval, "{arguments}");
        }
    }
}

#[tokio::test]
async fn a_child_is_a_subset_and_falls_with_its_parent() {
    let bench = Bench::start().await;
    let parent = bench.run_with("k-1", &["crm.*"]).await;
    let child = |key: &str, scopes: &[&str], ttl: Option<Duration>| {
        let mut asked = start(key, scopes);
        asked.ttl = ttl;
        let (app, caller) = (bench.app.clone(), parent.caller.clone());
        async move { app.start_run(&caller, asked).await }
    };
    for (key, scopes) in [("c-1", ["crm.read", "sms.send"]), ("c-2", ["crm.read", "crmx.read"])] {
        assert_eq!(child(key, &scopes, None).await.unwrap_err().reason(), Reason::NotASubset);
    }
    let long = Some(Duration::from_secs(25 * 3600));
    assert_eq!(child("c-3", &["crm.read"], long).await.unwrap_err().reason(), Reason::NotASubset);
    let born = child("c-4", &["crm.read"], None).await.unwrap();
    assert_eq!(
        child("c-4", &["crm.read"], None).await.unwrap().run.run,
        born.run.run,
        "the same key, the same run"
    );
    let mut gone = bench.app.revoke(&operator(), support::TENANT, &parent.minted.run.run, "").await.unwrap();
    gone.sort();
    let mut both = vec![parent.minted.run.run.clone(), born.run.run.clone()];
    both.sort();
    assert_eq!(gone, both);
    let refused = exequatur_service::Tokens::verify(&*bench.app, &born.token, None).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::RunRevoked, "at once, whatever the token says");
}

#[tokio::test]
async fn names_are_one_name_each() {
    let bench = Bench::start().await;
    for bad in ["t-green\nt-blue", "T-Green", " t-green", "../x", ""] {
        let mut asked = start("k", &["crm.read"]);
        asked.tenant = bad.to_owned();
        assert_eq!(
            bench.app.start_run(&operator(), asked).await.unwrap_err().reason(),
            Reason::InvalidField,
            "{bad:?}"
        );
    }
    for bad in ["crm.read crm.write", "crm.read,sms.send", "*", ""] {
        let refused = bench.app.start_run(&operator(), start("k", &[bad])).await.unwrap_err();
        assert_eq!(refused.reason(), Reason::InvalidField, "{bad:?}");
    }
}

/// I11.
#[tokio::test]
async fn observing_lets_the_reversible_through_and_records_what_enforcing_would_have_said() {
    let bench = Bench::start().await;
    bench.apply_tool(&support::DELETE.replace("reversible: true", "reversible: false")).await;
    bench.apply_tool(&support::READ.replace("crm.read", "crm.list")).await;
    let rules = "
mode: observe
default: deny
rules:
  - {id: none, tool: \"*\", action: deny}
";
    bench.rules(rules).await;
    let agent = bench.run().await;
    let calls = [("crm.list", r#"{"id":1}"#), ("files.delete", r#"{"path":"a"}"#)];
    let plan = agent.plan("p-1", &calls).await;
    assert_eq!(plan.actions[0].verdict, "auto_approve");
    assert_eq!((plan.actions[1].state, plan.actions[1].reason.as_str()), (State::Denied, "DENIED_BY_RULE"));
    let proposed = bench.log().await.into_iter().find_map(|body| match body {
        Body::PlanProposed(proposed) => Some(proposed),
        _ => None,
    });
    let proposed = proposed.unwrap();
    assert_eq!((proposed.mode.as_str(), proposed.actions[0].enforce_verdict.as_str()), ("observe", "deny"));
    // S27: the switch itself is on the record, with who made it.
    let switches = bench.log().await.into_iter().filter(
        |body| matches!(body, Body::RegisterChanged(c) if c.register == "rule_set" && c.actor == support::OPERATOR),
    );
    assert_eq!(switches.count(), 2);
}

#[tokio::test]
async fn a_tenant_that_is_not_served_gets_nothing() {
    let bench = Bench::serving(Some(&[support::TENANT, "t-red"])).await;
    let agent = bench.run().await;
    assert_eq!(agent.plan("p-1", &[("crm.read", r#"{"id":1}"#)]).await.actions.len(), 1);
    let mut other = start("k-2", &["crm.read"]);
    other.tenant = "t-blue".to_owned();
    let refused = bench.app.start_run(&operator(), other).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::TenantNotAllowed);
    let definition = bench.definition(support::READ);
    let refused = bench.app.apply_tool(support::OPERATOR, "t-blue", Some(&definition)).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::TenantNotAllowed);
}

#[tokio::test]
async fn a_refused_proposal_leaves_one_record_in_its_tenants_log() {
    use exequatur_plan_server::plan_service_server::PlanService as _;
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let plans = exequatur_governance::api::Plans(bench.app.clone());
    let mut call = tonic::Request::new(request("p-1", &[("crm.raed", r#"{"id":1}"#)]));
    call.extensions_mut().insert(agent.caller.clone());
    plans.propose_plan(call).await.unwrap_err();
    let refusals: Vec<_> = bench
        .log()
        .await
        .into_iter()
        .filter_map(|body| match body {
            Body::Refusal(refusal) => Some((refusal.method, refusal.reason)),
            _ => None,
        })
        .collect();
    let method = "/exequatur.plan.v1.PlanService/ProposePlan".to_owned();
    assert_eq!(refusals, [(method, "UNKNOWN_TOOL".to_owned())]);
}

#[tokio::test]
async fn a_person_must_be_able_to_read_the_request_too() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    // Five characters each in the canonical text, more in the request's JSON.
    let text = |count: usize| format!(r#"{{"to":"+1","text":"{}"}}"#, "\\u0001".repeat(count));
    let fault = agent.propose("p-long", &[("sms.send", &text(12_000))]).await.unwrap_err();
    assert_eq!(fault.reason(), Reason::TooLargeToShow);
    let plan = agent.plan("p-short", &[("sms.send", &text(8_000))]).await;
    assert_eq!(plan.actions[0].state, State::AwaitingApproval);
}

#[tokio::test]
async fn each_definition_is_sent_to_approval_once() {
    let bench = Bench::start().await;
    let agent = bench.run().await;
    let texts: Vec<String> = (0..3).map(|n| format!(r#"{{"to":"+{n}","text":"x"}}"#)).collect();
    let mut calls: Vec<(&str, &str)> = texts.iter().map(|t| ("sms.send", t.as_str())).collect();
    calls.push(("crm.read", r#"{"id":1}"#));
    let plan = agent.plan("p-1", &calls).await;
    let opened = bench.approval.opened(&plan.digest).await;
    let sent: Vec<bool> = opened.actions.iter().map(|a| a.definition.is_some()).collect();
    assert_eq!(sent, [true, false, false, true]);
}
