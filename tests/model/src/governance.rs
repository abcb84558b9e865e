//! What governance does: learn decisions, ask in order, take answers in, skip what comes after.

use exequatur_lifecycle::{Action, Event, Item, Machine as _};

use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::world::{ATTEMPTS, Index, Message, Outcome, World, step};

impl Protocol {
    /// What approval decided reaches governance. Whether anything changed.
    pub(crate) fn learn(&self, world: &mut World, index: Index) -> bool {
        let event = match world.items[index].state {
            Item::Approved | Item::Reserved => Event::Approve,
            Item::Rejected => Event::Reject,
            _ => return false,
        };
        step(&mut world.governance[index].state, event) && {
            self.progress(world);
            true
        }
    }

    /// The action that may be asked about now.
    pub(crate) fn turn(&self, world: &World) -> Option<Index> {
        for (index, action) in world.governance.iter().enumerate() {
            let undecided = action.state == Action::AwaitingApproval && self.is(Fault::DispatchUndecided);
            match action.state {
                Action::Ready | Action::Executing => return Some(index),
                _ if undecided => return Some(index),
                Action::InDoubt if self.is(Fault::OrderIgnoresDoubt) => {}
                state if state.is_terminal() => {}
                _ => return None,
            }
        }
        None
    }

    /// Signs a warrant and asks.
    pub(crate) fn ask(&self, world: &mut World, index: Index) {
        let action = &mut world.governance[index];
        if action.state == Action::AwaitingApproval {
            action.state = Action::Ready;
        }
        action.asked = true;
        let attempt = action.attempt;
        world.waiting = Some((index, attempt));
        world.net.insert(Message::Ask(index, attempt));
    }

    /// Takes a signed outcome in.
    pub(crate) fn answered(&self, world: &mut World, index: Index, attempt: u8, outcome: Outcome) {
        if world.waiting.is_none_or(|(waiting, _)| waiting != index) {
            return;
        }
        world.waiting = None;
        let action = &mut world.governance[index];
        step(&mut action.state, Event::Start);
        match outcome {
            Outcome::Succeeded => drop(step(&mut action.state, Event::Succeed)),
            Outcome::Failed => drop(step(&mut action.state, Event::Fail)),
            Outcome::InDoubt => drop(step(&mut action.state, Event::Doubt)),
            Outcome::Aborted if attempt < ATTEMPTS && !self.is(Fault::AbortIsFailure) => {
                if step(&mut action.state, Event::Abort) {
                    (action.attempt, action.asked) = (attempt + 1, false);
                }
            }
            Outcome::Aborted => {
                if step(&mut action.state, Event::Fail) && !self.is(Fault::AbortIsFailure) {
                    self.withdraw(world, index);
                }
            }
        }
        self.progress(world);
    }

    /// A crash: what was asked is asked again, for it is written down.
    pub(crate) fn restart(&self, world: &mut World) {
        world.waiting = None;
        if self.is(Fault::ForgetsAsked) {
            for action in world.governance.iter_mut().filter(|a| a.asked && a.state == Action::Ready) {
                action.attempt = (action.attempt + 1).min(ATTEMPTS);
            }
        }
    }

    /// After an action that did not succeed nothing follows.
    pub(crate) fn progress(&self, world: &mut World) {
        let mut broken = false;
        for index in 0..world.governance.len() {
            let action = &mut world.governance[index];
            if broken && step(&mut action.state, Event::Skip) {
                self.withdraw(world, index);
            }
            let state = world.governance[index].state;
            broken |= state.is_terminal() && state != Action::Succeeded;
        }
    }
}
