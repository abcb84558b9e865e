//! What must hold in every state, and what must happen in some run. `I` numbers are those of
//! docs/architecture.md.

use exequatur_lifecycle::{Action, Item};
use stateright::Property;

use crate::protocol::Protocol;
use crate::world::{Promised, Seen, World};

/// What must hold in every state, and what must happen in some.
pub(crate) fn properties() -> Vec<Property<Protocol>> {
    let all = |name, holds: fn(&Protocol, &World) -> bool| Property::<Protocol>::always(name, holds);
    vec![
        all("I1: nothing is done without a yes", |_, w| {
            w.seen.iter().all(|s| s.effects == 0 || s.first == Some(true))
        }),
        all("I3: nothing is done twice", |_, w| w.seen.iter().all(|s| s.effects <= 1)),
        all("I3: what was not dispatched is not done", |_, w| {
            w.seen.iter().all(|s| s.effects == 0 || s.dispatched)
        }),
        all("I4: an item is spent only by a dispatch", |_, w| {
            w.items.iter().zip(&w.seen).all(|(i, s)| i.state != Item::Consumed || s.dispatched)
        }),
        all("I4: an item that may have been used is never free again", |_, w| {
            let free = |state| matches!(state, Item::Approved);
            w.items.iter().zip(&w.seen).all(|(i, s)| s.effects == 0 || !free(i.state))
        }),
        all("I5: what was settled stays as it was settled", |_, w| w.seen.iter().all(|s| !s.after_settled)),
        all("what governance says is true", |_, w| {
            w.governance.iter().zip(&w.seen).all(|(action, seen)| match action.state {
                Action::Succeeded => seen.effects == 1,
                Action::Failed | Action::Rejected | Action::Skipped | Action::Refused => seen.effects == 0,
                _ => true,
            })
        }),
        all("a later action waits for the ones before", |_, w| {
            w.seen[1].effects == 0 || w.governance[0].state == Action::Succeeded
        }),
        all("the first decision counts", |_, w| {
            let said_no = |(item, seen): (&Promised, &Seen)| {
                let yes = matches!(item.state, Item::Approved | Item::Reserved | Item::Consumed);
                let no = item.state == Item::Rejected;
                (yes && seen.first == Some(false)) || (no && seen.first == Some(true))
            };
            !w.items.iter().zip(&w.seen).any(said_no)
        }),
        all("a secret goes with a reservation", |_, w| w.seen.iter().all(|s| !s.unreserved)),
        all("no zone contradicts another", |_, w| w.seen.iter().all(|s| !s.contradiction)),
        // One run of each kind must exist, or the model proves nothing.
        Property::sometimes("all done", |_, w: &World| w.is_over() && w.seen.iter().all(|s| s.effects == 1)),
        Property::sometimes("done at the second attempt", |_, w: &World| {
            w.governance[0].state == Action::Succeeded && w.governance[0].attempt == 2
        }),
        Property::sometimes("in doubt, and settled", |_, w: &World| w.seen[0].settled == Some(true)),
    ]
}
