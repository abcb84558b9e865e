//! Each signature type offered in each other type's place is refused, and so is each key of another purpose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod common;

use common::{Realm, kinds};
use exequatur_statement::sign_bytes;

#[test]
fn each_type_holds_in_its_own_place_and_in_no_other() {
    let realm = Realm::new();
    let trust = realm.trust();
    let mut pairs = 0;
    for offered in kinds() {
        let envelope = sign_bytes(realm.key(offered.purpose), offered.payload_type, offered.payload.clone());
        for wanted in kinds() {
            let answer = (wanted.read)(&trust, &envelope);
            if offered.name == wanted.name {
                assert_eq!(answer, Ok(()), "{}", offered.name);
                continue;
            }
            pairs += 1;
            let what = format!("{} in the place of {}", offered.name, wanted.name);
            assert!(answer.unwrap_err().to_string().contains("of another type"), "{what}");
            // With the label that the reader wants: the signature covers the label.
            let mut relabelled = envelope.clone();
            relabelled.payload_type = wanted.payload_type.into();
            assert!((wanted.read)(&trust, &relabelled).is_err(), "relabelled {what}");
            // With the bytes that the reader wants under the signature of the offered ones.
            relabelled.payload = wanted.payload.clone();
            assert!((wanted.read)(&trust, &relabelled).is_err(), "refilled {what}");
        }
    }
    assert_eq!(pairs, 7 * 6);
}

#[test]
fn a_key_signs_what_its_purpose_says_and_nothing_else() {
    let realm = Realm::new();
    let trust = realm.trust();
    let (mut held, mut refused) = (0, 0);
    for kind in kinds() {
        for key in &realm.keys {
            // Rightly labelled and rightly signed, by this key.
            let envelope = sign_bytes(key, kind.payload_type, kind.payload.clone());
            let answer = (kind.read)(&trust, &envelope);
            if key.purpose() == kind.purpose {
                assert_eq!(answer, Ok(()), "{}", kind.name);
                held += 1;
            } else {
                let error = answer.unwrap_err().to_string();
                assert!(error.contains("another purpose"), "{} by {key:?}: {error}", kind.name);
                refused += 1;
            }
        }
        // The root speaks for bundles only.
        let by_root = sign_bytes(&realm.root, kind.payload_type, kind.payload.clone());
        assert!((kind.read)(&trust, &by_root).is_err(), "{} by the root", kind.name);
    }
    assert_eq!((held, refused), (7, 7 * 7));
}

#[test]
fn signing_itself_refuses_a_key_of_another_purpose_or_holder() {
    let realm = Realm::new();
    let warrant = common::warrant();
    for key in &realm.keys {
        let signed = exequatur_statement::sign(key, &warrant).is_ok();
        assert_eq!(signed, key.purpose() == exequatur_proto::trust::v1::Purpose::Warrant, "{key:?}");
    }
    let mut foreign = warrant;
    foreign.header = common::header(&common::zone("approval"));
    let key = realm.key(exequatur_proto::trust::v1::Purpose::Warrant);
    assert!(exequatur_statement::sign(key, &foreign).is_err());
}
