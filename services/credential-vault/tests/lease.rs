//! Leases: what it takes to get ciphertext, once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_proto::credential::v1::{GiveBackRequest, LeaseRequest, SealContext};
use exequatur_proto::ledger::v1::LeaseEvent;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_seal::OpeningKey;
use exequatur_statement::envelope_digest;
use support::{Bench, Order, READ, REALM, SECRET, SEND, TENANT, reason};

async fn leases(bench: &Bench) -> Vec<LeaseEvent> {
    let told = |body| if let Body::Lease(event) = body { Some(event) } else { None };
    bench.log().await.into_iter().filter_map(told).collect()
}

/// A change that must be found.
type OnOrder = fn(&mut Order);

type OnRequest = fn(&mut LeaseRequest, &LeaseRequest);

fn back(tenant: &str, lease: &str) -> GiveBackRequest {
    GiveBackRequest { tenant: tenant.to_owned(), lease: lease.to_owned(), ..GiveBackRequest::default() }
}

#[tokio::test]
async fn one_attempt_gets_the_newest_value_once() {
    let bench = Bench::start().await;
    bench.put("sms-token", 2).await.unwrap();
    let order = bench.order(SEND);
    let request = bench.request(&order);
    let lease = bench.app.lease(&request).await.unwrap();
    assert_eq!(lease.version, 2);
    // Only the connector's key opens it, and only as this credential at this version.
    let key = OpeningKey::load(&bench.pki.path().join("zones/connector/keys/seal.key")).unwrap();
    let context = |tenant: &str| SealContext {
        realm: REALM.into(),
        tenant: tenant.into(),
        credential: "sms-token".into(),
        version: 2,
    };
    let value = lease.value.unwrap();
    assert_eq!(key.open(&context(TENANT), &value).unwrap().expose(), SECRET);
    assert!(key.open(&context("t-blue"), &value).is_err());

    assert_eq!(reason(bench.app.lease(&request).await), "LEASE_SPENT");
    for _ in 0..2 {
        bench.app.give_back(&back(TENANT, &lease.lease)).await.unwrap();
    }
    assert_eq!(reason(bench.app.lease(&request).await), "LEASE_SPENT", "given back is spent too");
    let [granted, returned] = leases(&bench).await.try_into().unwrap();
    assert_eq!((granted.event.as_str(), returned.event.as_str()), ("granted", "returned"));
    assert_eq!(granted.warrant_digest, envelope_digest(request.warrant.as_ref().unwrap()).to_vec());
    assert_eq!(granted.reservation_digest, envelope_digest(request.reservation.as_ref().unwrap()).to_vec());
    assert_eq!((granted.lease, granted.attempt), (lease.lease, 1));

    // A fresh warrant for the same attempt changes nothing; the next attempt is another.
    let mut again = order;
    again.warrant.header = Some(bench.header("governance", "connector"));
    again.reservation.warrant = again.warrant.header.as_ref().unwrap().id.clone();
    assert_eq!(reason(bench.app.lease(&bench.request(&again)).await), "LEASE_SPENT");
    again.warrant.attempt = 2;
    again.reservation.attempt = 2;
    bench.app.lease(&bench.request(&again)).await.unwrap();
}

#[tokio::test]
async fn the_lease_of_another_tenant_cannot_be_returned() {
    let bench = Bench::start().await;
    let lease = bench.app.lease(&bench.request(&bench.order(SEND))).await.unwrap().lease;
    bench.app.give_back(&back("t-blue", &lease)).await.unwrap();
    assert_eq!(leases(&bench).await.len(), 1);
}

