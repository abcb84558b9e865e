//! What a connector process does with a question, a task and a row that somebody left. Each call is one
//! transaction of the journal, or one call of another zone.

use exequatur_lifecycle::{Event, Journal, next};

use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::world::{ATTEMPTS, At, Index, Message, Outcome, Owed, Row, Task, World, step};

impl Protocol {
    /// A question arrives at a process: it opens an attempt, joins one, or answers what is written.
    pub(crate) fn take_ask(&self, world: &mut World, executor: u8, index: Index, attempt: u8) {
        let opens = match world.journal[index] {
            None => attempt == 1 || self.is(Fault::NextAttemptWithoutAbort),
            Some(row) if row.state == Journal::Aborted => {
                (attempt == row.attempt + 1 && attempt <= ATTEMPTS) || self.is(Fault::SameAttemptAgain)
            }
            Some(row) => self.is(Fault::NextAttemptWithoutAbort) && attempt > row.attempt,
        };
        if opens {
            let Some(state) = next::<Journal>(None, Event::Prepare) else { return };
            world.journal[index] = Some(Row { state, attempt, outcome: None });
            world.tasks.insert(Task { executor, index, attempt, at: At::Reserve });
            return;
        }
        // Under way here: its end is the answer. Under way elsewhere: ask again.
        if let Some(Row { attempt, outcome: Some(outcome), .. }) = world.journal[index] {
            world.net.insert(Message::Answer(index, attempt, outcome));
        } else if !world.tasks.iter().any(|t| t.executor == executor && t.index == index) {
            world.waiting = None;
        }
    }

    /// DISPATCHED, if the row is still this attempt's and PREPARED.
    pub(crate) fn dispatch(&self, world: &mut World, task: Task) {
        let Some(row) = &mut world.journal[task.index] else { return };
        let fence = row.attempt == task.attempt && row.state == Journal::Prepared;
        if self.is(Fault::DispatchWithoutFence) {
            (row.state, row.attempt, row.outcome) = (Journal::Dispatched, task.attempt, None);
        } else if !(fence && step(&mut row.state, Event::Dispatch)) {
            return self.give_up(world, task);
        }
        world.seen[task.index].dispatched = true;
        world.moved(task, At::Send);
    }

    /// Whether a process may still begin to send: a row that was swept was swept long after the deadline.
    pub(crate) fn may_send(&self, world: &World, task: Task) -> bool {
        let own = |row: Row| row.state == Journal::Dispatched && row.attempt == task.attempt;
        let anyhow = self.is(Fault::SendAfterSweep) || self.is(Fault::SendBeforeDispatch);
        anyhow || world.journal[task.index].is_some_and(own)
    }

    /// The provider does it.
    pub(crate) fn effect(world: &mut World, index: Index) {
        let seen = &mut world.seen[index];
        seen.effects = seen.effects.saturating_add(1).min(2);
        seen.after_settled |= seen.settled.is_some();
    }

    /// What a task takes a lost answer for.
    pub(crate) fn unclear(&self) -> Outcome {
        if self.is(Fault::UnclearIsNotSent) {
            Outcome::Aborted
        } else if self.is(Fault::UnclearIsDone) {
            Outcome::Succeeded
        } else {
            Outcome::InDoubt
        }
    }

    /// Writes the end of an attempt, from the state that the task left.
    pub(crate) fn conclude(&self, world: &mut World, task: Task, from: Journal, outcome: Outcome) {
        if let Some(row) = &mut world.journal[task.index] {
            if self.is(Fault::ConcludeWithoutFence) {
                (row.state, row.attempt) = (from, task.attempt);
            }
            if row.attempt == task.attempt && row.state == from {
                self.end(world, task.index, outcome);
            }
        }
        self.give_up(world, task);
    }

    /// The task ends; whoever waits gets what is written.
    fn give_up(&self, world: &mut World, task: Task) {
        world.tasks.remove(&task);
        if let Some(Row { attempt, outcome: Some(outcome), .. }) = world.journal[task.index] {
            world.net.insert(Message::Answer(task.index, attempt, outcome));
        }
    }

    /// Row, signed outcome and what is owed, in one transaction.
    fn end(&self, world: &mut World, index: Index, outcome: Outcome) {
        let Some(row) = &mut world.journal[index] else { return };
        let event = match outcome {
            Outcome::Aborted => Event::Abort,
            Outcome::InDoubt => Event::Doubt,
            Outcome::Succeeded | Outcome::Failed => Event::Complete,
        };
        if !step(&mut row.state, event) {
            return;
        }
        row.outcome = Some(outcome);
        let attempt = row.attempt;
        match outcome {
            Outcome::Aborted if self.is(Fault::AbortOwesNothing) => {}
            Outcome::InDoubt if self.is(Fault::DoubtSpendsNothing) => {}
            Outcome::Aborted => drop(world.owed.insert(Owed::Release(index, attempt))),
            _ => drop(world.owed.insert(Owed::Commit(index, attempt))),
        }
    }

    /// Whether another process than the task's may settle a row: its time is over.
    pub(crate) fn may_sweep(world: &World, executor: u8, index: Index) -> bool {
        let open = |row: Row| matches!(row.state, Journal::Prepared | Journal::Dispatched);
        world.journal[index].is_some_and(open)
            && !world.tasks.iter().any(|t| t.executor == executor && t.index == index)
    }

    /// Settles a row that its process left, or is too slow for.
    pub(crate) fn sweep(&self, world: &mut World, index: Index) {
        let outcome = match world.journal[index].map(|row| row.state) {
            Some(Journal::Dispatched) if !self.is(Fault::SweepAbortsDispatched) => Outcome::InDoubt,
            _ => Outcome::Aborted,
        };
        self.end(world, index, outcome);
    }

    /// An operator looked at the provider and settles a doubt.
    pub(crate) fn resolve(&self, world: &mut World, index: Index) -> bool {
        let done = world.seen[index].effects > 0;
        let Some(row) = &mut world.journal[index] else { return false };
        let event = if done { Event::ResolveSucceeded } else { Event::ResolveFailed };
        if !step(&mut world.governance[index].state, event) || !step(&mut row.state, event) {
            return false;
        }
        row.outcome = Some(if done { Outcome::Succeeded } else { Outcome::Failed });
        world.seen[index].settled = Some(done);
        self.progress(world);
        true
    }

    /// A process dies with everything in its memory.
    pub(crate) fn crash(&self, world: &mut World, executor: u8) {
        world.tasks.retain(|task| task.executor != executor);
        if self.is(Fault::OwedInMemory) {
            world.owed.clear();
        }
    }
}
