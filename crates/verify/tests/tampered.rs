//! A genuine export is valid; changed, dropped, moved or cut it is not, and the first fault says where.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may stop at once")]

mod common;

use common::{EXPORTED, Export, NOW, Story, TENANT, ZONES, at};
use exequatur_proto::trust::v1::Purpose;
use exequatur_statement::{PublicRoot, SigningKey};
use exequatur_verify::verify;

#[test]
fn a_genuine_export_is_valid() {
    let export = Story::new().export();
    let report = export.verify().unwrap();
    assert_eq!(report.first_fault, None);
    assert!(report.valid);
    assert_eq!(report.open, 0);
    assert_eq!(report.root_key_fingerprint, export.root.fingerprint());
    let sizes: Vec<_> = report.zones.iter().map(|z| (z.zone.as_str(), z.size)).collect();
    assert_eq!(
        sizes,
        [("governance", 8), ("approval", 4), ("credential-vault", 4), ("connector", 6)],
        "every record was counted"
    );
    assert!(Story::empty().export().verify().unwrap().valid, "nothing happened: nothing is wrong");
    // The last line feed carries nothing.
    let text = export.text();
    assert!(export.verify_bytes(text.trim_end().as_bytes()).unwrap().valid);
}

/// Every changed byte is found, and found where it lies. `step`: which positions.
fn flips(export: &Export, step: impl Fn(usize) -> usize) -> usize {
    let mut flipped = 0;
    let mut start = 0;
    let text = export.text();
    for (number, line) in (1..).zip(&export.lines) {
        let length = line.text.len() + 1;
        for offset in (0..length).step_by(step(length)) {
            let mut bytes = text.as_bytes().to_vec();
            let position = start + offset;
            bytes[position] ^= [0x01, 0x20, 0x80, 0x04][position % 4];
            let changed = || {
                let from = position.saturating_sub(20);
                String::from_utf8_lossy(&bytes[from..text.len().min(position + 20)]).into_owned()
            };
            flipped += 1;
            let Ok(report) = export.verify_bytes(&bytes) else {
                assert_eq!(number, 1, "only of a file without a first line nobody can tell: {}", changed());
                continue;
            };
            assert!(!report.valid, "line {number} byte {offset} does not matter: {}", changed());
            let fault = report.first_fault.unwrap();
            let found = (fault.zone.as_str(), fault.record);
            // The tenant stands in the first line and in every record; the first record differs.
            let tenant = number == 1 && fault.what.ends_with("of another tenant");
            let named = found == ("", number) || found == (line.zone, line.record);
            assert!(named || tenant, "line {number} byte {offset}: {fault} in {}", changed());
        }
        start += length;
    }
    assert_eq!(start, text.len(), "the whole file was walked");
    flipped
}

#[test]
fn every_flipped_byte_of_a_short_export_is_found() {
    let export = Story::empty().export();
    assert!(flips(&export, |_| 1) > 3000, "a bundle and four heads");
}

#[test]
fn flipped_bytes_of_every_record_are_found() {
    let export = Story::new().export();
    // Every third byte of a body; a prime beyond, so that every kind of place and of change is met.
    assert!(flips(&export, |length| if length < 400 { 3 } else { 53 }) > 700, "every record is among them");
}

#[test]
fn a_dropped_record_is_found() {
    let whole = Story::new().export();
    for index in 1..whole.lines.len() {
        let mut export = Story::new().export();
        let line = export.lines.remove(index);
        let (zone, _, what) = export.fault();
        assert_eq!(zone, line.zone, "{what}: {}", line.text);
    }
    // Which entry: its place is empty.
    let mut export = Story::new().export();
    export.lines.remove(export.line("approval", "entry", 2));
    let (zone, record, what) = export.fault();
    assert_eq!((zone.as_str(), record), ("approval", 2), "{what}");
    // The first line.
    let mut export = Story::new().export();
    export.lines.remove(0);
    assert!(export.verify().is_err());
}

#[test]
fn swapped_and_repeated_records_are_found() {
    let mut export = Story::new().export();
    let (one, two) = (export.line("connector", "entry", 2), export.line("connector", "entry", 3));
    export.lines.swap(one, two);
    assert_eq!((export.fault().0.as_str(), export.fault().1), ("connector", 2));

    let whole = Story::new().export();
    for index in 1..whole.lines.len() {
        let mut export = Story::new().export();
        let line = export.lines[index].clone();
        export.lines.insert(index, line.clone());
        let (zone, _, what) = export.fault();
        assert_eq!(zone, line.zone, "{what}: {}", line.text);
    }
    // Another zone's record in this zone's log.
    let mut export = Story::new().export();
    let (own, other) = (export.line("approval", "entry", 0), export.line("connector", "entry", 0));
    export.lines[own].text = export.lines[other].text.replacen("\"connector\"", "\"approval\"", 1);
    assert_eq!((export.fault().0.as_str(), export.fault().1), ("approval", 0));
    // Zones follow one another in any order: each has its own chain.
    let mut export = Story::new().export();
    let from = export.line("connector", "entry", 0);
    let connector = export.lines.split_off(from);
    export.lines.splice(1..1, connector);
    assert!(export.verify().unwrap().valid, "{:?}", export.verify());
}