#[tokio::test]
async fn a_connector_cannot_keep_or_revoke_what_is_not_its_own() {
    let bench = Bench::start().await;
    let order = bench.order(SEND);
    let lease = bench.app.lease(&bench.request(&order)).await.unwrap().lease;
    // Sealed values have no lease at Vault: another one's must not be revoked in their name.
    let foreign = GiveBackRequest { vault_lease: "database/creds/t--x/1".into(), ..back(TENANT, &lease) };
    assert_eq!(reason(bench.app.give_back(&foreign).await), "INVALID_FIELD");
    assert_eq!(leases(&bench).await.len(), 1);
    // The catalog lets it serve one action: keeping it open is not granted, it ends.
    bench.app.give_back(&GiveBackRequest { keep: true, ..back(TENANT, &lease) }).await.unwrap();
    assert_eq!(leases(&bench).await.last().unwrap().event, "returned");
    // Nor does a lease that it says to hold spare another hand-over.
    let mut next = order;
    (next.warrant.attempt, next.reservation.attempt) = (2, 2);
    let held = |held: Vec<String>| LeaseRequest { held, ..bench.request(&next) };
    assert_eq!(reason(bench.app.lease(&held(vec![lease.clone(); 17])).await), "INVALID_FIELD");
    let answer = bench.app.lease(&held(vec![lease])).await.unwrap();
    assert!(answer.value.is_some() && answer.reuse_of.is_empty());
}

#[tokio::test]
async fn warrant_and_reservation_name_exactly_this() {
    let bench = Bench::start().await;
    let changes: [(&str, OnOrder); 21] = [
        ("DIGEST_MISMATCH", |o| o.warrant.plan_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |o| o.warrant.action_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |o| o.warrant.tool_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |o| o.warrant.wire_digest[0] ^= 1),
        ("STATEMENT_INVALID", |o| o.warrant.index = 1),
        ("STATEMENT_INVALID", |o| (o.warrant.attempt, o.reservation.attempt) = (0, 0)),
        ("STATEMENT_INVALID", |o| (o.warrant.attempt, o.reservation.attempt) = (6, 6)),
        ("STATEMENT_INVALID", |o| "run-2".clone_into(&mut o.warrant.run)),
        ("CREDENTIAL_NOT_GRANTED", |o| o.warrant.credentials.clear()),
        ("STATEMENT_INVALID", |o| "t-blue".clone_into(&mut o.warrant.header.as_mut().unwrap().tenant)),
        ("STATEMENT_INVALID", |o| o.warrant.header.as_mut().unwrap().audience.push('x')),
        ("STATEMENT_INVALID", |o| o.warrant.header.as_mut().unwrap().expires_at = None),
        ("DIGEST_MISMATCH", |o| o.reservation.plan_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |o| o.reservation.action_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |o| o.reservation.wire_digest[0] ^= 1),
        ("STATEMENT_INVALID", |o| o.reservation.index = 1),
        ("STATEMENT_INVALID", |o| o.reservation.attempt = 2),
        ("STATEMENT_INVALID", |o| "another".clone_into(&mut o.reservation.warrant)),
        ("STATEMENT_INVALID", |o| "t-blue".clone_into(&mut o.reservation.header.as_mut().unwrap().tenant)),
        ("STATEMENT_INVALID", |o| o.reservation.header.as_mut().unwrap().audience.push('x')),
        ("STATEMENT_INVALID", |o| o.reservation.header.as_mut().unwrap().expires_at = None),
    ];
    for (nth, (expected, change)) in changes.into_iter().enumerate() {
        let mut order = bench.order(SEND);
        change(&mut order);
        assert_eq!(reason(bench.app.lease(&bench.request(&order)).await), expected, "change {nth}");
    }
    let order = bench.order(SEND);
    let late = bench.request(&order);
    bench.time.advance(Duration::from_secs(16));
    assert_eq!(reason(bench.app.lease(&late).await), "STATEMENT_INVALID");
    assert!(leases(&bench).await.is_empty());
    bench.app.lease(&bench.request(&bench.order(SEND))).await.unwrap();
}

