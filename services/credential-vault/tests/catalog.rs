//! The operators' side of the catalog.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use exequatur_proto::definition::v1::Attestation;
use exequatur_proto::ledger::v1::log_entry::Body;
use support::{Bench, OLGA, READ, SEND, TENANT, reason};

#[tokio::test]
async fn versions_grow_by_one() {
    let bench = Bench::empty().await;
    assert_eq!(reason(bench.put("sms-token", 2).await), "CONFLICT");
    bench.put("sms-token", 1).await.unwrap();
    assert_eq!(reason(bench.put("sms-token", 1).await), "CONFLICT", "of two operators one reads again");
    bench.put("sms-token", 2).await.unwrap();
    assert_eq!(bench.app.entry(TENANT, "sms-token").await.unwrap().version, 2);
    assert_eq!(reason(bench.app.entry("t-blue", "sms-token").await), "NOT_FOUND");
    for bad in ["", "SMS", "-x", "a b", "../x", &"x".repeat(64)] {
        assert_eq!(reason(bench.put(bad, 1).await), "INVALID_FIELD", "{bad}");
    }
}

#[tokio::test]
async fn a_value_comes_sealed_to_the_connector() {
    let bench = Bench::empty().await;
    let good = bench.sealed("sms-token", 1);
    let put = |value| bench.app.put(OLGA, TENANT, "sms-token", 1, value, None);
    assert_eq!(reason(put(None).await), "INVALID_FIELD");
    let mut other = good.clone();
    "governance-warrant-1".clone_into(&mut other.kid);
    assert_eq!(reason(put(Some(&other)).await), "INVALID_FIELD", "a key that is no sealing key");
    let mut large = good.clone();
    large.ciphertext = vec![0; 64 * 1024];
    assert_eq!(reason(put(Some(&large)).await), "LIMIT_EXCEEDED");
    assert!(bench.log().await.is_empty());
    put(Some(&good)).await.unwrap();
    let log = bench.log().await;
    let [Body::RegisterChanged(change)] = log.as_slice() else { panic!("one entry, of the register") };
    assert_eq!(
        (change.register.as_str(), change.change.as_str(), change.actor.as_str()),
        ("credential", "put", OLGA)
    );
}

#[tokio::test]
async fn pins_come_from_what_the_caller_signed() {
    let bench = Bench::empty().await;
    let definition = exequatur_definition_file::read(SEND).unwrap();
    let pin = |actor: &'static str, envelope| {
        let bench = &bench;
        async move { bench.app.pin(actor, TENANT, Some(&envelope)).await }
    };
    let omar = "spiffe://dev.exequatur/person/omar";
    assert_eq!(reason(pin(OLGA, bench.signed("omar", &definition)).await), "STATEMENT_INVALID");
    assert_eq!(reason(pin(OLGA, bench.signed("bert", &definition)).await), "STATEMENT_INVALID");
    let bert = "spiffe://dev.exequatur/person/bert";
    assert_eq!(
        reason(pin(bert, bench.signed("bert", &definition)).await),
        "STATEMENT_INVALID",
        "of another tenant"
    );
    let mut forged = bench.signed("olga", &definition);
    forged.payload.push(0);
    assert_eq!(reason(pin(OLGA, forged).await), "STATEMENT_INVALID");
    assert_eq!(reason(bench.app.pin(OLGA, TENANT, None).await), "INVALID_FIELD");

    assert_eq!(pin(omar, bench.signed("omar", &definition)).await.unwrap(), definition.digest());
    let entry = bench.app.entry(TENANT, "sms-token").await.unwrap();
    assert_eq!(entry.version, 0, "pinned, no value yet");
    assert_eq!(entry.pins[0].tool_digest, definition.digest().to_vec());
    assert_eq!(entry.pins[0].destination, "127.0.0.1:9001");
    assert_eq!(entry.pins[0].attestation, i32::from(Attestation::Reservation));

    // A new digest replaces the pin.
    let newer = exequatur_definition_file::read(&SEND.replace("path: /sms", "path: /v2/sms")).unwrap();
    pin(OLGA, bench.signed("olga", &newer)).await.unwrap();
    let entry = bench.app.entry(TENANT, "sms-token").await.unwrap();
    assert_eq!(entry.pins.len(), 1);
    assert_eq!(entry.pins[0].tool_digest, newer.digest().to_vec());
    let read = exequatur_definition_file::read(READ).unwrap();
    pin(OLGA, bench.signed("olga", &read)).await.unwrap();
    let entry = bench.app.entry(TENANT, "crm-token").await.unwrap();
    assert_eq!(entry.pins[0].attestation, i32::from(Attestation::Auto), "only by name");
}

#[tokio::test]
async fn a_removed_credential_is_gone_with_its_value() {
    let bench = Bench::start().await;
    for _ in 0..2 {
        bench.app.remove(OLGA, TENANT, "sms-token").await.unwrap();
    }
    assert_eq!(reason(bench.app.entry(TENANT, "sms-token").await), "NOT_FOUND");
    let order = bench.order(SEND);
    assert_eq!(reason(bench.app.lease(&bench.request(&order)).await), "CREDENTIAL_NOT_GRANTED");
    let removed = |body: &Body| matches!(body, Body::RegisterChanged(c) if c.change == "remove");
    assert_eq!(bench.log().await.iter().filter(|b| removed(b)).count(), 1, "a repeat records nothing");
    let names = |after: &'static str| bench.app.entries(TENANT, after, 9);
    assert_eq!(names("").await.unwrap()[0].credential, "crm-token");
    assert!(names("crm-token").await.unwrap().is_empty());
}
