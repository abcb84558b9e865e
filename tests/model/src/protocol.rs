//! Who may move when, and what must always hold. The rules of each zone are in its own file.

use exequatur_lifecycle::{Item, Journal};
use stateright::{Model, Property};

use crate::fault::Fault;
use crate::properties::properties;
use crate::world::{ACTIONS, At, EXECUTORS, Index, Message, Outcome, Owed, Task, World};

/// How much goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Crashes of governance or of a connector process.
    pub crashes: u8,
    /// Messages lost or repeated.
    pub mishaps: u8,
}

/// The model.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// How much goes wrong.
    pub bounds: Bounds,
    /// Mistakes that are planted.
    pub faults: &'static [Fault],
}

/// What the answer of a call was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Answered,
    /// The request never came.
    RequestLost,
    /// It came, and the answer did not.
    AnswerLost,
}

/// What the provider and the network do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    Done,
    DoneUnheard,
    LostUnheard,
    Refused,
    Never,
}

/// One step of anybody. Opaque outside: paths print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step(Move);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Move {
    Decide(Index, bool),
    Learn(Index),
    Ask(Index),
    StopWaiting,
    TakeAsk(u8, Index, u8, bool),
    TakeAnswer(Index, u8, Outcome),
    Reserve(Task, Call),
    Lease(Task, Call),
    Dispatch(Task),
    Send(Task, Sent),
    TooLate(Task),
    Abort(Task),
    Conclude(Task, Outcome),
    Sweep(u8, Index),
    Deliver(Owed, bool),
    Resolve(Index),
    CrashExecutor(u8),
    CrashGovernance,
    ReleaseByTime(Index),
}

impl Protocol {
    pub(crate) fn is(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn calls(&self, world: &World) -> &'static [Call] {
        if world.mishaps < self.bounds.mishaps {
            &[Call::Answered, Call::RequestLost, Call::AnswerLost]
        } else {
            &[Call::Answered]
        }
    }

    fn of_task(&self, world: &World, task: Task, steps: &mut Vec<Move>) {
        match task.at {
            At::Reserve => steps.extend(self.calls(world).iter().map(|call| Move::Reserve(task, *call))),
            At::Lease => steps.extend(self.calls(world).iter().map(|call| Move::Lease(task, *call))),
            At::Dispatch => steps.push(Move::Dispatch(task)),
            At::Send if self.may_send(world, task) => {
                let all = [Sent::Done, Sent::DoneUnheard, Sent::LostUnheard, Sent::Refused, Sent::Never];
                steps.extend(all.map(|sent| Move::Send(task, sent)));
            }
            At::Send => steps.push(Move::TooLate(task)),
            At::Abort => steps.push(Move::Abort(task)),
            At::Conclude(outcome) => steps.push(Move::Conclude(task, outcome)),
        }
    }

    fn reserved(&self, world: &mut World, task: Task, call: Call) {
        let granted = match call {
            Call::RequestLost => Err(()),
            Call::Answered => self.reserve(world, task.index, task.attempt),
            Call::AnswerLost => self.reserve(world, task.index, task.attempt).and(Err(())),
        };
        world.moved(task, if granted.is_ok() { At::Lease } else { At::Abort });
    }

    fn leased(&self, world: &mut World, task: Task, call: Call) {
        let Task { index, attempt, .. } = task;
        let mut granted = false;
        if call != Call::RequestLost {
            let item = world.items[index];
            let reserved = item.attempt == attempt;
            granted = (reserved || self.is(Fault::LeaseUnreserved)) && world.leases.insert((index, attempt));
            world.seen[index].unreserved |= granted && !reserved;
        }
        let goes_on = granted && call == Call::Answered;
        let sends = if self.is(Fault::SendBeforeDispatch) { At::Send } else { At::Dispatch };
        world.moved(task, if goes_on { sends } else { At::Abort });
    }

    fn sent(&self, world: &mut World, task: Task, sent: Sent) {
        if matches!(sent, Sent::Done | Sent::DoneUnheard) {
            Self::effect(world, task.index);
        }
        let outcome = match sent {
            Sent::Done => Outcome::Succeeded,
            Sent::DoneUnheard | Sent::LostUnheard => self.unclear(),
            Sent::Refused => Outcome::Failed,
            Sent::Never => Outcome::Aborted,
        };
        world.moved(task, At::Conclude(outcome));
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Step>) {
        let mut steps = Vec::new();
        self.moves(world, &mut steps);
        actions.extend(steps.into_iter().map(Step));
    }