#[tokio::test]
async fn bytes_are_recomputed() {
    let bench = Bench::start().await;
    let other = bench.request(&bench.order(READ));
    let changes: [(&str, OnRequest); 9] = [
        ("NOT_CANONICAL", |r, _| r.header.push(0)),
        ("NOT_CANONICAL", |r, _| r.action.push(0)),
        ("DIGEST_MISMATCH", |r, o| r.action.clone_from(&o.action)),
        ("INVALID_FIELD", |r, _| r.index = 1),
        ("DIGEST_MISMATCH", |r, o| r.definition.clone_from(&o.definition)),
        ("INVALID_FIELD", |r, _| r.definition = None),
        ("INVALID_FIELD", |r, _| r.warrant = None),
        // Each signature in the other's place.
        ("STATEMENT_INVALID", |r, _| r.warrant = r.reservation.clone()),
        ("STATEMENT_INVALID", |r, _| r.reservation = r.warrant.clone()),
    ];
    for (nth, (expected, change)) in changes.into_iter().enumerate() {
        let mut request = bench.request(&bench.order(SEND));
        change(&mut request, &other);
        assert_eq!(reason(bench.app.lease(&request).await), expected, "change {nth}");
    }
}

#[tokio::test]
async fn a_rule_alone_is_enough_only_where_the_pin_says_so() {
    let bench = Bench::start().await;
    let mut request = bench.request(&bench.order(SEND));
    request.reservation = None;
    assert_eq!(reason(bench.app.lease(&request).await), "CREDENTIAL_NOT_GRANTED");
    let mut request = bench.request(&bench.order(READ));
    request.reservation = None;
    let lease = bench.app.lease(&request).await.unwrap();
    assert_eq!(lease.version, 1);
    let [event] = leases(&bench).await.try_into().unwrap();
    assert!(event.reservation_digest.is_empty());
    // A reservation that came along must hold all the same.
    let mut order = bench.order(READ);
    order.reservation.attempt = 2;
    assert_eq!(reason(bench.app.lease(&bench.request(&order)).await), "STATEMENT_INVALID");
}

/// A governance identity that signs for what the operator did not pin gets nothing.
#[tokio::test]
async fn only_the_pinned_definition_and_destination() {
    let bench = Bench::start().await;
    // Signed by an operator, not pinned: changed since, or for another destination.
    for changed in
        [SEND.replace("path: /sms", "path: /v2/sms"), SEND.replace("127.0.0.1:9001", "127.0.0.1:9002")]
    {
        let order = bench.order(&changed);
        let fault = bench.app.lease(&bench.request(&order)).await.unwrap_err();
        assert_eq!(fault.reason_str(), "CREDENTIAL_NOT_GRANTED", "{fault}");
    }
    // The credential of another tool.
    let mut order = bench.order(SEND);
    order.warrant.credentials.push("crm-token".to_owned());
    let mut request = bench.request(&order);
    "crm-token".clone_into(&mut request.credential);
    assert_eq!(reason(bench.app.lease(&request).await), "CREDENTIAL_NOT_GRANTED");
    // One that is not in the catalog.
    let mut order = bench.order(SEND);
    order.warrant.credentials.push("nothing".to_owned());
    let mut request = bench.request(&order);
    "nothing".clone_into(&mut request.credential);
    assert_eq!(reason(bench.app.lease(&request).await), "CREDENTIAL_NOT_GRANTED");
    assert!(leases(&bench).await.is_empty());
}

#[tokio::test]
async fn half_an_entry_lets_nothing_go() {
    let bench = Bench::empty().await;
    bench.put("sms-token", 1).await.unwrap();
    let request = bench.request(&bench.order(SEND));
    assert_eq!(reason(bench.app.lease(&request).await), "CREDENTIAL_NOT_GRANTED", "a value, no pin");
    let bench = Bench::empty().await;
    let order = bench.order(SEND);
    bench.app.pin(support::OLGA, TENANT, Some(&order.signed)).await.unwrap();
    assert_eq!(
        reason(bench.app.lease(&bench.request(&order)).await),
        "CREDENTIAL_NOT_GRANTED",
        "a pin, no value"
    );
    bench.put("sms-token", 1).await.unwrap();
    bench.app.lease(&bench.request(&order)).await.unwrap();
}
