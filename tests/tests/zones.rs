//! Attack row S01 from a zone that was taken over: governance's real certificate and its real key sign
//! whatever an attacker wants, and the running connector still executes only what a person approved.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use std::time::Duration;

use exequatur_proto::statement::v1::{Decision, DecisionKind, OutcomeKind};
use exequatur_statement::{Statement as _, sign_bytes};
use exequatur_testkit::eventually;
use prost::Message as _;
use serde_json::json;
use support::{Order, Taken};

/// A lie: what it is, the reason that it is refused for, and how the true order becomes it. The last
/// argument is another plan's approved order.
type Lie = (&'static str, &'static str, fn(&Taken, &mut Order, &Order));

const LIES: &[Lie] = &[
    ("other bytes under the true digests", "DIGEST_MISMATCH", |_, o, _| other_number(o)),
    ("other bytes, a warrant that fits them", "DIGEST_MISMATCH", |taken, o, _| {
        other_number(o);
        *o = taken.fresh(o.clone());
    }),
    ("other bytes, header and warrant that fit them", "DIGEST_MISMATCH", |taken, o, _| all_fitting(taken, o)),
    ("the same without the decision", "INVALID_FIELD", |taken, o, _| {
        all_fitting(taken, o);
        o.decision = None;
    }),
    ("the same as if a rule were enough", "STATEMENT_INVALID", |taken, o, _| {
        all_fitting(taken, o);
        o.decision = None;
        o.warrant.decision_kind = DecisionKind::Rule.into();
    }),
    ("the same with a decision of governance's own", "STATEMENT_INVALID", |taken, o, _| {
        all_fitting(taken, o);
        forge_decision(taken, o);
    }),
    ("another wire digest", "DIGEST_MISMATCH", |_, o, _| o.warrant.wire_digest[0] ^= 1),
    ("another action digest", "DIGEST_MISMATCH", |_, o, _| o.warrant.action_digest[0] ^= 1),
    ("another plan digest", "DIGEST_MISMATCH", |_, o, _| o.warrant.plan_digest[0] ^= 1),
    ("another tool digest", "DIGEST_MISMATCH", |_, o, _| o.warrant.tool_digest[0] ^= 1),
    ("an attempt that nothing opened", "ATTEMPT_CLOSED", |_, o, _| o.warrant.attempt = 2),
    ("an attempt with another plan's decision as its ABORTED", "ATTEMPT_CLOSED", |_, o, other| {
        o.warrant.attempt = 2;
        o.warrant.previous_abort = other.decision.as_ref().unwrap().encode_to_vec();
    }),
    ("the decision of another plan", "DIGEST_MISMATCH", |_, o, other| o.decision.clone_from(&other.decision)),
    ("the header of another plan", "DIGEST_MISMATCH", |_, o, other| o.header.clone_from(&other.header)),
    ("a rule for a tool that a person decides", "STATEMENT_INVALID", |_, o, _| {
        o.warrant.decision_kind = DecisionKind::Rule.into();
    }),
    ("more credentials than the definition uses", "STATEMENT_INVALID", |_, o, _| {
        o.warrant.credentials.push("files-token".to_owned());
    }),
    ("another run", "STATEMENT_INVALID", |_, o, _| o.warrant.run.push('x')),
    ("another journal", "JOURNAL_MISMATCH", |_, o, _| o.warrant.journal.push('x')),
    ("a start that is over", "WARRANT_EXPIRED", |_, o, _| {
        o.warrant.start_by = o.warrant.header.as_ref().unwrap().issued_at;
    }),
    ("a warrant under governance's ledger key", "STATEMENT_INVALID", |_, o, _| {
        o.signer = ("governance", "ledger");
    }),
];

fn other_number(order: &mut Order) {
    order.alter_action(&json!({"to": "+15550666", "body": "Hello"}));
}

/// Other bytes, and every digest around them computed anew.
fn all_fitting(taken: &Taken, order: &mut Order) {
    other_number(order);
    order.rewrite_header();
    *order = taken.fresh(order.clone());
}

/// The true decision with the new digests, under the only kind of key that governance has.
fn forge_decision(taken: &Taken, order: &mut Order) {
    let truth = order.decision.as_ref().unwrap();
    let mut decision = Decision::decode(truth.payload.as_slice()).unwrap();
    decision.plan_digest.clone_from(&order.warrant.plan_digest);
    decision.items[0].action_digest.clone_from(&order.warrant.action_digest);
    decision.items[0].wire_digest.clone_from(&order.warrant.wire_digest);
    let key = taken.key("governance", "warrant");
    order.decision = Some(sign_bytes(&key, Decision::TYPE, decision.encode_to_vec()));
}

#[test]
fn a_stolen_governance_executes_nothing_but_what_was_approved() {
    let taken = Taken::start();
    let (plan, neighbour) = (taken.sms("+15550160"), taken.sms("+15550161"));
    taken.hold(&[&plan, &neighbour]);
    let (truth, other) = (taken.order(&plan), taken.order(&neighbour));
    for (what, reason, change) in LIES {
        let mut order = taken.fresh(truth.clone());
        change(&taken, &mut order, &other);
        let before = taken.refusals("connector", "governance", reason);
        let refused = taken.execute(&order).expect_err(what);
        assert_eq!(refused.reason_str(), *reason, "{what}: {refused}");
        let after = taken.refusals("connector", "governance", reason);
        assert_eq!(after, before + 1, "{what}: one record");
    }
    assert!(taken.plane.providers().seen().is_empty(), "no provider heard of it");
    assert!(taken.attempts(&truth).is_empty() && taken.granted() == 0, "and no attempt was opened");

    // The harmless one: what was approved.
    let done = taken.execute(&taken.fresh(other.clone())).unwrap();
    assert_eq!(done.kind(), OutcomeKind::Succeeded, "{}", done.reason);

    // The yes is unspent: the true dispatcher uses it at its first attempt, and repeats nothing.
    taken.let_go();
    for (plan, order, to) in [(&plan, &truth, "+15550160"), (&neighbour, &other, "+15550161")] {
        let action = taken.until(plan, &["SUCCEEDED", "FAILED", "REFUSED", "IN_DOUBT"]);
        assert_eq!(action["state"], "SUCCEEDED", "{action}");
        assert_eq!(taken.attempts(order), [1]);
        assert_eq!(taken.sent(to), 1, "exactly once");
    }
    assert_eq!(taken.sent("+15550666"), 0);
    unproposed(&taken, &other);
}

/// A tool that needs no person is governance's to order; what it keeps out of its own log is found by whoever
/// verifies all logs together.
fn unproposed(taken: &Taken, run: &Order) {
    let verify = || {
        let file = taken.plane.folder().join("evidence.jsonl");
        let (file, root) = (file.to_str().unwrap(), taken.plane.ready().text("/root_key"));
        assert_eq!(taken.plane.cli(&["ledger", "export", "--out", file]).code, 0);
        taken.plane.cli(&["ledger", "verify", file, "--root-key", &root])
    };
    let verified = verify();
    assert_eq!(verified.code, 0, "refused lies leave the evidence whole: {}", verified.stdout);

    let read = taken.execute(&taken.read_contact(run)).unwrap();
    assert_eq!(read.kind(), OutcomeKind::Succeeded, "{}", read.reason);
    assert_eq!(taken.plane.providers().of("crm").len(), 1);
    let fault = eventually("the evidence tells", Duration::from_secs(30), || {
        let fault = verify().json["first_fault"].clone();
        fault.is_object().then_some(fault)
    });
    assert_eq!(fault["zone"], "connector");
    assert_eq!(fault["what"], "governance has no record of what was executed");
}
