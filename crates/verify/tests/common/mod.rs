//! A realm of its own whose zones tell one honest story: an action that a person approved and one
//! that a rule allowed, both executed. Tests change what is told before it is signed, or the file after.
//! Chain and tree are computed here once more, from RFC 6962.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::{Digest, digest_with};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{Head, LogEntry};
use exequatur_proto::statement::v1::{Envelope, Header};
use exequatur_proto::trust::v1::{PublicKey, Purpose, TrustBundle};
use exequatur_statement::{PublicRoot, SigningKey, Statement, seal_bundle, sign, to_json};
use exequatur_verify::{CannotTell, Report, verify};
use prost::Message as _;
use prost_types::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

mod story;

pub(crate) const REALM: &str = "test.example";
pub(crate) const TENANT: &str = "demo";
pub(crate) const ZONES: [&str; 4] = ["governance", "approval", "credential-vault", "connector"];
/// Seconds; every time of the story is told from here.
pub(crate) const NOW: i64 = 1_800_000_000;
/// When the heads are signed: every partner of the story is due then.
pub(crate) const EXPORTED: i64 = NOW + 600;

pub(crate) fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

pub(crate) fn id(zone: &str) -> String {
    format!("spiffe://{REALM}/zone/{zone}")
}

pub(crate) struct Realm {
    pub(crate) root: SigningKey,
    keys: HashMap<(String, Purpose), SigningKey>,
    pub(crate) bundle: TrustBundle,
}

impl Realm {
    fn new() -> Self {
        let root = SigningKey::generate("root", Purpose::Unspecified, "root").unwrap();
        let mut holders: Vec<_> = ZONES.iter().map(|zone| (*zone, Purpose::Ledger)).collect();
        holders.extend([
            ("governance", Purpose::Warrant),
            ("approval", Purpose::Decision),
            ("approval", Purpose::Reservation),
            ("connector", Purpose::Outcome),
        ]);
        let mut keys = HashMap::new();
        let mut public = Vec::new();
        for (zone, purpose) in holders {
            let kid = format!("{zone}-{}", purpose.as_str_name());
            let key = SigningKey::generate(&id(zone), purpose, &kid).unwrap();
            public.push(PublicKey {
                kid,
                holder: id(zone),
                purpose: purpose.into(),
                key: key.public(),
                not_before: at(NOW - 3600),
                ..PublicKey::default()
            });
            keys.insert((zone.to_owned(), purpose), key);
        }
        let bundle = TrustBundle {
            realm: REALM.into(),
            version: 1,
            issued_at: at(NOW - 3600),
            journal: "journal-1".into(),
            keys: public,
            ..TrustBundle::default()
        };
        Self { root, keys, bundle }
    }

    /// Signs a statement of a zone and gives the envelope's bytes.
    pub(crate) fn sign<S: Statement>(&self, zone: &str, statement: &S) -> Vec<u8> {
        sign(&self.keys[&(zone.to_owned(), S::PURPOSE)], statement).unwrap().encode_to_vec()
    }

    pub(crate) fn public_root(&self) -> PublicRoot {
        PublicRoot::new(&self.root.public()).unwrap()
    }
}

pub(crate) fn header(issuer: &str, name: &str, seconds: i64) -> Option<Header> {
    Some(Header {
        issuer: id(issuer),
        audience: id("connector"),
        tenant: TENANT.into(),
        id: name.into(),
        issued_at: at(seconds),
        expires_at: at(seconds + 60),
    })
}

/// A frozen thing beside the log: kind, digest, bytes.
#[derive(Clone)]
pub(crate) struct Beside {
    pub(crate) kind: &'static str,
    pub(crate) digest: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

impl Beside {
    pub(crate) fn new(kind: &'static str, domain: &str, bytes: &[u8]) -> Self {
        let digest = if domain.is_empty() { Digest::sha256(bytes) } else { digest_with(domain, bytes) };
        Self { kind, digest: digest.to_vec(), bytes: bytes.to_vec() }
    }
}

/// What each zone is going to record.
pub(crate) struct Story {
    pub(crate) realm: Realm,
    pub(crate) told: HashMap<&'static str, Vec<(i64, Body)>>,
    pub(crate) beside: HashMap<&'static str, Vec<Beside>>,
}

impl Story {
    /// Entries of a zone.
    pub(crate) fn of(&mut self, zone: &'static str) -> &mut Vec<(i64, Body)> {
        self.told.entry(zone).or_default()
    }

