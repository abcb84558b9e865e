//! Opening: everything is recomputed from the bytes, and a repeat opens nothing new.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_approval::api::{Approvals, WARNING};
use exequatur_approval_server::approval_service_server::ApprovalService as _;
use exequatur_proto::approval::v1::{ItemState, OpenApprovalRequest};
use exequatur_service::{CallerKind, Tenants};
use support::{Bench, TENANT, WAIT, person, reason, reviewer};

/// Opens a plan of two actions after a change of the request.
async fn after(bench: &Bench, change: impl FnOnce(&mut OpenApprovalRequest)) -> &'static str {
    let mut request = bench.plan(&["one", "two"], |_| ()).request;
    change(&mut request);
    match bench.app.open(&request).await {
        Ok(_) => "opened",
        Err(fault) => fault.reason_str(),
    }
}

#[tokio::test]
async fn every_byte_is_recomputed() {
    let bench = Bench::start().await;
    assert_eq!(after(&bench, |_| ()).await, "opened", "the counter-case of all that follows");
    let other = bench.plan(&["other"], |_| ()).request.actions[0].clone();

    assert_eq!(after(&bench, |r| r.header.push(0)).await, "NOT_CANONICAL");
    assert_eq!(after(&bench, |r| r.actions[0].action.push(0)).await, "NOT_CANONICAL");
    // S01: other bytes that are canonical by themselves.
    assert_eq!(after(&bench, |r| r.actions[0].action.clone_from(&other.action)).await, "DIGEST_MISMATCH");
    assert_eq!(
        after(&bench, |r| r.actions[1].wire_digest.clone_from(&other.wire_digest)).await,
        "DIGEST_MISMATCH"
    );
    assert_eq!(
        after(&bench, |r| r.actions[1].wire_digest.clear()).await,
        "INVALID_FIELD",
        "held, so prepared"
    );
    assert_eq!(after(&bench, |r| r.actions.swap(0, 1)).await, "INVALID_FIELD", "in the order of the plan");
    assert_eq!(after(&bench, |r| drop(r.actions.pop())).await, "INVALID_FIELD", "every action is shown");
    assert_eq!(after(&bench, |r| r.actions.iter_mut().for_each(|a| a.held = false)).await, "INVALID_FIELD");
    assert_eq!(after(&bench, |r| r.rule_set_digest.clear()).await, "INVALID_FIELD");
    assert_eq!(after(&bench, |r| r.window_s = 0).await, "INVALID_FIELD");
    assert_eq!(after(&bench, |r| r.quorum = 2).await, "INVALID_FIELD");
    let past = bench.now().to_proto();
    assert_eq!(after(&bench, |r| r.expires_at = Some(past)).await, "EXPIRED");
    assert_eq!(after(&bench, |r| r.expires_at = None).await, "opened", "a wait may have no end");
    let elsewhere = bench.plan(&["one"], |h| "other.realm".clone_into(&mut h.realm));
    assert_eq!(reason(bench.app.open(&elsewhere.request).await), "INVALID_FIELD");
}

#[tokio::test]
async fn definitions_are_signed_by_an_operator_of_the_tenant() {
    let bench = Bench::start().await;
    let foreign = bench.definition_by("bert");
    assert_eq!(after(&bench, |r| r.actions[0].definition = Some(foreign)).await, "STATEMENT_INVALID");
    assert_eq!(
        after(&bench, |r| {
            let sig = &mut r.actions[0].definition.as_mut().unwrap().signatures[0].sig;
            sig[0] ^= 1;
        })
        .await,
        "STATEMENT_INVALID"
    );
    assert_eq!(after(&bench, |r| r.actions[0].definition = None).await, "INVALID_FIELD");
    assert_eq!(after(&bench, |r| r.actions[1].definition = None).await, "opened", "each is sent once");
}

#[tokio::test]
async fn what_nobody_can_read_is_not_asked() {
    let bench = Bench::start().await;
    let text = "x".repeat(64 * 1024);
    let plan = bench.plan(&[&text], |_| ());
    let fault = bench.app.open(&plan.request).await.unwrap_err();
    assert_eq!(fault.reason_str(), "TOO_LARGE_TO_SHOW");
    let fits = "x".repeat(40 * 1024);
    bench.app.open(&bench.plan(&[&fits], |_| ()).request).await.unwrap();
}

#[tokio::test]
async fn a_repeat_gives_the_same_approval() {
    let bench = Bench::start().await;
    let plan = bench.plan(&["Hello"], |_| ());
    let first = bench.app.open(&plan.request).await.unwrap();
    bench.time.advance(WAIT + Duration::from_secs(1));
    assert_eq!(bench.app.open(&plan.request).await.unwrap(), first, "also when the wait is over");
    let mut other = plan.request.clone();
    other.window_s += 1;
    assert_eq!(reason(bench.app.open(&other).await), "IDEMPOTENCY_MISMATCH");
    assert_eq!(bench.transitions().await, [" hold PENDING"]);
}

