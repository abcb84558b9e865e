//! What a reader of a statement does not accept, one change at a time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod common;

use common::{NOW, Realm, at, expect, said, warrant, zone};
use exequatur_proto::errors::v1::Reason;
use exequatur_proto::statement::v1::{Envelope, Header, Warrant};
use exequatur_proto::trust::v1::Purpose;
use exequatur_statement::{Expect, SigningKey, Statement as _, Trust, from_json, sign, sign_bytes, to_json};
use prost::Message as _;

fn read(trust: &Trust, envelope: &Envelope) -> String {
    said(trust.verify::<Warrant>(envelope, expect()))
}

fn signed(realm: &Realm, change: impl Fn(&mut Header)) -> Envelope {
    let mut warrant = warrant();
    change(warrant.header.as_mut().unwrap());
    sign_bytes(realm.key(Purpose::Warrant), Warrant::TYPE, warrant.encode_to_vec())
}

#[test]
fn no_bit_of_payload_or_signature_may_change() {
    let realm = Realm::new();
    let trust = realm.trust();
    let good = sign(realm.key(Purpose::Warrant), &warrant()).unwrap();
    assert_eq!(read(&trust, &good), "held");
    for bit in 0..good.payload.len() * 8 {
        let mut bad = good.clone();
        bad.payload[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(read(&trust, &bad), "held", "payload bit {bit}");
    }
    for bit in 0..64 * 8 {
        let mut bad = good.clone();
        bad.signatures[0].sig[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&trust, &bad), "the signature does not hold", "signature bit {bit}");
    }
    for length in [0, 63, 65] {
        let mut bad = good.clone();
        bad.signatures[0].sig.resize(length, 0);
        assert_eq!(read(&trust, &bad), "the signature does not hold", "{length} bytes");
    }
}

#[test]
fn there_is_exactly_one_signature_by_a_known_key() {
    let realm = Realm::new();
    let trust = realm.trust();
    let good = sign(realm.key(Purpose::Warrant), &warrant()).unwrap();
    let mut none = good.clone();
    none.signatures.clear();
    let mut two = good.clone();
    two.signatures.push(good.signatures[0].clone());
    for bad in [none, two] {
        assert_eq!(read(&trust, &bad), "a statement has exactly one signature");
    }
    let mut unknown = good.clone();
    unknown.signatures[0].keyid = "nobody".into();
    assert_eq!(read(&trust, &unknown), "the key is not in the trust bundle");
    // A key that names a known id and is another one.
    let imposter =
        SigningKey::generate(&zone("governance"), Purpose::Warrant, Purpose::Warrant.as_str_name()).unwrap();
    assert_eq!(read(&trust, &sign(&imposter, &warrant()).unwrap()), "the signature does not hold");
}

#[test]
fn a_payload_has_one_encoding_though_it_is_rightly_signed() {
    let realm = Realm::new();
    let trust = realm.trust();
    let bytes = warrant().encode_to_vec();
    let resign = |payload: Vec<u8>| sign_bytes(realm.key(Purpose::Warrant), Warrant::TYPE, payload);
    // An unknown field; `index` again; a default written out; a varint of two bytes for 0.
    for tail in [&[0x98, 0x06, 0x01][..], &[0x18, 0x01], &[0x48, 0x00], &[0x48, 0x80, 0x00]] {
        let envelope = resign([&bytes, tail].concat());
        assert_eq!(read(&trust, &envelope), "the payload is not in its one encoding", "{tail:?}");
    }
    assert_eq!(read(&trust, &resign(bytes[..bytes.len() - 1].to_vec())), "the payload cannot be read");
    assert_eq!(read(&trust, &resign(Vec::new())), "the statement has no header");
}

#[test]
fn issuer_audience_and_tenant_are_the_expected_ones() {
    let realm = Realm::new();
    let trust = realm.trust();
    let good = sign(realm.key(Purpose::Warrant), &warrant()).unwrap();
    let governance = zone("governance");
    let connector = zone("connector");
    let right =
        Expect { issuer: Some(&governance), audience: Some(&connector), tenant: Some("t-blue"), ..expect() };
    let verified = trust.verify::<Warrant>(&good, right).unwrap();
    assert_eq!(verified.issuer, governance);
    assert_eq!(verified.digest, exequatur_statement::envelope_digest(&good));
    for (expect, why) in [
        (Expect { issuer: Some(&connector), ..right }, "the statement is from another issuer"),
        (Expect { audience: Some(&governance), ..right }, "the statement is for another audience"),
        (Expect { audience: Some(""), ..right }, "the statement is for another audience"),
        (Expect { tenant: Some("t-green"), ..right }, "the statement is of another tenant"),
        (Expect { tenant: Some("t-blue "), ..right }, "the statement is of another tenant"),
    ] {
        let error = trust.verify::<Warrant>(&good, expect).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert_eq!(error.reason(), Reason::StatementInvalid);
    }
    // Governance's key under approval's name.
    let posed = signed(&realm, |h| h.issuer = zone("approval"));
    assert_eq!(read(&trust, &posed), "the key belongs to another holder than the issuer");
}

