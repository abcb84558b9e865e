//! Rules: an ordered rule set, read from YAML, carried as bytes, compiled once and evaluated
//! without clock or I/O. First match wins; what cannot be decided is never approved. Knows no
//! plan, no run and no store.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        reason = "tests may stop at once"
    )
)]

mod analysis;
mod argument;
mod call;
mod check;
mod compiled;
mod context;
mod evaluate;
pub mod file;
mod glob;
mod index;
mod number;
mod rule_set;
mod test;
mod trace;
mod trie;
mod typed;
mod when;
mod window;

#[cfg(test)]
mod tests;

pub use analysis::{Finding, KnownTool, findings};
pub use call::Call;
pub use compiled::Compiled;
pub use evaluate::{DEFAULT_RULE, Decision, Evaluation, decide, evaluate};
pub use rule_set::{MAX_RULE_SET_BYTES, PolicyError, RuleSet};
pub use trace::{Outcome, Step, Trace, explain};

use std::fmt;
use std::time::Duration;

use exequatur_proto::policy::v1 as proto;

/// How long an item waits for a person where no rule says otherwise.
pub const DEFAULT_EXPIRES: Duration = Duration::from_secs(24 * 3600);
/// How long a person's yes stays usable where no rule says otherwise.
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(15 * 60);

/// What rules say, ordered from least to most strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Runs without a person.
    AutoApprove,
    /// A person decides.
    RequireHuman,
    /// Never runs.
    Deny,
}

impl Verdict {
    /// The word in rule files and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AutoApprove => "auto_approve",
            Self::RequireHuman => "require_human",
            Self::Deny => "deny",
        }
    }

    /// The wire form.
    #[must_use]
    pub const fn to_proto(self) -> proto::Verdict {
        match self {
            Self::AutoApprove => proto::Verdict::AutoApprove,
            Self::RequireHuman => proto::Verdict::RequireHuman,
            Self::Deny => proto::Verdict::Deny,
        }
    }

    /// From the wire form; nothing for unspecified and unknown numbers.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        match proto::Verdict::try_from(number) {
            Ok(proto::Verdict::AutoApprove) => Some(Self::AutoApprove),
            Ok(proto::Verdict::RequireHuman) => Some(Self::RequireHuman),
            Ok(proto::Verdict::Deny) => Some(Self::Deny),
            Ok(proto::Verdict::Unspecified) | Err(_) => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stricter of two verdicts.
#[must_use]
pub fn stricter(a: Verdict, b: Verdict) -> Verdict {
    a.max(b)
}

/// Whether verdicts bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They bind.
    Enforce,
    /// They are recorded; what cannot be undone is still held or denied unless the set says
    /// `observe_irreversible`.
    Observe,
}

impl Mode {
    /// The word in rule files and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}
