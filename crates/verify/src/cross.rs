//! What one zone says must be what the others say. Partners that are not yet due, or younger than
//! their zone's export, are open; partners that should be there and are not make the export invalid.

use std::collections::{HashMap, HashSet};

use exequatur_canonical::Digest;
use exequatur_proto::ledger::v1::{LeaseEvent, Receipt};
use exequatur_proto::statement::v1::{
    Decision, DecisionKind, Envelope, ItemVerdict, Outcome, Reservation, Warrant,
};
use exequatur_statement::{Expect, Statement};
use prost::Message as _;

use crate::facts::{Facts, Key, Placed};
use crate::report::Fault;
use crate::zone::Zones;

/// Zones' clocks differ, and a partner's entry takes a moment.
const GRACE_MS: i64 = 5_000;

struct Cross<'a> {
    facts: &'a Facts,
    zones: &'a Zones<'a>,
    /// Decisions by the digest of their envelope.
    decisions: HashMap<Vec<u8>, Decision>,
    /// Reservations by (action, attempt).
    reservations: HashMap<(Key, u32), Reservation>,
    /// Outcomes by the digest of their envelope.
    outcomes: HashMap<Vec<u8>, Outcome>,
    leases: HashSet<String>,
    open: usize,
}

/// Number of open records, and the first fault.
pub(crate) fn cross_check(facts: &Facts, zones: &Zones<'_>) -> (usize, Option<Fault>) {
    if let Some((zone, record)) = &facts.impossible {
        return (0, Some(Fault::at(zone, *record, "a state change that the transition table does not have")));
    }
    let mut cross = Cross {
        facts,
        zones,
        decisions: HashMap::new(),
        reservations: HashMap::new(),
        outcomes: HashMap::new(),
        leases: facts.leases.iter().map(|l| l.what.lease.clone()).collect(),
        open: 0,
    };
    let fault = cross.run().err();
    (cross.open, fault)
}

