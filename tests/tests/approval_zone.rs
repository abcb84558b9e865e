//! Approval was taken over: its real certificate and its real keys. It can say yes to what was really
//! proposed, which is its office, and nothing else: it executes nothing, changes no byte and reaches no secret.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use exequatur_proto::statement::v1::{Decision, DecisionKind, Envelope, Header, Reservation};
use exequatur_statement::{Statement as _, sign_bytes};
use prost::Message as _;
use serde_json::json;
use support::{Order, Taken, id};

/// A true decision with an order's digests, under approval's own key.
fn decide(taken: &Taken, truth: &Order, order: &Order) -> Envelope {
    let mut decision = Decision::decode(truth.decision.as_ref().unwrap().payload.as_slice()).unwrap();
    decision.plan_digest.clone_from(&order.warrant.plan_digest);
    decision.items[0].action_digest.clone_from(&order.warrant.action_digest);
    decision.items[0].wire_digest.clone_from(&order.warrant.wire_digest);
    sign_bytes(&taken.key("approval", "decision"), Decision::TYPE, decision.encode_to_vec())
}

/// A reservation for an order, under approval's own key.
fn reserve(order: &Order) -> Reservation {
    let header = order.warrant.header.clone().unwrap();
    Reservation {
        header: Some(Header {
            issuer: id("approval"),
            audience: id("credential-vault"),
            id: uuid::Uuid::now_v7().to_string(),
            ..header.clone()
        }),
        approval: "approval".to_owned(),
        plan_digest: order.warrant.plan_digest.clone(),
        index: order.warrant.index,
        action_digest: order.warrant.action_digest.clone(),
        wire_digest: order.warrant.wire_digest.clone(),
        warrant: header.id,
        attempt: order.warrant.attempt,
    }
}

fn signed(taken: &Taken, reservation: &Reservation) -> Envelope {
    sign_bytes(&taken.key("approval", "reservation"), Reservation::TYPE, reservation.encode_to_vec())
}

type Lie = fn(&mut Reservation);

#[test]
fn a_stolen_approval_says_yes_to_what_was_proposed_and_nothing_else() {
    let taken = Taken::start();
    let (undecided, approved) = (taken.sms("+15550180"), taken.sms("+15550181"));
    // The agent's first plan waits for a person; governance stands still from here on.
    let _ = taken.plane.approval_of(&undecided);
    taken.hold(&[&approved]);
    let (proposed, truth) = (taken.order(&undecided), taken.order(&approved));
    assert!(proposed.decision.is_none());

    // Its identity opens no other door.
    let as_approval = taken.runtime.block_on(async { taken.channel("approval", "connector") });
    let request = taken.execute_request(&truth);
    let refused = taken.runtime.block_on(taken.execute_on(as_approval, request)).expect_err("execute");
    assert_eq!(refused.reason_str(), "CALLER_NOT_ALLOWED");
    let reservation = signed(&taken, &reserve(&truth));
    let refused = taken.lease("approval", &truth, Some(&reservation)).expect_err("lease");
    assert_eq!(refused.reason_str(), "CALLER_NOT_ALLOWED");

    // A yes to other bytes is a yes to nothing: the warrant that governance gave names the true ones, and
    // approval cannot sign another.
    let mut other = truth.clone();
    other.alter_action(&json!({"to": "+15550666", "body": "Hello"}));
    other.rewrite_header();
    let mut fitting = taken.fresh(other.clone());
    fitting.decision = Some(decide(&taken, &truth, &fitting));
    let under_true_warrant =
        Order { warrant: truth.warrant.clone(), decision: fitting.decision.clone(), ..other.clone() };
    assert_eq!(taken.execute(&under_true_warrant).expect_err("bytes").reason_str(), "DIGEST_MISMATCH");
    for key in ["decision", "reservation", "ledger"] {
        let own = Order { signer: ("approval", key), ..fitting.clone() };
        assert_eq!(taken.execute(&own).expect_err(key).reason_str(), "STATEMENT_INVALID");
        let reservation = signed(&taken, &reserve(&own));
        let refused = taken.lease("connector", &own, Some(&reservation)).expect_err(key);
        assert_eq!(refused.reason_str(), "STATEMENT_INVALID");
    }
    // Nor does it turn a held action into one that a rule allowed.
    let mut ruled = Order { decision: None, ..truth.clone() };
    ruled.fit_warrant(DecisionKind::Rule, taken.trust.journal());
    assert_eq!(taken.execute(&ruled).expect_err("rule").reason_str(), "STATEMENT_INVALID");

    // A reservation that names other bytes, another action or another attempt lets nothing go.
    let forged: [(&str, Lie); 4] = [
        ("DIGEST_MISMATCH", |r| r.action_digest[0] ^= 1),
        ("DIGEST_MISMATCH", |r| r.wire_digest[0] ^= 1),
        ("STATEMENT_INVALID", |r| r.attempt = 2),
        ("STATEMENT_INVALID", |r| r.warrant.push('x')),
    ];
    for (reason, change) in forged {
        let mut reservation = reserve(&truth);
        change(&mut reservation);
        let refused =
            taken.lease("connector", &truth, Some(&signed(&taken, &reservation))).expect_err(reason);
        assert_eq!(refused.reason_str(), reason);
    }
    assert_eq!(taken.granted(), 0);
    assert!(taken.plane.providers().seen().is_empty());

    // What it can: say yes in a person's name to what an agent really proposed and governance ordered.
    let mut order = taken.fresh(proposed);
    order.decision = Some(decide(&taken, &truth, &order));
    order.fit_warrant(DecisionKind::Person, taken.trust.journal());
    let reservation = signed(&taken, &reserve(&order));
    assert!(taken.lease("connector", &order, Some(&reservation)).is_ok(), "the limit of this defence");
    assert_eq!(taken.granted(), 1, "which stands in credential-vault's log, and not in approval's");
}
