//! What a trust bundle must be, and what key files are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod common;

use std::os::unix::fs::PermissionsExt as _;

use common::{NOW, Realm, at, holders, person, zone};
use exequatur_proto::trust::v1::{Purpose, TrustBundle};
use exequatur_statement::{PublicRoot, SigningKey, Trust, from_json, seal_bundle, sign, to_json};

#[test]
fn only_the_root_signs_a_bundle_and_no_bit_of_it_may_change() {
    let realm = Realm::new();
    let text = seal_bundle(&realm.root, &realm.bundle).unwrap();
    let trust = Trust::from_json(&text, &realm.public_root()).unwrap();
    assert_eq!(trust.realm(), common::REALM);
    assert!(trust.is_development());
    let other = PublicRoot::new(&Realm::new().root.public()).unwrap();
    assert!(Trust::from_json(&text, &other).is_err());
    let good = from_json(&text).unwrap();
    for at in 0..good.payload.len() {
        let mut bad = good.clone();
        bad.payload[at] ^= 1;
        assert!(Trust::from_envelope(&bad, &realm.public_root()).is_err(), "byte {at}");
    }
    let mut twice = good.clone();
    twice.signatures.push(good.signatures[0].clone());
    let mut unsigned = good.clone();
    unsigned.signatures.clear();
    let mut relabelled = good;
    relabelled.payload_type = "application/vnd.exequatur.warrant.v1+protobuf".into();
    for bad in [twice, unsigned, relabelled] {
        assert!(Trust::from_json(&to_json(&bad), &realm.public_root()).is_err());
    }
    // A zone's key signs no bundle.
    let by_zone = seal_bundle(realm.key(Purpose::Ledger), &realm.bundle).unwrap();
    assert!(Trust::from_json(&by_zone, &realm.public_root()).is_err());
    // A statement is no bundle.
    let statement = sign(realm.key(Purpose::Warrant), &common::warrant()).unwrap();
    assert!(Trust::from_envelope(&statement, &realm.public_root()).is_err());
}

#[test]
fn a_purpose_belongs_to_one_kind_of_holder() {
    let realm = Realm::new();
    let everybody = [
        zone("governance"),
        zone("approval"),
        zone("credential-vault"),
        zone("connector"),
        person("olga"),
        format!("spiffe://{}/internal/rostering", common::REALM),
        "spiffe://other.example/zone/governance".to_owned(),
        "spiffe://test.example.evil/zone/governance".to_owned(),
        "governance".to_owned(),
        String::new(),
    ];
    for (purpose, rightful) in holders() {
        for holder in &everybody {
            let mut bundle = realm.bundle.clone();
            bundle.keys.iter_mut().find(|k| k.purpose() == purpose).unwrap().holder.clone_from(holder);
            let any_zone = purpose == Purpose::Ledger && holder.contains("//test.example/zone/");
            let want = *holder == rightful || any_zone;
            assert_eq!(realm.trust_of(&bundle).is_ok(), want, "{purpose:?} of `{holder}`");
        }
    }
}

#[test]
fn a_malformed_bundle_is_refused_though_the_root_signed_it() {
    type Change = fn(&mut TrustBundle);
    let realm = Realm::new();
    let changes: [(&str, Change); 7] = [
        ("no realm", |b| b.realm.clear()),
        ("no journal", |b| b.journal.clear()),
        ("short key", |b| b.keys[0].key.truncate(31)),
        ("no purpose", |b| b.keys[0].purpose = 0),
        ("unknown purpose", |b| b.keys[0].purpose = 99),
        ("one id twice", |b| b.keys[1].kid = b.keys[0].kid.clone()),
        ("one key twice", |b| b.keys[1].key = b.keys[0].key.clone()),
    ];
    for (what, change) in changes {
        let mut bundle = realm.bundle.clone();
        change(&mut bundle);
        assert!(realm.trust_of(&bundle).is_err(), "{what}");
    }
}

#[test]
fn the_newest_key_is_found_and_the_named_one() {
    let realm = Realm::new();
    let mut bundle = realm.bundle.clone();
    let next = SigningKey::generate(&zone("connector"), Purpose::Seal, "seal-2").unwrap();
    let mut entry = common::public(&next);
    entry.not_before = Some(at(NOW));
    bundle.keys.push(entry);
    let trust = realm.trust_of(&bundle).unwrap();
    let found = |kid| trust.key(&zone("connector"), Purpose::Seal, kid).map(|k| k.kid);
    assert_eq!(found(None).as_deref(), Some("seal-2"));
    assert_eq!(found(Some("PURPOSE_SEAL")).as_deref(), Some("PURPOSE_SEAL"));
    assert_eq!(found(Some("seal-3")), None);
    assert!(trust.key(&zone("governance"), Purpose::Seal, None).is_none());
}

#[test]
fn a_private_key_file_is_for_its_owner_only_and_a_key_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("warrant.key");
    let key = SigningKey::generate(&zone("governance"), Purpose::Warrant, "kid-1").unwrap();
    key.save(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let loaded = SigningKey::load(&path).unwrap();
    assert_eq!((loaded.holder(), loaded.purpose(), loaded.kid()), (key.holder(), key.purpose(), "kid-1"));
    assert_eq!(loaded.public(), key.public());
    assert_eq!(format!("{loaded:?}"), "SigningKey(kid-1)");
    assert!(key.save(&path).is_err(), "a key is never overwritten");

    let text = std::fs::read_to_string(&path).unwrap();
    for bad in [
        String::new(),
        text.replace("PURPOSE_WARRANT", "PURPOSE_NONE"),
        text.replace("holder: ", "owner: "),
        text.replace("kid: kid-1\n", ""),
        text.lines().filter(|l| l.contains("---") || l.contains(": ")).collect::<Vec<_>>().join("\n"),
    ] {
        std::fs::write(&path, &bad).unwrap();
        let error = SigningKey::load(&path).unwrap_err().to_string();
        assert!(error.contains("is no exequatur private key file"), "{error}");
    }
}

#[test]
fn a_root_file_comes_back_with_its_fingerprint() {
    let realm = Realm::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.pub");
    let root = realm.public_root();
    std::fs::write(&path, root.to_text()).unwrap();
    let loaded = PublicRoot::load(&path).unwrap();
    assert_eq!(loaded, root);
    assert_eq!(loaded.fingerprint().len(), 64);
    std::fs::write(&path, "hello").unwrap();
    assert!(PublicRoot::load(&path).is_err());
    assert!(PublicRoot::new(&[0; 31]).is_err());
}
