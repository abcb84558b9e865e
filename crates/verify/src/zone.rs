//! One zone's log: signatures, numbers, chain, bodies, head and root.

use std::collections::HashSet;

use exequatur_canonical::{Digest, digest_with};
use exequatur_proto::ledger::v1::{Head, LogEntry};
use exequatur_proto::statement::v1::Envelope;
use exequatur_statement::{Expect, Trust};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::facts::Facts;
use crate::line::{Item, Line};
use crate::report::{Fault, ZoneReport};

const NAMES: [&str; 4] = ["governance", "approval", "credential-vault", "connector"];

/// The logs of an export.
pub(crate) struct Zones<'a> {
    trust: &'a Trust,
    tenant: &'a str,
    logs: Vec<Log>,
}

struct Log {
    name: &'static str,
    id: String,
    size: u64,
    previous: Vec<u8>,
    /// Complete subtrees, largest first: (leaves, hash).
    peaks: Vec<(u64, Vec<u8>)>,
    /// Bodies beside the log: (kind, digest).
    bodies: HashSet<(String, Vec<u8>)>,
    head: Option<Head>,
}

impl<'a> Zones<'a> {
    pub(crate) fn new(trust: &'a Trust, tenant: &'a str) -> Self {
        let log = |name| Log {
            name,
            id: format!("spiffe://{}/zone/{name}", trust.realm()),
            size: 0,
            previous: Vec::new(),
            peaks: Vec::new(),
            bodies: HashSet::new(),
            head: None,
        };
        Self { trust, tenant, logs: NAMES.map(log).into_iter().collect() }
    }

    pub(crate) const fn trust(&self) -> &'a Trust {
        self.trust
    }

    pub(crate) const fn tenant(&self) -> &'a str {
        self.tenant
    }

    /// SPIFFE ID of a zone.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("spiffe://{}/zone/{name}", self.trust.realm())
    }

    /// When a zone's head was signed, milliseconds: what is younger lies beyond this export.
    pub(crate) fn exported_at(&self, name: &str) -> i64 {
        let head = self.logs.iter().find(|l| l.name == name).and_then(|l| l.head.as_ref());
        head.and_then(|h| h.signed_at.as_ref()).map_or(0, millis)
    }

    pub(crate) fn take(&mut self, line: Line, facts: &mut Facts) -> Result<(), Fault> {
        let (trust, tenant) = (self.trust, self.tenant);
        let log = self.logs.iter_mut().find(|l| l.name == line.zone);
        let log =
            log.ok_or_else(|| Fault::at("", 0, format!("no zone is called `{}`", line.zone.escape_debug())))?;
        if log.head.is_some() {
            return Err(log.fault("records follow the signed head"));
        }
        match line.item {
            Item::Entry(envelope) => {
                let entry = log.entry(trust, tenant, &envelope)?;
                facts.take(log.name, log.size - 1, entry);
                Ok(())
            }
            Item::Body { kind, digest, bytes } => log.body(&kind, &digest, &bytes),
            Item::Head(envelope) => log.close(trust, tenant, &envelope),
        }
    }

    /// Every zone must have closed its log.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        match self.logs.iter().find(|l| l.head.is_none()) {
            Some(log) => Err(log.fault("the log ends without a signed head")),
            None => Ok(()),
        }
    }

    /// Every body that an entry names lies beside its log.
    pub(crate) fn bodies_of(&self, facts: &Facts) -> Result<(), Fault> {
        for need in &facts.bodies {
            let (zone, kind, digest) = &need.what;
            if !self.has_body(zone, kind, digest) {
                return Err(Fault::at(zone, need.record, format!("the body of kind `{kind}` is missing")));
            }
        }
        Ok(())
    }

    /// Whether these bytes lie beside a zone's log.
    pub(crate) fn has_body(&self, zone: &str, kind: &str, digest: &[u8]) -> bool {
        let body = (kind.to_owned(), digest.to_vec());
        self.logs.iter().any(|l| l.name == zone && l.bodies.contains(&body))
    }

    pub(crate) fn report(&self) -> Vec<ZoneReport> {
        let one = |log: &Log| ZoneReport {
            zone: log.name.to_owned(),
            size: log.size,
            root: log.root().to_string(),
        };
        self.logs.iter().map(one).collect()
    }
}