#[tokio::test]
async fn nobody_to_ask_is_said() {
    let bench = Bench::without_reviewer().await;
    let plan = bench.plan(&["Hello"], |_| ());
    let opened = bench.app.open(&plan.request).await.unwrap();
    assert!(opened.unattended);
    // S08: an empty list means nobody.
    let stranger = reviewer("rita");
    assert_eq!(reason(bench.app.decide(&stranger, &plan.yes(&opened.approval, &[])).await), "NOT_FOUND");

    let warned = |bench: &Bench, message: OpenApprovalRequest| {
        let service = Approvals(std::sync::Arc::clone(&bench.app));
        let mut request = tonic::Request::new(message);
        request.extensions_mut().insert(support::caller(CallerKind::Governance, "governance", Tenants::All));
        async move { service.open_approval(request).await.unwrap().metadata().get(WARNING).cloned() }
    };
    assert_eq!(warned(&bench, plan.request.clone()).await.unwrap(), "NO_REVIEWERS");
    bench.app.put_reviewer(&support::operator(), TENANT, &person("rita")).await.unwrap();
    assert!(!bench.app.open(&plan.request).await.unwrap().unattended);
    assert!(warned(&bench, plan.request.clone()).await.is_none());
    assert_eq!(bench.states(&opened.approval).await, [ItemState::Pending]);
}

#[tokio::test]
async fn a_list_shows_own_tenants_page_by_page() {
    let bench = Bench::start().await;
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        ids.push(bench.opened(&[text]).await.1);
    }
    let elsewhere = bench.opened_with(&["hidden"], |h| "t-blue".clone_into(&mut h.tenant)).await.1;
    let rita = reviewer("rita");
    let list =
        |page_token: String| exequatur_approval::app::ListRequest { page_size: 2, page_token, state: None };
    let (first, token) = bench.app.list(&rita, &list(String::new())).await.unwrap();
    let (second, last) = bench.app.list(&rita, &list(token)).await.unwrap();
    let seen: Vec<_> = first.iter().chain(&second).map(|a| a.approval.clone()).collect();
    ids.reverse();
    assert_eq!(seen, ids, "newest first, and nothing of another tenant");
    assert_eq!(last, "");
    assert_eq!(reason(bench.app.get(&rita, &elsewhere).await), "NOT_FOUND");
    assert_eq!(reason(bench.app.list(&rita, &list("1".to_owned())).await), "INVALID_FIELD");
}

#[tokio::test]
async fn reviewers_are_persons_of_the_realm_enrolled_by_another() {
    let bench = Bench::without_reviewer().await;
    let operator = support::operator();
    // S32: one list element is one name.
    for bad in [
        "spiffe://dev.exequatur/person/deploy,root",
        "spiffe://dev.exequatur/person/rita ",
        "spiffe://dev.exequatur/zone/governance",
        "spiffe://dev.exequatur/internal/billing",
        "spiffe://other.realm/person/rita",
        "rita",
        "",
    ] {
        assert_eq!(reason(bench.app.put_reviewer(&operator, TENANT, bad).await), "INVALID_FIELD", "{bad}");
    }
    assert_eq!(
        reason(bench.app.put_reviewer(&operator, "t-green\nt-blue", &person("rita")).await),
        "INVALID_FIELD"
    );
    assert_eq!(reason(bench.app.put_reviewer(&operator, TENANT, &person("olga")).await), "SELF_APPROVAL");
    let mut narrow = operator.clone();
    narrow.tenants = exequatur_service::Tenants::Only(vec!["t-blue".to_owned()]);
    assert_eq!(reason(bench.app.put_reviewer(&narrow, TENANT, &person("rita")).await), "TENANT_NOT_ALLOWED");
    assert_eq!(reason(bench.app.list_reviewers(&narrow, TENANT).await), "TENANT_NOT_ALLOWED");

    for _ in 0..2 {
        bench.app.put_reviewer(&operator, TENANT, &person("rita")).await.unwrap();
    }
    assert_eq!(bench.app.list_reviewers(&operator, TENANT).await.unwrap().len(), 1);
    for _ in 0..2 {
        bench.app.remove_reviewer(&operator, TENANT, &person("rita")).await.unwrap();
    }
    assert!(bench.app.list_reviewers(&operator, TENANT).await.unwrap().is_empty());
    assert_eq!(bench.log(TENANT).await.len(), 2, "a repeat changes nothing and records nothing");
}
