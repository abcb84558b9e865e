//! States and the one transition table of runs, actions, items and journal rows, as data.
//! Pure: knows no service, no clock and no store. Whoever changes a state asks [`next`] first.

mod machine;
mod plan;
mod table;
#[cfg(test)]
mod tests;

pub use machine::{Action, Item, Journal, Machine, Run};
pub use plan::{Plan, derive_plan};
pub use table::{Event, TRANSITIONS, Transition, Who, next};