#[test]
fn an_expectation_that_a_type_cannot_meet_is_not_met() {
    let realm = Realm::new();
    let trust = realm.trust();
    let entry = exequatur_proto::ledger::v1::LogEntry {
        zone: zone("governance"),
        tenant: "t-blue".into(),
        ..Default::default()
    };
    let envelope = sign(realm.key(Purpose::Ledger), &entry).unwrap();
    let verify = |expect| trust.verify::<exequatur_proto::ledger::v1::LogEntry>(&envelope, expect).is_ok();
    assert!(verify(Expect { tenant: Some("t-blue"), ..expect() }));
    assert!(!verify(Expect { tenant: Some("t-green"), ..expect() }));
    assert!(!verify(Expect { audience: Some("anybody"), ..expect() }));
}

#[test]
fn times_hold_with_five_seconds_of_leeway_ahead_and_none_behind() {
    let realm = Realm::new();
    let trust = realm.trust();
    for (issued, expires, want) in [
        (NOW + 5, NOW + 60, "held"),
        (NOW + 6, NOW + 60, "the statement is from the future"),
        (NOW - 60, NOW + 1, "held"),
        (NOW - 60, NOW, "the statement has expired"),
    ] {
        let envelope = signed(&realm, |h| {
            h.issued_at = Some(at(issued));
            h.expires_at = Some(at(expires));
        });
        assert_eq!(read(&trust, &envelope), want, "{issued} {expires}");
    }
    let expired = signed(&realm, |h| h.expires_at = Some(at(NOW)));
    let patient = Expect { check_expiry: false, ..expect() };
    assert_eq!(said(trust.verify::<Warrant>(&expired, patient)), "held");
    for envelope in [signed(&realm, |h| h.issued_at = None), signed(&realm, |h| h.expires_at = None)] {
        assert_eq!(read(&trust, &envelope), "the statement has no times");
    }
    // The ends of time neither wrap nor stop the process.
    for seconds in [i64::MIN, i64::MAX] {
        let envelope = signed(&realm, |h| h.issued_at = Some(at(seconds)));
        assert_ne!(read(&trust, &envelope), "held", "{seconds}");
    }
}

#[test]
fn a_key_signs_within_its_life() {
    let realm = Realm::new();
    let envelope = sign(realm.key(Purpose::Warrant), &warrant()).unwrap();
    let after = "the key was not valid when the statement was signed";
    for (not_before, not_after, want) in [
        (Some(NOW + 5), None, "held"),
        (Some(NOW + 6), None, after),
        (None, Some(NOW + 1), "held"),
        (None, Some(NOW), after),
        (None, None, "held"),
    ] {
        let trust = realm.trust_with(Purpose::Warrant, |k| {
            k.not_before = not_before.map(at);
            k.not_after = not_after.map(at);
        });
        assert_eq!(read(&trust, &envelope), want, "{not_before:?} {not_after:?}");
    }
}

#[test]
fn a_revoked_key_is_refused_at_a_door_whatever_date_is_written() {
    let realm = Realm::new();
    let revoked = |when: i64| realm.trust_with(Purpose::Warrant, |k| k.revoked_at = Some(at(when)));
    // A thief writes a date before the revocation.
    let backdated = signed(&realm, |h| h.issued_at = Some(at(NOW - 600)));
    assert_eq!(read(&revoked(NOW - 300), &backdated), "the key is revoked");
    assert_eq!(read(&revoked(NOW), &backdated), "the key is revoked");
    assert_eq!(read(&revoked(NOW + 1), &backdated), "held");
    // In a log its place says when it was signed.
    let history = revoked(NOW - 300).historical();
    assert_eq!(read(&history, &backdated), "held");
    assert_eq!(read(&history, &signed(&realm, |h| h.issued_at = Some(at(NOW - 300)))), "the key is revoked");
    // Nor is it given out for sealing, tokens or publishing.
    assert!(revoked(NOW).key(&zone("governance"), Purpose::Warrant, None).is_none());
    assert!(revoked(NOW).keys(Purpose::Warrant).is_empty());
    assert_eq!(realm.trust().keys(Purpose::Warrant).len(), 1);
}

#[test]
fn the_json_form_comes_back_and_tolerates_nothing() {
    let realm = Realm::new();
    let good = sign(realm.key(Purpose::Warrant), &warrant()).unwrap();
    let text = to_json(&good);
    assert_eq!(from_json(&text).unwrap(), good);
    for bad in [
        String::new(),
        "{}".into(),
        text.replacen("{", "{\"more\":1,", 1),
        text.replacen("\"keyid\"", "\"other\"", 1),
        text.replacen("\"payload\":\"", "\"payload\":\"*", 1),
        format!("{text}{text}"),
    ] {
        assert!(from_json(&bad).is_err(), "{bad}");
    }
}