    /// Signs everything and gives the export's lines.
    pub(crate) fn export(&self) -> Export {
        let bundle = seal_bundle(&self.realm.root, &self.realm.bundle).unwrap();
        let first = json!({"format": "exequatur-ledger-v1", "realm": REALM, "tenant": TENANT,
            "bundle": raw(&bundle)});
        let mut lines = vec![Row { zone: "", record: 1, text: first.to_string() }];
        for zone in ZONES {
            self.log(zone, &mut lines);
        }
        Export { lines, root: self.realm.public_root() }
    }

    fn log(&self, zone: &'static str, lines: &mut Vec<Row>) {
        let key = &self.realm.keys[&(zone.to_owned(), Purpose::Ledger)];
        let mut leaves: Vec<Vec<u8>> = Vec::new();
        let told = self.told.get(zone).map(Vec::as_slice).unwrap_or_default();
        for (record, (seconds, body)) in (0..).zip(told) {
            let entry = LogEntry {
                zone: id(zone),
                tenant: TENANT.into(),
                sequence: record,
                previous: leaves.last().cloned().unwrap_or_default(),
                recorded_at: at(*seconds),
                body: Some(body.clone()),
            };
            let envelope = sign(key, &entry).unwrap();
            leaves.push(Sha256::digest([&[0][..], &envelope.encode_to_vec()].concat()).to_vec());
            lines.push(Row::new(zone, record, "entry", &envelope_json(&envelope)));
        }
        let size = leaves.len() as u64;
        for body in self.beside.get(zone).map(Vec::as_slice).unwrap_or_default() {
            let digest: String = body.digest.iter().map(|b| format!("{b:02x}")).collect();
            let json = json!({"kind": body.kind, "digest": digest, "bytes": STANDARD.encode(&body.bytes)});
            lines.push(Row::new(zone, size, "body", &json));
        }
        let head = Head {
            zone: id(zone),
            tenant: TENANT.into(),
            size,
            root: tree(&leaves),
            signed_at: at(EXPORTED),
        };
        lines.push(Row::new(zone, size, "head", &envelope_json(&sign(key, &head).unwrap())));
    }
}

/// RFC 6962's definition, word by word: split at the largest power of two below the count.
fn tree(leaves: &[Vec<u8>]) -> Vec<u8> {
    match leaves {
        [] => Sha256::digest(b"").to_vec(),
        [leaf] => leaf.clone(),
        more => {
            let split = more.len().next_power_of_two() / 2;
            let (left, right) = more.split_at(split);
            Sha256::digest([&[1][..], &tree(left), &tree(right)].concat()).to_vec()
        }
    }
}

fn raw(json: &str) -> Json {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn envelope_json(envelope: &Envelope) -> Json {
    raw(&to_json(envelope))
}

/// One line with the place that the verifier must name for it.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) zone: &'static str,
    pub(crate) record: u64,
    pub(crate) text: String,
}

impl Row {
    fn new(zone: &'static str, record: u64, what: &str, json: &Json) -> Self {
        Self { zone, record, text: json!({"zone": zone, what: json}).to_string() }
    }

    pub(crate) fn is(&self, what: &str) -> bool {
        self.text.contains(&format!("\"{what}\":{{"))
    }
}

/// An export as lines.
pub(crate) struct Export {
    pub(crate) lines: Vec<Row>,
    pub(crate) root: PublicRoot,
}

impl Export {
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|l| format!("{}\n", l.text)).collect()
    }

    pub(crate) fn verify(&self) -> Result<Report, CannotTell> {
        self.verify_bytes(self.text().as_bytes())
    }

    pub(crate) fn verify_bytes(&self, bytes: &[u8]) -> Result<Report, CannotTell> {
        verify(bytes, &self.root)
    }

    /// Zone, record and words of the first fault.
    pub(crate) fn fault(&self) -> (String, u64, String) {
        let report = self.verify().unwrap();
        assert!(!report.valid, "this export is not valid");
        let fault = report.first_fault.unwrap();
        (fault.zone, fault.record, fault.what)
    }

    /// Index of the n-th line of a zone and kind.
    pub(crate) fn line(&self, zone: &str, what: &str, n: usize) -> usize {
        let all = self.lines.iter().enumerate().filter(|(_, l)| l.zone == zone && l.is(what));
        all.map(|(index, _)| index).nth(n).unwrap()
    }
}
