//! What approval does: decide, reserve, spend, give back, withdraw. Each call is one transaction.

use exequatur_lifecycle::{Event, Item};

use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::world::{Index, Owed, World, step};

impl Protocol {
    /// A reviewer says yes or no. Whether anything changed.
    pub(crate) fn decide(&self, world: &mut World, index: Index, yes: bool) -> bool {
        let item = &mut world.items[index];
        if self.is(Fault::DecideTwice) && matches!(item.state, Item::Approved | Item::Rejected) {
            let other = if yes { Item::Approved } else { Item::Rejected };
            let changed = item.state != other;
            item.state = other;
            return changed;
        }
        if !step(&mut item.state, if yes { Event::Approve } else { Event::Reject }) {
            return false;
        }
        world.seen[index].first.get_or_insert(yes);
        true
    }

    /// Promises an item to an attempt. `Err`: a refusal.
    pub(crate) fn reserve(&self, world: &mut World, index: Index, attempt: u8) -> Result<(), ()> {
        if attempt > 1 {
            // The warrant carries the signed ABORTED of the attempt before.
            self.close(world, index, attempt - 1);
        }
        let item = &mut world.items[index];
        if item.state == Item::Reserved && (item.attempt == attempt || self.is(Fault::ReserveTwice)) {
            item.attempt = attempt;
            return Ok(());
        }
        if self.is(Fault::ReserveUndecided) && item.state == Item::Pending {
            item.state = Item::Approved;
        }
        if attempt != item.closed + 1 || !step(&mut item.state, Event::Reserve) {
            return Err(());
        }
        item.attempt = attempt;
        Ok(())
    }

    /// Takes in what the connector owes.
    pub(crate) fn take_owed(&self, world: &mut World, owed: Owed) {
        match owed {
            Owed::Commit(index, attempt) => {
                let item = &mut world.items[index];
                let again = item.state == Item::Consumed && item.attempt == attempt;
                let spends = item.state == Item::Reserved && item.attempt == attempt;
                let is_right = again || (spends && step(&mut item.state, Event::Commit));
                world.seen[index].contradiction |= !is_right;
            }
            Owed::Release(index, attempt) => {
                let item = &world.items[index];
                if item.state == Item::Consumed && item.attempt == attempt {
                    world.seen[index].contradiction = true;
                } else {
                    self.close(world, index, attempt);
                }
            }
        }
    }

    /// An attempt is over: its item is given back where it is reserved for it.
    fn close(&self, world: &mut World, index: Index, attempt: u8) {
        let item = &mut world.items[index];
        let any = self.is(Fault::ReleaseForAnyAttempt);
        let held = item.state == Item::Reserved && (item.attempt == attempt || any);
        if attempt <= item.closed && !held {
            return;
        }
        item.closed = item.closed.max(attempt);
        if held && step(&mut item.state, Event::Release) && item.withdrawn {
            step(&mut item.state, Event::Void);
        }
    }

    /// Governance wants it no more: at once, or as soon as it is given back.
    pub(crate) fn withdraw(&self, world: &mut World, index: Index) {
        let item = &mut world.items[index];
        match item.state {
            Item::Pending => drop(step(&mut item.state, Event::Withdraw)),
            Item::Approved => drop(step(&mut item.state, Event::Void)),
            Item::Reserved => item.withdrawn = true,
            _ => {}
        }
    }
}
