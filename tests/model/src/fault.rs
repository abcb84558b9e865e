//! Faults that are planted to see that the properties find them. Each is a mistake that somebody could make in
//! the place that it names.

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The connector sends before DISPATCHED is durable.
    SendBeforeDispatch,
    /// The connector does not compare the row when it writes DISPATCHED.
    DispatchWithoutFence,
    /// A sweep takes a DISPATCHED row for one that was surely not sent.
    SweepAbortsDispatched,
    /// A lost answer of the provider counts as not sent.
    UnclearIsNotSent,
    /// A lost answer of the provider counts as done.
    UnclearIsDone,
    /// A process sends however long it slept after DISPATCHED.
    SendAfterSweep,
    /// A process writes the end of an attempt over whatever the row says by then.
    ConcludeWithoutFence,
    /// A warrant for attempt 2 opens an attempt whatever became of attempt 1.
    NextAttemptWithoutAbort,
    /// Attempt 1 is opened again after it was aborted.
    SameAttemptAgain,
    /// Approval reserves an item that is reserved already.
    ReserveTwice,
    /// Approval gives an item back for any attempt's ABORTED.
    ReleaseForAnyAttempt,
    /// Time gives a reserved item back.
    ReleaseByTime,
    /// A commit is not owed when the doubt begins.
    DoubtSpendsNothing,
    /// An abort owes no release.
    AbortOwesNothing,
    /// What is owed is kept in memory only.
    OwedInMemory,
    /// Approval reserves what nobody decided.
    ReserveUndecided,
    /// A second decision replaces the first.
    DecideTwice,
    /// Governance dispatches without waiting for a decision.
    DispatchUndecided,
    /// Governance starts the next action while the one before is in doubt.
    OrderIgnoresDoubt,
    /// Governance takes an abort for the end of the action.
    AbortIsFailure,
    /// Governance forgets at a crash what it asked, and asks for the next attempt.
    ForgetsAsked,
    /// credential-vault lets go without a reservation.
    LeaseUnreserved,
}

impl Fault {
    /// Each of these alone breaks a property.
    pub const SINGLE: &'static [Self] = &[
        Self::SendBeforeDispatch,
        Self::DispatchWithoutFence,
        Self::ConcludeWithoutFence,
        Self::SweepAbortsDispatched,
        Self::UnclearIsNotSent,
        Self::UnclearIsDone,
        Self::SendAfterSweep,
        Self::SameAttemptAgain,
        Self::ReserveTwice,
        Self::ReleaseForAnyAttempt,
        Self::ReleaseByTime,
        Self::DoubtSpendsNothing,
        Self::AbortOwesNothing,
        Self::OwedInMemory,
        Self::DecideTwice,
        Self::OrderIgnoresDoubt,
        Self::AbortIsFailure,
        Self::LeaseUnreserved,
    ];

    /// Each of these alone is caught by another zone's door, and both together break a property.
    pub const PAIRS: &'static [[Self; 2]] = &[
        [Self::DispatchUndecided, Self::ReserveUndecided],
        [Self::ForgetsAsked, Self::NextAttemptWithoutAbort],
    ];
}
