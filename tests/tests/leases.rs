//! What credential-vault lets go when governance, the connector or both were taken over: nothing for a
//! definition that is not in force, and one ciphertext per attempt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_proto::credential::v1::LeaseResponse;
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::statement::v1::{DecisionKind, Envelope, OutcomeKind, Reservation};
use exequatur_statement::{SigningKey, Statement as _, sign_bytes};
use exequatur_testkit::eventually;
use support::{Order, Taken};

const ENDS: [&str; 5] = ["SUCCEEDED", "FAILED", "REFUSED", "REVOKED", "IN_DOUBT"];

/// The same definition under another key.
fn signed_by(key: &SigningKey, definition: &Envelope) -> Envelope {
    sign_bytes(key, ToolDefinition::TYPE, definition.payload.clone())
}

/// An operator replaces the definition of the text message tool by one that differs in a limit.
fn replace_definition(taken: &Taken) {
    let file = taken.plane.data().join("tenant/sms.send.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let changed = taken.plane.folder().join("changed.yaml");
    assert!(text.contains("timeout: 10s"));
    std::fs::write(&changed, text.replace("timeout: 10s", "timeout: 9s")).unwrap();
    let applied = taken.plane.cli(&["tool", "apply", changed.to_str().unwrap()]);
    assert_eq!(applied.code, 0, "{} {}", applied.stdout, applied.stderr);
}

#[test]
fn a_definition_that_is_not_in_force_gets_no_credential() {
    let taken = Taken::start();
    let foreign = taken.operator("olga", "t-other");
    let colleague = taken.operator("omar", "demo");
    let (old, direct) = (taken.sms("+15550170"), taken.sms("+15550171"));
    replace_definition(&taken);
    let new = taken.sms("+15550172");
    taken.hold(&[&old, &direct, &new]);
    let (old_order, direct_order, new_order) = (taken.order(&old), taken.order(&direct), taken.order(&new));
    assert_ne!(old_order.warrant.tool_digest, new_order.warrant.tool_digest);

    // Definitions that the approved action was not proposed against, or that no operator of its tenant signed.
    let mut broken = old_order.definition.clone();
    broken.signatures[0].sig[0] ^= 1;
    let wrong = [
        ("the new one", "DIGEST_MISMATCH", new_order.definition.clone()),
        ("a broken signature", "STATEMENT_INVALID", broken),
        (
            "a zone's key",
            "STATEMENT_INVALID",
            signed_by(&taken.key("governance", "warrant"), &old_order.definition),
        ),
        ("another tenant's operator", "STATEMENT_INVALID", signed_by(&foreign, &old_order.definition)),
    ];
    knows_the_operator(&taken, &direct_order, &wrong[3].2);
    let reservation = taken.reserve(&direct_order).unwrap();
    for (what, reason, definition) in wrong {
        let with = |order: &Order| Order { definition: definition.clone(), ..order.clone() };
        let refused = taken.execute(&with(&old_order)).expect_err(what);
        assert_eq!(refused.reason_str(), reason, "at the connector, {what}: {refused}");
        let refused = taken.lease("connector", &with(&direct_order), Some(&reservation)).expect_err(what);
        assert_eq!(refused.reason_str(), reason, "at credential-vault, {what}: {refused}");
    }
    assert!(taken.attempts(&old_order).is_empty());

    // The old one is signed and was approved, so that only the pin is left to say no.
    let refused = taken.lease("connector", &direct_order, Some(&reservation)).unwrap_err();
    assert_eq!(refused.reason_str(), "CREDENTIAL_NOT_GRANTED");
    let ended = taken.execute(&taken.fresh(old_order.clone())).unwrap();
    assert_eq!((ended.kind(), ended.reason.as_str()), (OutcomeKind::Aborted, "CREDENTIAL_NOT_GRANTED"));
    assert!(ended.leases.is_empty() && !ended.retryable);
    assert_eq!(taken.refusals("credential-vault", "connector", "CREDENTIAL_NOT_GRANTED"), 2);
    assert_eq!(taken.granted(), 0);
    assert!(taken.plane.providers().seen().is_empty(), "no provider heard of it");

    // The harmless one: the definition in force, signed again by another operator of the tenant.
    let again = signed_by(&colleague, &new_order.definition);
    let done = taken.execute(&Order { definition: again, ..taken.fresh(new_order.clone()) }).unwrap();
    assert_eq!(done.kind(), OutcomeKind::Succeeded, "{}", done.reason);
    taken.let_go();
    for (plan, state) in [(&new, "SUCCEEDED"), (&old, "REFUSED"), (&direct, "REFUSED")] {
        assert_eq!(taken.until(plan, &ENDS)["state"], state);
    }
    let sent = ["+15550170", "+15550171", "+15550172"].map(|to| taken.sent(to));
    assert_eq!(sent, [0, 0, 1]);
}

/// Waits until both zones read the bundle that names the foreign operator: then it is the tenant that they
/// refuse, and not an unknown key.
fn knows_the_operator(taken: &Taken, order: &Order, foreign: &Envelope) {
    let order = Order { definition: foreign.clone(), ..order.clone() };
    eventually("both zones know the operator", Duration::from_secs(20), || {
        let refused =
            [taken.execute(&order).unwrap_err(), taken.lease("connector", &order, None).unwrap_err()];
        refused.iter().all(|fault| fault.message().contains("no operator of this tenant")).then_some(())
    });
}

#[test]
fn an_attempt_gets_its_ciphertext_once() {
    let taken = Taken::start();
    let plan = taken.sms("+15550180");
    let usual = taken.sms("+15550181");
    taken.hold(&[&plan, &usual]);
    let held = taken.order(&plan);
    let reservation = taken.reserve(&held).unwrap();
    assert_eq!(taken.reserve(&held).unwrap(), reservation, "a repeat promises nothing more");
    statements(&taken, &held, &reservation);

    let first = taken.lease("connector", &held, Some(&reservation)).unwrap();
    assert!(holds_ciphertext(&first), "the true one is let go");
    spent(&taken, &held, Some(&reservation));
    // A fresh warrant gets the reservation of the first, which is not for it.
    let fresh = taken.fresh(held.clone());
    assert_eq!(taken.reserve(&fresh).unwrap(), reservation);
    let refused = taken.lease("connector", &fresh, Some(&reservation)).unwrap_err();
    assert_eq!(refused.reason_str(), "STATEMENT_INVALID");

    // Where a rule alone is enough, the warrant is all there is: once per attempt too, whatever warrant.
    let read = taken.read_contact(&held);
    statements_without_reservation(&taken, &read);
    assert!(holds_ciphertext(&taken.lease("connector", &read, None).unwrap()));
    spent(&taken, &read, None);
    spent(&taken, &taken.fresh(read.clone()), None);
    for attempt in [0, 6, u32::MAX] {
        let mut order = taken.fresh(read.clone());
        order.warrant.attempt = attempt;
        let refused = taken.lease("connector", &order, None).expect_err("an attempt is 1..5");
        assert_eq!(refused.reason_str(), "STATEMENT_INVALID", "attempt {attempt}");
    }
    assert_eq!(taken.granted(), 2);
    assert!(taken.plane.providers().seen().is_empty());

    // What was leased behind the connector's back is not sent by it; what was not touched is, once.
    taken.let_go();
    assert_eq!(taken.until(&usual, &ENDS)["state"], "SUCCEEDED");
    assert_ne!(taken.until(&plan, &ENDS)["state"], "SUCCEEDED");
    assert_eq!((taken.sent("+15550180"), taken.sent("+15550181")), (0, 1));
}

/// Whoever else signed, and whatever else was signed, opens nothing.
fn statements(taken: &Taken, held: &Order, reservation: &Envelope) {
    let refused = |what: &str, reason: &str, order: &Order, reservation: Option<&Envelope>| {
        let fault = taken.lease("connector", order, reservation).expect_err(what);
        assert_eq!(fault.reason_str(), reason, "{what}: {fault}");
    };
    for signer in [
        ("approval", "decision"),
        ("approval", "reservation"),
        ("connector", "outcome"),
        ("credential-vault", "ledger"),
        ("governance", "ledger"),
        ("governance", "run-token"),
    ] {
        let order = Order { signer, ..held.clone() };
        refused("a warrant under another key", "STATEMENT_INVALID", &order, Some(reservation));
    }
    for (zone, key) in [("approval", "decision"), ("connector", "outcome"), ("governance", "warrant")] {
        let forged = sign_bytes(&taken.key(zone, key), Reservation::TYPE, reservation.payload.clone());
        refused("a reservation under another key", "STATEMENT_INVALID", held, Some(&forged));
    }
    refused("no reservation", "CREDENTIAL_NOT_GRANTED", held, None);
    refused("a decision for a reservation", "STATEMENT_INVALID", held, held.decision.as_ref());
    let mut rule = held.clone();
    rule.warrant.decision_kind = DecisionKind::Rule.into();
    refused("a rule for a reservation", "CREDENTIAL_NOT_GRANTED", &rule, None);
    let mut second = held.clone();
    second.warrant.attempt = 2;
    refused("another attempt than the reserved", "STATEMENT_INVALID", &second, Some(reservation));

    for zone in ["governance", "approval", "credential-vault"] {
        let fault = taken.lease(zone, held, Some(reservation)).unwrap_err();
        assert_eq!(fault.reason_str(), "CALLER_NOT_ALLOWED", "{zone}");
        assert_eq!(taken.refusals("credential-vault", zone, "CALLER_NOT_ALLOWED"), 1, "{zone}");
    }
    assert_eq!(taken.granted(), 0);
}

fn statements_without_reservation(taken: &Taken, read: &Order) {
    for signer in [("connector", "outcome"), ("governance", "ledger")] {
        let fault = taken.lease("connector", &Order { signer, ..read.clone() }, None).unwrap_err();
        assert_eq!(fault.reason_str(), "STATEMENT_INVALID", "{signer:?}");
    }
}

fn spent(taken: &Taken, order: &Order, reservation: Option<&Envelope>) {
    let fault = taken.lease("connector", order, reservation).expect_err("it was let go before");
    assert_eq!(fault.reason_str(), "LEASE_SPENT");
}

fn holds_ciphertext(lease: &LeaseResponse) -> bool {
    lease.value.as_ref().is_some_and(|value| !value.ciphertext.is_empty())
}