pub(crate) fn millis(at: &prost_types::Timestamp) -> i64 {
    at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos) / 1_000_000)
}

impl Log {
    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::at(self.name, self.size, what)
    }

    fn entry(&mut self, trust: &Trust, tenant: &str, envelope: &Envelope) -> Result<LogEntry, Fault> {
        let said = LogEntry::decode(envelope.payload.as_slice())
            .map_err(|_| self.fault("the entry cannot be read"))?;
        let now = said.recorded_at.as_ref().map_or(0, millis);
        let expect =
            Expect { issuer: Some(&self.id), audience: None, tenant: None, now, check_expiry: false };
        let entry =
            trust.verify::<LogEntry>(envelope, expect).map_err(|e| self.fault(e.to_string()))?.statement;
        if entry.tenant != tenant {
            return Err(self.fault("the entry is of another tenant"));
        }
        if entry.sequence != self.size || entry.previous != self.previous {
            return Err(self.fault("an entry is missing, added or out of its place"));
        }
        let leaf = hash(0, &[&envelope.encode_to_vec()]);
        self.previous.clone_from(&leaf);
        self.size += 1;
        let mut node = (1, leaf);
        while let Some((size, left)) = self.peaks.pop_if(|(size, _)| *size == node.0) {
            node = (size * 2, hash(1, &[&left, &node.1]));
        }
        self.peaks.push(node);
        Ok(entry)
    }

    fn root(&self) -> Digest {
        let mut peaks = self.peaks.iter().rev();
        let Some((_, last)) = peaks.next() else { return Digest::sha256(b"") };
        let root = peaks.fold(last.clone(), |right, (_, left)| hash(1, &[left, &right]));
        Digest::from_slice(&root).unwrap_or_else(|_| Digest::sha256(b""))
    }

    fn body(&mut self, kind: &str, digest: &Digest, bytes: &[u8]) -> Result<(), Fault> {
        let found = match kind {
            "plan_header" => digest_with("exequatur.plan.v1", bytes),
            "action" => digest_with("exequatur.action.v1", bytes),
            "definition" => digest_with("exequatur.definition.v1", bytes),
            "rule_set" => digest_with("exequatur.ruleset.v1", bytes),
            "prepared_request" => digest_with("exequatur.wire.v1", bytes),
            "result" => Digest::sha256(bytes),
            _ => return Err(self.fault("a body of an unknown kind")),
        };
        if found != *digest {
            return Err(self.fault(format!("a body of kind `{kind}` was changed")));
        }
        if !self.bodies.insert((kind.to_owned(), digest.to_vec())) {
            return Err(self.fault(format!("a body of kind `{kind}` stands twice")));
        }
        Ok(())
    }

    fn close(&mut self, trust: &Trust, tenant: &str, envelope: &Envelope) -> Result<(), Fault> {
        let said =
            Head::decode(envelope.payload.as_slice()).map_err(|_| self.fault("the head cannot be read"))?;
        let now = said.signed_at.as_ref().map_or(0, millis);
        let expect =
            Expect { issuer: Some(&self.id), audience: None, tenant: None, now, check_expiry: false };
        let head =
            trust.verify::<Head>(envelope, expect).map_err(|e| self.fault(format!("head: {e}")))?.statement;
        if head.tenant != tenant {
            return Err(self.fault("the head is of another tenant"));
        }
        if head.size != self.size {
            return Err(self.fault(format!(
                "the log was cut: the head counts {} entries, here are {}",
                head.size, self.size
            )));
        }
        if head.root != self.root().as_bytes() {
            return Err(self.fault("the root is not that of the entries"));
        }
        self.head = Some(head);
        Ok(())
    }
}

/// RFC 6962 section 2.1: 00 before a leaf, 01 before a pair.
fn hash(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update([prefix]);
    for part in parts {
        hash.update(part);
    }
    hash.finalize().to_vec()
}