    fn next_state(&self, before: &World, Step(step): Step) -> Option<World> {
        self.after(before, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties()
    }
}

impl Protocol {
    fn moves(&self, world: &World, steps: &mut Vec<Move>) {
        let mishap = world.mishaps < self.bounds.mishaps;
        let crash = world.crashes < self.bounds.crashes;
        for index in 0..ACTIONS {
            // Two reviewers, of whom one says yes and one no.
            steps.extend([Move::Decide(index, true), Move::Decide(index, false), Move::Learn(index)]);
            steps.push(Move::Resolve(index));
            for executor in 0..EXECUTORS {
                if Self::may_sweep(world, executor, index) {
                    steps.push(Move::Sweep(executor, index));
                }
            }
            if self.is(Fault::ReleaseByTime) && world.items[index].state == Item::Reserved {
                steps.push(Move::ReleaseByTime(index));
            }
        }
        match world.waiting {
            None => steps.extend(self.turn(world).map(Move::Ask)),
            // A connection that broke, or a question that is nowhere any more.
            Some((index, _)) => {
                let lives =
                    |m: &Message| matches!(m, Message::Ask(i, _) | Message::Answer(i, ..) if *i == index);
                let nowhere = !world.net.iter().any(lives) && !world.tasks.iter().any(|t| t.index == index);
                if mishap || nowhere {
                    steps.push(Move::StopWaiting);
                }
            }
        }
        for message in &world.net {
            match *message {
                Message::Ask(index, attempt) => {
                    for executor in 0..EXECUTORS {
                        steps.push(Move::TakeAsk(executor, index, attempt, false));
                        if mishap {
                            steps.push(Move::TakeAsk(executor, index, attempt, true));
                        }
                    }
                }
                Message::Answer(index, attempt, outcome) => {
                    steps.push(Move::TakeAnswer(index, attempt, outcome));
                }
            }
        }
        for task in &world.tasks {
            self.of_task(world, *task, steps);
        }
        for owed in &world.owed {
            steps.push(Move::Deliver(*owed, false));
            if mishap {
                steps.push(Move::Deliver(*owed, true));
            }
        }
        if crash {
            steps.extend((0..EXECUTORS).map(Move::CrashExecutor));
            steps.push(Move::CrashGovernance);
        }
    }

    fn after(&self, before: &World, step: Move) -> Option<World> {
        let mut world = before.clone();
        match step {
            Move::Decide(index, yes) => drop(self.decide(&mut world, index, yes)),
            Move::Learn(index) => drop(self.learn(&mut world, index)),
            Move::Ask(index) => self.ask(&mut world, index),
            Move::StopWaiting => {
                world.waiting = None;
                world.mishaps = (world.mishaps + 1).min(self.bounds.mishaps);
            }
            Move::TakeAsk(executor, index, attempt, stays) => {
                if stays {
                    world.mishaps += 1;
                } else {
                    world.net.remove(&Message::Ask(index, attempt));
                }
                self.take_ask(&mut world, executor, index, attempt);
            }
            Move::TakeAnswer(index, attempt, outcome) => {
                world.net.remove(&Message::Answer(index, attempt, outcome));
                self.answered(&mut world, index, attempt, outcome);
            }
            Move::Reserve(task, call) => {
                world.mishaps += u8::from(call != Call::Answered);
                self.reserved(&mut world, task, call);
            }
            Move::Lease(task, call) => {
                world.mishaps += u8::from(call != Call::Answered);
                self.leased(&mut world, task, call);
            }
            Move::Dispatch(task) => self.dispatch(&mut world, task),
            Move::Send(task, sent) => self.sent(&mut world, task, sent),
            Move::TooLate(task) => world.moved(task, At::Conclude(Outcome::Aborted)),
            Move::Abort(task) => self.conclude(&mut world, task, Journal::Prepared, Outcome::Aborted),
            Move::Conclude(task, outcome) => self.conclude(&mut world, task, Journal::Dispatched, outcome),
            Move::Sweep(_, index) => self.sweep(&mut world, index),
            Move::Deliver(owed, stays) => {
                if stays {
                    world.mishaps += 1;
                } else {
                    world.owed.remove(&owed);
                }
                self.take_owed(&mut world, owed);
            }
            Move::Resolve(index) => drop(self.resolve(&mut world, index)),
            Move::CrashExecutor(executor) => {
                world.crashes += 1;
                self.crash(&mut world, executor);
            }
            Move::CrashGovernance => {
                world.crashes += 1;
                self.restart(&mut world);
            }
            Move::ReleaseByTime(index) => world.items[index].state = Item::Approved,
        }
        (world != *before).then_some(world)
    }
}
