//! Everything that is somewhere: rows in databases, tasks in memory, messages on their way, and what the
//! provider did. Knows no rule.

use std::collections::BTreeSet;

use exequatur_lifecycle::{Action, Event, Item, Journal, Machine, next};

/// Actions of the plan; all want a person.
pub(crate) const ACTIONS: usize = 2;
/// Attempts of an action; the product has five, and the protocol knows only "first" and "next".
pub(crate) const ATTEMPTS: u8 = 2;
/// Processes of the connector over one journal.
pub(crate) const EXECUTORS: u8 = 2;

/// Position of an action.
pub(crate) type Index = usize;

/// How an attempt ended, signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    InDoubt,
    Aborted,
}

/// Governance's row of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) state: Action,
    pub(crate) attempt: u8,
    /// The connector may have it.
    pub(crate) asked: bool,
}

/// Approval's row of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Promised {
    pub(crate) state: Item,
    pub(crate) attempt: u8,
    /// Attempts up to this one are over.
    pub(crate) closed: u8,
    /// Withdrawn as soon as it is given back.
    pub(crate) withdrawn: bool,
}

/// The connector's row of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) state: Journal,
    pub(crate) attempt: u8,
    pub(crate) outcome: Option<Outcome>,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    Reserve,
    Lease,
    Dispatch,
    Send,
    /// Before DISPATCHED.
    Abort,
    /// After DISPATCHED.
    Conclude(Outcome),
}

/// An attempt in the memory of a connector process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Task {
    pub(crate) executor: u8,
    pub(crate) index: Index,
    pub(crate) attempt: u8,
    pub(crate) at: At,
}

/// What the connector's outbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owed {
    Commit(Index, u8),
    Release(Index, u8),
}

/// On its way between governance and connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Message {
    Ask(Index, u8),
    Answer(Index, u8, Outcome),
}

/// What no zone knows and the properties need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Seen {
    /// First decision; `None`: undecided.
    pub(crate) first: Option<bool>,
    /// DISPATCHED was written for the attempt that may have sent.
    pub(crate) dispatched: bool,
    /// The provider did it so often.
    pub(crate) effects: u8,
    /// What an operator said of a doubt.
    pub(crate) settled: Option<bool>,
    /// The provider did it after an operator had looked.
    pub(crate) after_settled: bool,
    /// A secret was let go for an attempt that had no reservation.
    pub(crate) unreserved: bool,
    /// A refusal by a zone of what another zone rightly did.
    pub(crate) contradiction: bool,
}

/// A state of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) governance: [Asked; ACTIONS],
    /// The question under way; gone with a crash.
    pub(crate) waiting: Option<(Index, u8)>,
    pub(crate) items: [Promised; ACTIONS],
    pub(crate) journal: [Option<Row>; ACTIONS],
    pub(crate) tasks: BTreeSet<Task>,
    pub(crate) owed: BTreeSet<Owed>,
    pub(crate) leases: BTreeSet<(Index, u8)>,
    pub(crate) net: BTreeSet<Message>,
    pub(crate) seen: [Seen; ACTIONS],
    pub(crate) crashes: u8,
    pub(crate) mishaps: u8,
}

impl World {
    pub(crate) fn new() -> Self {
        let asked = Asked { state: Action::AwaitingApproval, attempt: 1, asked: false };
        let item = Promised { state: Item::Pending, attempt: 0, closed: 0, withdrawn: false };
        Self {
            governance: [asked; ACTIONS],
            waiting: None,
            items: [item; ACTIONS],
            journal: [None; ACTIONS],
            tasks: BTreeSet::new(),
            owed: BTreeSet::new(),
            leases: BTreeSet::new(),
            net: BTreeSet::new(),
            seen: [Seen::default(); ACTIONS],
            crashes: 0,
            mishaps: 0,
        }
    }

    /// Nothing is going on and nothing will.
    pub(crate) fn is_over(&self) -> bool {
        self.governance.iter().all(|action| action.state.is_terminal())
            && self.tasks.is_empty()
            && self.owed.is_empty()
            && self.items.iter().all(|item| item.state != Item::Reserved && item.state != Item::Approved)
    }

    /// Takes a task one step on.
    pub(crate) fn moved(&mut self, task: Task, at: At) {
        self.tasks.remove(&task);
        self.tasks.insert(Task { at, ..task });
    }
}

/// Moves a state if the table lets it; whether it did.
pub(crate) fn step<M: Machine>(state: &mut M, event: Event) -> bool {
    match next(Some(*state), event) {
        Some(after) => {
            *state = after;
            true
        }
        None => false,
    }
}