#[test]
fn a_cut_tail_is_found() {
    let export = Story::new().export();
    let text = export.text();
    for length in (0..text.len() - 1).step_by(211).chain(text.len() - 40..text.len() - 1) {
        match export.verify_bytes(&text.as_bytes()[..length]) {
            Ok(report) => assert!(!report.valid, "cut after {length} of {}", text.len()),
            Err(_) => assert!(length <= export.lines[0].text.len(), "cut after {length}"),
        }
    }
    // A zone's last entries with its head, under a head from before: the counts differ.
    let mut export = Story::new().export();
    export.lines.remove(export.line("connector", "entry", 5));
    let (zone, record, what) = export.fault();
    assert_eq!((zone.as_str(), record), ("connector", 5));
    assert!(what.contains("the log was cut"), "{what}");
    // All of a zone.
    let mut export = Story::new().export();
    export.lines.retain(|line| line.zone != "approval");
    assert_eq!(export.fault().0, "approval");
}

#[test]
fn another_root_key_believes_nothing() {
    let export = Story::new().export();
    let stranger = SigningKey::generate("root", Purpose::Unspecified, "root").unwrap();
    let stranger = PublicRoot::new(&stranger.public()).unwrap();
    let report = verify(export.text().as_bytes(), &stranger).unwrap();
    assert!(!report.valid);
    let fault = report.first_fault.unwrap();
    assert_eq!((fault.zone.as_str(), fault.record), ("", 1), "{fault}");
    assert_eq!(report.root_key_fingerprint, stranger.fingerprint());
    // Another realm's whole export is as little this one's.
    let mut other = Story::new().export();
    other.root = export.root.clone();
    assert_eq!((other.fault().0.as_str(), other.fault().1), ("", 1));
    // A record that another realm's zone of the same name signed.
    let mut mixed = Story::new().export();
    let index = mixed.line("governance", "entry", 0);
    mixed.lines[index].text.clone_from(&export.lines[index].text);
    assert_eq!((mixed.fault().0.as_str(), mixed.fault().1), ("governance", 0));
}

#[test]
fn what_is_no_export_cannot_be_told() {
    let export = Story::empty().export();
    for text in ["", "\n", "{}\n", "[]\n", "no json", "{\"format\":\"exequatur-ledger-v2\"}\n"] {
        assert!(export.verify_bytes(text.as_bytes()).is_err(), "{text:?}");
    }
    let other = export.text().replacen("exequatur-ledger-v1", "exequatur-ledger-v2", 1);
    assert!(export.verify_bytes(other.as_bytes()).is_err());
    let more = export.text().replacen("{\"", "{\"note\":1,\"", 1);
    assert!(export.verify_bytes(more.as_bytes()).is_err(), "a key that nobody writes");
}

#[test]
fn text_that_readers_could_take_differently_is_refused() {
    let line = |text: String, index: usize| {
        let mut export = Story::new().export();
        export.lines[index].text = text;
        export.fault()
    };
    let export = Story::new().export();
    let index = export.line("approval", "entry", 1);
    let text = &export.lines[index].text;
    for changed in [
        // The same member twice; one reader takes the first, another the last.
        text.replacen("\"payload\":", "\"payload\":\"AAAA\",\"payload\":", 1),
        text.replacen("\"zone\":", "\"zone\":\"connector\",\"zone\":", 1),
        text.replacen("\"zone\"", "\"\\u007aone\"", 1),
        text.replacen("\"zone\":", "\"zone\": ", 1),
        format!("{text} "),
        format!("{text}\r"),
        String::new(),
        text.replacen("\"zone\":", "\"note\":1,\"zone\":", 1),
        text.replacen("\"entry\":", "\"head\":", 1),
    ] {
        let (zone, record, what) = line(changed.clone(), index);
        let here = (zone.is_empty() && record == index as u64 + 1) || (zone == "approval" && record == 1);
        assert!(here, "{zone} {record} {what}: {changed}");
    }
    // Members in another order say the same.
    let mut export = Story::new().export();
    let index = export.line("governance", "body", 0);
    let body =
        serde_json::from_str::<serde_json::Value>(&export.lines[index].text).unwrap()["body"].to_string();
    for text in [
        format!("{{\"zone\":\"governance\",\"body\":{body}}}"),
        format!("{{\"body\":{body},\"zone\":\"governance\"}}"),
    ] {
        export.lines[index].text = text;
        assert!(export.verify().unwrap().valid);
    }
}

#[test]
fn keys_count_only_in_their_time_and_for_their_holder() {
    let revoked = |seconds| {
        let mut story = Story::new();
        let keys = &mut story.realm.bundle.keys;
        let key =
            keys.iter_mut().find(|k| k.holder.ends_with("approval") && k.purpose() == Purpose::Decision);
        key.unwrap().revoked_at = at(seconds);
        story.export()
    };
    let (zone, record, what) = revoked(NOW + 10).fault();
    assert_eq!((zone.as_str(), record), ("approval", 1), "{what}");
    assert!(what.contains("revoked"), "{what}");
    assert!(revoked(EXPORTED).verify().unwrap().valid, "what it signed before stays true");
    // Governance's ledger key in connector's name.
    let mut story = Story::new();
    let keys = &mut story.realm.bundle.keys;
    for key in keys.iter_mut().filter(|k| k.purpose() == Purpose::Ledger) {
        if key.holder.ends_with("connector") {
            key.holder = common::id("governance");
        }
    }
    assert_eq!(story.export().fault().0, "connector");
    // Of another tenant.
    let mut export = Story::new().export();
    let first = export.lines[0].text.replacen(&format!("\"tenant\":\"{TENANT}\""), "\"tenant\":\"other\"", 1);
    export.lines[0].text = first;
    assert_eq!((export.fault().0.as_str(), export.fault().1), (ZONES[0], 0));
}
