//! A plan's state is derived from its actions, never stored.

use crate::machine::{Action, Machine};

/// State of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A person must decide.
    Waiting,
    /// Something may still run.
    Running,
    /// An action is in doubt.
    InDoubt,
    /// All actions are terminal.
    Done,
}

impl Plan {
    /// The state's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Running => "RUNNING",
            Self::InDoubt => "IN_DOUBT",
            Self::Done => "DONE",
        }
    }
}

/// Doubt outweighs waiting, waiting outweighs running.
#[must_use]
pub fn derive_plan(actions: &[Action]) -> Plan {
    if actions.contains(&Action::InDoubt) {
        Plan::InDoubt
    } else if actions.contains(&Action::AwaitingApproval) {
        Plan::Waiting
    } else if actions.iter().all(|a| a.is_terminal()) {
        Plan::Done
    } else {
        Plan::Running
    }
}
