//! The one transition table. Code, documents and models are checked against it.

use std::fmt;

use crate::machine::Machine;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A rule, scope or limit said no.
    Deny,
    /// A rule asks a person.
    Hold,
    /// A rule allows.
    Allow,
    /// An earlier action did not succeed, or the plan ended.
    Skip,
    /// A person said yes.
    Approve,
    /// A person said no.
    Reject,
    /// A person chose others.
    PassOver,
    /// A deadline passed.
    Expire,
    /// The proposer or an operator took it back.
    Withdraw,
    /// The connector took the attempt.
    Start,
    /// Rules or definition changed.
    Refuse,
    /// The run was revoked.
    Revoke,
    /// The provider did it.
    Succeed,
    /// The provider surely did not, or attempts are exhausted.
    Fail,
    /// Nobody knows.
    Doubt,
    /// The attempt was aborted, surely not sent.
    Abort,
    /// A reconcile query or a person settled it as done.
    ResolveSucceeded,
    /// A reconcile query or a person settled it as not done.
    ResolveFailed,
    /// Promised to one attempt.
    Reserve,
    /// Spent.
    Commit,
    /// Given back after ABORTED.
    Release,
    /// Given back after ABORTED, and its window is over.
    ReleaseLate,
    /// Refused before it was spent.
    Void,
    /// A journal row is opened.
    Prepare,
    /// The first byte may go.
    Dispatch,
    /// The outcome is known.
    Complete,
    /// A run begins.
    Begin,
    /// A run ends by its starter.
    Finish,
    /// A run is cancelled.
    Cancel,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who may cause a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Governance by itself.
    Governance,
    /// Governance, told by approval.
    Approval,
    /// A reviewer at approval.
    Reviewer,
    /// The connector.
    Connector,
    /// The process that wrote DISPATCHED and knows that nothing was sent.
    Dispatcher,
    /// An operator.
    Operator,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Transition {
    /// run, action, item or journal.
    pub machine: &'static str,
    /// State before; empty: the row is new.
    pub from: &'static str,
    /// What happened.
    pub event: Event,
    /// State after.
    pub to: &'static str,
    /// Who may cause it.
    pub who: Who,
}

macro_rules! events {
    ($($variant:ident $word:literal,)*) => {
        impl Event {
            /// The event's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

events! {
    Deny "deny", Hold "hold", Allow "allow", Skip "skip", Approve "approve", Reject "reject",
    PassOver "pass_over", Expire "expire", Withdraw "withdraw", Start "start", Refuse "refuse",
    Revoke "revoke", Succeed "succeed", Fail "fail", Doubt "doubt", Abort "abort",
    ResolveSucceeded "resolve_succeeded", ResolveFailed "resolve_failed", Reserve "reserve",
    Commit "commit", Release "release", ReleaseLate "release_late", Void "void", Prepare "prepare",
    Dispatch "dispatch", Complete "complete", Begin "begin", Finish "finish", Cancel "cancel",
}

macro_rules! table {
    ($($machine:literal: $from:literal $event:ident $to:literal $who:ident;)*) => {
        /// Every transition there is.
        pub const TRANSITIONS: &[Transition] = &[
            $(Transition { machine: $machine, from: $from, event: Event::$event, to: $to, who: Who::$who },)*
        ];
    };
}

table! {
    "run": "" Begin "ACTIVE" Governance;
    "run": "ACTIVE" Finish "COMPLETED" Governance;
    "run": "ACTIVE" Cancel "CANCELLED" Governance;
    "run": "ACTIVE" Expire "EXPIRED" Governance;
    "run": "ACTIVE" Revoke "REVOKED" Governance;

    "action": "PROPOSED" Deny "DENIED" Governance;
    "action": "PROPOSED" Hold "AWAITING_APPROVAL" Governance;
    "action": "PROPOSED" Allow "READY" Governance;
    "action": "PROPOSED" Skip "SKIPPED" Governance;
    "action": "AWAITING_APPROVAL" Approve "READY" Approval;
    "action": "AWAITING_APPROVAL" Reject "REJECTED" Approval;
    "action": "AWAITING_APPROVAL" PassOver "NOT_SELECTED" Approval;
    "action": "AWAITING_APPROVAL" Expire "EXPIRED" Approval;
    "action": "AWAITING_APPROVAL" Withdraw "WITHDRAWN" Governance;
    "action": "AWAITING_APPROVAL" Skip "SKIPPED" Governance;
    "action": "READY" Start "EXECUTING" Governance;
    "action": "READY" Refuse "REFUSED" Governance;
    "action": "READY" Expire "EXPIRED" Governance;
    "action": "READY" Revoke "REVOKED" Governance;
    "action": "READY" Skip "SKIPPED" Governance;
    "action": "EXECUTING" Succeed "SUCCEEDED" Connector;
    "action": "EXECUTING" Fail "FAILED" Connector;
    "action": "EXECUTING" Doubt "IN_DOUBT" Connector;
    "action": "EXECUTING" Abort "READY" Connector;
    "action": "IN_DOUBT" ResolveSucceeded "SUCCEEDED" Operator;
    "action": "IN_DOUBT" ResolveFailed "FAILED" Operator;

    "item": "" Hold "PENDING" Governance;
    "item": "PENDING" Approve "APPROVED" Reviewer;
    "item": "PENDING" Reject "REJECTED" Reviewer;
    "item": "PENDING" PassOver "NOT_SELECTED" Reviewer;
    "item": "PENDING" Expire "EXPIRED" Approval;
    "item": "PENDING" Withdraw "WITHDRAWN" Governance;
    "item": "APPROVED" Reserve "RESERVED" Connector;
    "item": "APPROVED" Revoke "REVOKED" Governance;
    "item": "APPROVED" Expire "EXPIRED" Approval;
    "item": "APPROVED" Void "VOID" Governance;
    "item": "RESERVED" Commit "CONSUMED" Connector;
    "item": "RESERVED" Release "APPROVED" Connector;
    "item": "RESERVED" ReleaseLate "EXPIRED" Connector;

    "journal": "" Prepare "PREPARED" Connector;
    "journal": "PREPARED" Dispatch "DISPATCHED" Connector;
    "journal": "PREPARED" Abort "ABORTED" Connector;
    "journal": "DISPATCHED" Complete "COMPLETED" Dispatcher;
    "journal": "DISPATCHED" Doubt "IN_DOUBT" Connector;
    "journal": "DISPATCHED" Abort "ABORTED" Dispatcher;
    "journal": "IN_DOUBT" ResolveSucceeded "COMPLETED" Operator;
    "journal": "IN_DOUBT" ResolveFailed "COMPLETED" Operator;
}

/// The state after `event`, or `None`: then nothing may be written.
#[must_use]
pub fn next<M: Machine>(from: Option<M>, event: Event) -> Option<M> {
    let from = from.map_or("", Machine::as_str);
    TRANSITIONS
        .iter()
        .find(|t| t.machine == M::NAME && t.from == from && t.event == event)
        .and_then(|t| M::parse(t.to))
}
