//! What the logs say, as far as it must fit together across zones.

use std::collections::{BTreeMap, HashMap};

use exequatur_lifecycle::TRANSITIONS;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{LeaseEvent, LogEntry, ProposedAction, Receipt, Transition};

use crate::zone::millis;

/// An action everywhere: (plan digest, index).
pub(crate) type Key = (Vec<u8>, u32);

/// Something with its place.
pub(crate) struct Placed<T> {
    pub(crate) record: u64,
    pub(crate) at: i64,
    pub(crate) what: T,
}

/// What was collected.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) proposals: HashMap<Key, Placed<ProposedAction>>,
    pub(crate) actions: Vec<Placed<Transition>>,
    pub(crate) items: Vec<Placed<Transition>>,
    pub(crate) journal: Vec<Placed<Transition>>,
    pub(crate) receipts: Vec<Placed<Receipt>>,
    pub(crate) leases: Vec<Placed<LeaseEvent>>,
    /// Bodies that must lie beside the log: (zone, kind, digest).
    pub(crate) bodies: Vec<Placed<(String, &'static str, Vec<u8>)>>,
    /// The first transition that the table does not have: (zone, record).
    pub(crate) impossible: Option<(String, u64)>,
    states: HashMap<(String, &'static str, Key, String), String>,
}

impl Facts {
    pub(crate) fn take(&mut self, zone: &str, record: u64, entry: LogEntry) {
        let at = entry.recorded_at.as_ref().map_or(0, millis);
        self.needs(zone, record, at, entry.body.as_ref());
        match (zone, entry.body) {
            ("governance", Some(Body::PlanProposed(plan))) => {
                for action in plan.actions {
                    let key = (plan.plan_digest.clone(), action.index);
                    self.states.insert(
                        (zone.to_owned(), "action", key.clone(), String::new()),
                        action.state.clone(),
                    );
                    self.proposals.insert(key, Placed { record, at, what: action });
                }
            }
            ("governance", Some(Body::Receipt(what))) => self.receipts.push(Placed { record, at, what }),
            ("credential-vault", Some(Body::Lease(what))) => self.leases.push(Placed { record, at, what }),
            (_, Some(Body::Transition(what))) => self.transition(zone, record, at, what),
            _ => {}
        }
    }

    /// What somebody proposed, registered or got back can be read, not only its digest.
    fn needs(&mut self, zone: &str, record: u64, at: i64, body: Option<&Body>) {
        let mut need = |kind, digest: &[u8]| {
            if !digest.is_empty() {
                self.bodies.push(Placed { record, at, what: (zone.to_owned(), kind, digest.to_vec()) });
            }
        };
        match body {
            Some(Body::PlanProposed(plan)) => {
                need("plan_header", &plan.plan_digest);
                for action in &plan.actions {
                    need("action", &action.action_digest);
                    need("prepared_request", &action.wire_digest);
                }
            }
            Some(Body::RegisterChanged(change)) if change.change == "put" => match change.register.as_str() {
                "tool" => need("definition", &change.digest),
                "rule_set" => need("rule_set", &change.digest),
                _ => {}
            },
            _ => {}
        }
    }

    fn transition(&mut self, zone: &str, record: u64, at: i64, what: Transition) {
        if !self.is_possible(zone, &what) && self.impossible.is_none() {
            self.impossible = Some((zone.to_owned(), record));
        }
        let placed = Placed { record, at, what };
        match (zone, placed.what.machine.as_str()) {
            ("governance", "action") => self.actions.push(placed),
            ("approval", "item") => self.items.push(placed),
            ("connector", "journal") => self.journal.push(placed),
            _ => {}
        }
    }

    /// The table has the move, and it starts where the last one ended.
    fn is_possible(&mut self, zone: &str, t: &Transition) -> bool {
        let row = TRANSITIONS.iter().find(|row| {
            row.machine == t.machine && row.from == t.from && row.event.as_str() == t.event && row.to == t.to
        });
        let Some(row) = row else { return false };
        // Each attempt is a journal row of its own.
        let part = if t.machine == "journal" { t.attempt.to_string() } else { t.run.clone() };
        let key = (zone.to_owned(), row.machine, (t.plan_digest.clone(), t.index), part);
        let before = self.states.insert(key, t.to.clone()).unwrap_or_default();
        before == t.from
    }
}

impl Facts {
    /// Per credential the leases for which Vault was or may have been asked.
    pub(crate) fn vault_leases(&self) -> BTreeMap<String, u64> {
        let mut count = BTreeMap::new();
        for lease in self.leases.iter().filter(|l| matches!(l.what.event.as_str(), "handed_over" | "failed"))
        {
            *count.entry(lease.what.credential.clone()).or_default() += 1;
        }
        count
    }
}
