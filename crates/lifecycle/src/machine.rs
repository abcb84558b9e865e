//! The states, one enum per machine, with the words used everywhere.

use std::fmt;

/// A set of states with stable words.
pub trait Machine: Copy + Eq + fmt::Debug + 'static {
    /// The machine's name in the table and in log entries.
    const NAME: &'static str;
    /// The state's word.
    fn as_str(self) -> &'static str;
    /// The state of a word.
    fn parse(word: &str) -> Option<Self>;
    /// Whether nothing follows.
    fn is_terminal(self) -> bool {
        !crate::TRANSITIONS.iter().any(|t| t.machine == Self::NAME && t.from == self.as_str())
    }
}

macro_rules! machine {
    ($(#[$doc:meta])* $type:ident $name:literal { $($(#[$vdoc:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }

        impl $type {
            /// All states.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        impl Machine for $type {
            const NAME: &'static str = $name;
            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
            fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

machine! {
    /// An agent's bounded authority.
    Run "run" {
        /// May propose.
        Active "ACTIVE",
        /// Ended by its starter.
        Completed "COMPLETED",
        /// Cancelled.
        Cancelled "CANCELLED",
        /// Its life is over.
        Expired "EXPIRED",
        /// Revoked.
        Revoked "REVOKED",
    }
}

machine! {
    /// One action of a plan, as governance sees it.
    Action "action" {
        /// Being decided; never at rest.
        Proposed "PROPOSED",
        /// A rule, scope or limit said no.
        Denied "DENIED",
        /// A person must decide.
        AwaitingApproval "AWAITING_APPROVAL",
        /// May start when its turn comes.
        Ready "READY",
        /// A person said no.
        Rejected "REJECTED",
        /// A reviewer chose others.
        NotSelected "NOT_SELECTED",
        /// A deadline passed.
        Expired "EXPIRED",
        /// Taken back.
        Withdrawn "WITHDRAWN",
        /// An earlier action did not succeed.
        Skipped "SKIPPED",
        /// At the connector.
        Executing "EXECUTING",
        /// Rules or definition changed after the proposal.
        Refused "REFUSED",
        /// Its run was revoked.
        Revoked "REVOKED",
        /// Done.
        Succeeded "SUCCEEDED",
        /// Surely not done.
        Failed "FAILED",
        /// Nobody knows.
        InDoubt "IN_DOUBT",
    }
}

machine! {
    /// A held action, as approval sees it.
    Item "item" {
        /// Waits for a person.
        Pending "PENDING",
        /// May be spent once.
        Approved "APPROVED",
        /// A person said no.
        Rejected "REJECTED",
        /// Others were chosen.
        NotSelected "NOT_SELECTED",
        /// A deadline passed.
        Expired "EXPIRED",
        /// Taken back.
        Withdrawn "WITHDRAWN",
        /// Promised to one attempt.
        Reserved "RESERVED",
        /// Revoked before it was spent.
        Revoked "REVOKED",
        /// Refused before it was spent.
        Void "VOID",
        /// Spent.
        Consumed "CONSUMED",
    }
}

machine! {
    /// One attempt in the connector's journal.
    Journal "journal" {
        /// Durable before anything is leased.
        Prepared "PREPARED",
        /// Durable before the first byte is sent.
        Dispatched "DISPATCHED",
        /// Surely not sent.
        Aborted "ABORTED",
        /// The outcome is known.
        Completed "COMPLETED",
        /// Nobody knows.
        InDoubt "IN_DOUBT",
    }
}