impl Cross<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        self.approval()?;
        self.connector()?;
        self.governance()?;
        self.vault()
    }

    fn read<S: Statement>(&self, bytes: &[u8], issuer: &str, at: i64) -> Result<(S, Vec<u8>), String> {
        let envelope = Envelope::decode(bytes).map_err(|_| "a statement cannot be read".to_owned())?;
        let issuer = self.zones.id(issuer);
        let expect = Expect {
            issuer: Some(&issuer),
            audience: None,
            tenant: Some(self.zones.tenant()),
            now: at + GRACE_MS,
            check_expiry: false,
        };
        let verified = self.zones.trust().verify::<S>(&envelope, expect).map_err(|e| e.to_string())?;
        Ok((verified.statement, Digest::sha256(bytes).to_vec()))
    }

    /// Decisions and reservations are signed, fit their items, and each item is spent once at most.
    fn approval(&mut self) -> Result<(), Fault> {
        let mut spent = HashSet::new();
        let mut reserved = HashMap::new();
        for item in &self.facts.items {
            let fail = |what: String| Fault::at("approval", item.record, what);
            let t = &item.what;
            let key: Key = (t.plan_digest.clone(), t.index);
            match t.event.as_str() {
                "approve" | "reject" | "pass_over" => {
                    let (decision, digest) =
                        self.read::<Decision>(&t.statement, "approval", item.at).map_err(fail)?;
                    if !decides(&decision, &key, &t.action_digest, &t.event) {
                        return Err(fail("the decision does not say what the record says".to_owned()));
                    }
                    self.decisions.insert(digest, decision);
                }
                "reserve" => {
                    let (r, _) = self.read::<Reservation>(&t.statement, "approval", item.at).map_err(fail)?;
                    if (r.plan_digest.clone(), r.index) != key || r.action_digest != t.action_digest {
                        return Err(fail("the reservation is of another action".to_owned()));
                    }
                    reserved.insert(key.clone(), ());
                    self.reservations.insert((key, r.attempt), r);
                }
                "commit" => {
                    reserved.remove(&key);
                    if !spent.insert(key) {
                        return Err(fail("one approval was spent twice".to_owned()));
                    }
                }
                "release" | "release_late" => {
                    reserved.remove(&key);
                }
                _ => {}
            }
        }
        self.open += reserved.len();
        Ok(())
    }

    /// Every attempt rests on a warrant for what governance proposed; held ones on a reservation too.
    fn connector(&mut self) -> Result<(), Fault> {
        let mut warrants: HashMap<(Key, u32), (Warrant, Vec<u8>)> = HashMap::new();
        let mut dispatched: HashMap<Key, u32> = HashMap::new();
        let mut unfinished = HashSet::new();
        for attempt in &self.facts.journal {
            let fail = |what: &str| Fault::at("connector", attempt.record, what);
            let t = &attempt.what;
            let key: Key = (t.plan_digest.clone(), t.index);
            match t.event.as_str() {
                "prepare" => {
                    let bytes = t.relied_on.first().map(Vec::as_slice).unwrap_or_default();
                    let (warrant, digest) = self
                        .read::<Warrant>(bytes, "governance", attempt.at)
                        .map_err(|e| fail(&format!("warrant: {e}")))?;
                    if (warrant.plan_digest.clone(), warrant.index) != key
                        || warrant.action_digest != t.action_digest
                    {
                        return Err(fail("the warrant is for another action"));
                    }
                    self.proposed(&key, &warrant, attempt)?;
                    warrants.insert((key.clone(), t.attempt), (warrant, digest));
                    unfinished.insert((key, t.attempt));
                }
                "dispatch" => {
                    let count = dispatched.entry(key.clone()).or_default();
                    *count += 1;
                    if *count > 1 {
                        return Err(fail("one action was dispatched twice"));
                    }
                    let (warrant, _) = warrants
                        .get(&(key.clone(), t.attempt))
                        .ok_or_else(|| fail("dispatched without a warrant"))?;
                    if warrant.decision_kind() == DecisionKind::Person {
                        self.reserved(&key, warrant, attempt)?;
                    }
                }
                "abort" => {
                    // Nothing was sent: what was dispatched and taken back does not count.
                    if t.from == "DISPATCHED" {
                        dispatched.remove(&key);
                    }
                    let ended = (key, t.attempt);
                    unfinished.remove(&ended);
                    self.outcome(attempt, warrants.get(&ended).map(|w| w.1.as_slice()))?;
                }
                _ => {
                    let ended = (key, t.attempt);
                    unfinished.remove(&ended);
                    self.outcome(attempt, warrants.get(&ended).map(|w| w.1.as_slice()))?;
                }
            }
        }
        self.open += unfinished.len();
        Ok(())
    }

    fn proposed(
        &mut self,
        key: &Key,
        warrant: &Warrant,
        attempt: &Placed<exequatur_proto::ledger::v1::Transition>,
    ) -> Result<(), Fault> {
        let fail = |what: &str| Fault::at("connector", attempt.record, what);
        match self.facts.proposals.get(key) {
            Some(proposal) => {
                let p = &proposal.what;
                let same = p.action_digest == warrant.action_digest
                    && p.wire_digest == warrant.wire_digest
                    && p.tool_digest == warrant.tool_digest;
                if !same {
                    return Err(fail("the warrant names other digests than governance proposed"));
                }
                let held = warrant.decision_kind() == DecisionKind::Person;
                if held != (p.verdict == "require_human") || p.verdict == "deny" {
                    return Err(fail("the warrant rests on another kind of decision than was proposed"));
                }
                Ok(())
            }
            None if attempt.at + GRACE_MS > self.zones.exported_at("governance") => {
                self.open += 1;
                Ok(())
            }
            None => Err(fail("governance has no record of what was executed")),
        }
    }

    fn reserved(
        &mut self,
        key: &Key,
        warrant: &Warrant,
        attempt: &Placed<exequatur_proto::ledger::v1::Transition>,
    ) -> Result<(), Fault> {
        let fail = |what: &str| Fault::at("connector", attempt.record, what);
        let relied = attempt.what.relied_on.first().map(Vec::as_slice).unwrap_or_default();
        let (own, _) = self
            .read::<Reservation>(relied, "approval", attempt.at)
            .map_err(|e| fail(&format!("reservation: {e}")))?;
        if own.action_digest != warrant.action_digest || own.wire_digest != warrant.wire_digest {
            return Err(fail("the reservation names other digests than the warrant"));
        }
        match self.reservations.get(&(key.clone(), attempt.what.attempt)) {
            Some(_) => {
                let yes = self.decisions.values().any(|d| decides(d, key, &warrant.action_digest, "approve"));
                if yes { Ok(()) } else { Err(fail("nobody's yes to this action is on record")) }
            }
            None if attempt.at + GRACE_MS > self.zones.exported_at("approval") => {
                self.open += 1;
                Ok(())
            }
            None => Err(fail("approval has no record of the reservation")),
        }
    }

    fn outcome(
        &mut self,
        attempt: &Placed<exequatur_proto::ledger::v1::Transition>,
        warrant: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let fail = |what: String| Fault::at("connector", attempt.record, what);
        let t = &attempt.what;
        let (outcome, digest) = self.read::<Outcome>(&t.statement, "connector", attempt.at).map_err(fail)?;
        if outcome.plan_digest != t.plan_digest
            || outcome.index != t.index
            || outcome.action_digest != t.action_digest
        {
            return Err(fail("the outcome is of another action".to_owned()));
        }
        if warrant != Some(outcome.warrant_digest.as_slice()) {
            return Err(fail("the outcome names another warrant than the attempt began with".to_owned()));
        }
        if !outcome.result_digest.is_empty()
            && !self.zones.has_body("connector", "result", &outcome.result_digest)
        {
            return Err(fail("the body of kind `result` is missing".to_owned()));
        }
        for lease in &outcome.leases {
            if self.leases.contains(lease) {
                continue;
            }
            if attempt.at + GRACE_MS <= self.zones.exported_at("credential-vault") {
                return Err(fail("credential-vault has no record of a lease that was used".to_owned()));
            }
            self.open += 1;
        }
        self.outcomes.insert(digest, outcome);
        Ok(())
    }

    /// Every receipt has the connector's outcome, and a person's decision where one was asked for.
    fn governance(&mut self) -> Result<(), Fault> {
        let mut settled = HashSet::new();
        for receipt in &self.facts.receipts {
            settled.insert((receipt.what.plan_digest.clone(), receipt.what.index));
            self.receipt(receipt)?;
        }
        // Executed, and governance has not heard yet.
        let unheard = self.outcomes.values().filter(|o| {
            use exequatur_proto::statement::v1::OutcomeKind as Kind;
            matches!(o.kind(), Kind::Succeeded | Kind::Failed)
                && !settled.contains(&(o.plan_digest.clone(), o.index))
        });
        self.open += unheard.count();
        Ok(())
    }

    fn receipt(&mut self, receipt: &Placed<Receipt>) -> Result<(), Fault> {
        let fail = |what: &str| Fault::at("governance", receipt.record, what);
        let r = &receipt.what;
        let key: Key = (r.plan_digest.clone(), r.index);
        let proposal = self.facts.proposals.get(&key).ok_or_else(|| fail("a receipt without a proposal"))?;
        if proposal.what.action_digest != r.action_digest || proposal.what.wire_digest != r.wire_digest {
            return Err(fail("the receipt names other digests than the proposal"));
        }
        if Digest::sha256(&r.outcome).as_bytes().as_slice() != r.outcome_digest {
            return Err(fail("the receipt's outcome is not the one that it names"));
        }
        match self.outcomes.get(&r.outcome_digest) {
            Some(o) if (o.plan_digest.clone(), o.index) == key && o.action_digest == r.action_digest => {
                if o.warrant_digest != r.warrant_digest {
                    return Err(fail("the receipt names another warrant than its outcome"));
                }
            }
            Some(_) => return Err(fail("the receipt's outcome is of another action")),
            None if receipt.at + GRACE_MS > self.zones.exported_at("connector") => self.open += 1,
            None => return Err(fail("the connector has no record of the receipt's outcome")),
        }
        if proposal.what.verdict != "require_human" {
            return Ok(());
        }
        match self.decisions.get(&r.decision_digest) {
            Some(d) if decides(d, &key, &r.action_digest, "approve") => Ok(()),
            Some(_) => Err(fail("the receipt's decision does not approve the action")),
            None if receipt.at + GRACE_MS > self.zones.exported_at("approval") => {
                self.open += 1;
                Ok(())
            }
            None => Err(fail("approval has no record of the receipt's decision")),
        }
    }

    /// Counts leases that have not ended yet. What is reused was handed over before, for the same version of
    /// the same credential, and has not ended.
    fn vault(&mut self) -> Result<(), Fault> {
        let mut going: HashMap<&str, &LeaseEvent> = HashMap::new();
        let mut open: HashMap<&str, &LeaseEvent> = HashMap::new();
        for Placed { record, what, .. } in &self.facts.leases {
            match what.event.as_str() {
                "granted" => {
                    let of = &what.reuse_of;
                    let same = |held: &&LeaseEvent| {
                        held.credential == what.credential && held.version == what.version
                    };
                    if !of.is_empty() && !open.get(of.as_str()).is_some_and(same) {
                        let text = "a lease reuses a secret that is not open under the lease which it names";
                        return Err(Fault::at("credential-vault", *record, text));
                    }
                    going.insert(&what.lease, what);
                }
                "handed_over" => drop(open.insert(&what.lease, what)),
                "returned" | "failed" | "expired" => {
                    open.remove(what.lease.as_str());
                    going.remove(what.lease.as_str());
                }
                _ => {}
            }
        }
        self.open += going.len();
        Ok(())
    }
}

/// Whether a decision says this of this action.
fn decides(decision: &Decision, key: &Key, action_digest: &[u8], event: &str) -> bool {
    let verdict = match event {
        "approve" => ItemVerdict::Approved,
        "reject" => ItemVerdict::Rejected,
        _ => ItemVerdict::NotSelected,
    };
    decision.plan_digest == key.0
        && decision
            .items
            .iter()
            .any(|i| i.index == key.1 && i.action_digest == action_digest && i.verdict() == verdict)
}
