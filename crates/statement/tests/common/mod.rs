//! A realm of its own: root, one key for each purpose, statements of every type.
#![allow(dead_code, reason = "each test file uses a part")]

use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::ledger::v1::{Head, LogEntry};
use exequatur_proto::statement::v1::{Decision, Envelope, Header, Outcome, Reservation, Warrant};
use exequatur_proto::trust::v1::{PublicKey, Purpose, TrustBundle};
use exequatur_statement::{
    Expect, PublicRoot, SigningKey, Statement, StatementError, Trust, Verified, seal_bundle,
};
use prost_types::Timestamp;

pub(crate) const REALM: &str = "test.example";
/// Seconds; every time of the tests is told from here.
pub(crate) const NOW: i64 = 1_800_000_000;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

pub(crate) fn zone(name: &str) -> String {
    format!("spiffe://{REALM}/zone/{name}")
}

pub(crate) fn person(name: &str) -> String {
    format!("spiffe://{REALM}/person/{name}")
}

/// Every purpose with a holder that may have it.
pub(crate) fn holders() -> Vec<(Purpose, String)> {
    vec![
        (Purpose::RunToken, zone("governance")),
        (Purpose::Warrant, zone("governance")),
        (Purpose::Decision, zone("approval")),
        (Purpose::Reservation, zone("approval")),
        (Purpose::Outcome, zone("connector")),
        (Purpose::Ledger, zone("governance")),
        (Purpose::Seal, zone("connector")),
        (Purpose::Definition, person("olga")),
    ]
}

pub(crate) struct Realm {
    pub(crate) root: SigningKey,
    pub(crate) keys: Vec<SigningKey>,
    pub(crate) bundle: TrustBundle,
}

impl Realm {
    pub(crate) fn new() -> Self {
        let root = SigningKey::generate("root", Purpose::Unspecified, "root").unwrap();
        let keys: Vec<_> = holders()
            .into_iter()
            .map(|(purpose, holder)| SigningKey::generate(&holder, purpose, purpose.as_str_name()).unwrap())
            .collect();
        let bundle = TrustBundle {
            realm: REALM.into(),
            version: 1,
            issued_at: Some(at(NOW)),
            development: true,
            keys: keys.iter().map(public).collect(),
            principals: Vec::new(),
            journal: "01900000-0000-7000-8000-000000000000".into(),
        };
        Self { root, keys, bundle }
    }

    pub(crate) fn public_root(&self) -> PublicRoot {
        PublicRoot::new(&self.root.public()).unwrap()
    }

    pub(crate) fn key(&self, purpose: Purpose) -> &SigningKey {
        self.keys.iter().find(|k| k.purpose() == purpose).unwrap()
    }

    pub(crate) fn trust(&self) -> Trust {
        self.trust_of(&self.bundle).unwrap()
    }

    pub(crate) fn trust_of(&self, bundle: &TrustBundle) -> Result<Trust, StatementError> {
        Trust::from_json(&seal_bundle(&self.root, bundle)?, &self.public_root())
    }

    /// The bundle with one key changed.
    pub(crate) fn trust_with(&self, purpose: Purpose, change: impl Fn(&mut PublicKey)) -> Trust {
        let mut bundle = self.bundle.clone();
        change(bundle.keys.iter_mut().find(|k| k.purpose() == purpose).unwrap());
        self.trust_of(&bundle).unwrap()
    }
}

pub(crate) fn public(key: &SigningKey) -> PublicKey {
    PublicKey {
        holder: key.holder().into(),
        purpose: key.purpose().into(),
        kid: key.kid().into(),
        key: key.public(),
        not_before: Some(at(NOW - 3600)),
        not_after: Some(at(NOW + 3600)),
        revoked_at: None,
    }
}

pub(crate) fn header(issuer: &str) -> Option<Header> {
    Some(Header {
        issuer: issuer.into(),
        audience: zone("connector"),
        tenant: "t-blue".into(),
        id: "01900000-0000-7000-8000-000000000001".into(),
        issued_at: Some(at(NOW)),
        expires_at: Some(at(NOW + 60)),
    })
}

/// A type of statement, with an example from its rightful issuer and a reader for it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) payload_type: &'static str,
    pub(crate) purpose: Purpose,
    pub(crate) payload: Vec<u8>,
    pub(crate) read: fn(&Trust, &Envelope) -> Result<(), StatementError>,
}

fn kind<S: Statement>(name: &'static str, example: &S) -> Kind {
    Kind {
        name,
        payload_type: S::TYPE,
        purpose: S::PURPOSE,
        payload: example.encode_to_vec(),
        read: |trust, envelope| trust.verify::<S>(envelope, expect()).map(drop),
    }
}

/// All types that travel signed.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        kind("warrant", &warrant()),
        kind("decision", &Decision { header: header(&zone("approval")), quorum: 1, ..Decision::default() }),
        kind("reservation", &Reservation { header: header(&zone("approval")), ..Reservation::default() }),
        kind("outcome", &Outcome { header: header(&zone("connector")), ..Outcome::default() }),
        kind("log entry", &LogEntry { zone: zone("governance"), ..LogEntry::default() }),
        kind("head", &Head { zone: zone("governance"), ..Head::default() }),
        kind("definition", &ToolDefinition { tool: "crm.read".into(), ..ToolDefinition::default() }),
    ]
}

pub(crate) const fn expect() -> Expect<'static> {
    Expect { issuer: None, audience: None, tenant: None, now: NOW * 1000, check_expiry: true }
}

pub(crate) fn warrant() -> Warrant {
    Warrant { header: header(&zone("governance")), index: 1, attempt: 1, ..Warrant::default() }
}

/// What verification of a warrant says, as text.
pub(crate) fn said(result: Result<Verified<Warrant>, StatementError>) -> String {
    result.map_or_else(|e| e.to_string(), |_| "held".to_owned())
}
