//! The protocol of one plan as a model: every interleaving of governance, approval, two connector processes,
//! credential-vault, reviewers, an operator and the provider, with crashes and with messages lost or repeated.
//!
//! **Shared with the product:** the states and the transition table (`exequatur-lifecycle`); no state of the
//! model changes but by [`exequatur_lifecycle::next`]. **Stated again here:** when a zone asks for which event,
//! what is durable together, and what an answer means. Whoever changes one of these changes both:
//!
//! | here | there |
//! | --- | --- |
//! | `governance.rs` | `services/governance/src/app/{dispatch,receipt,approvals}.rs` |
//! | `approval.rs` | `services/approval/src/app/{decide,reserve,release,withdraw}.rs` |
//! | `connector.rs` | `services/connector/src/app/{execute,attempt,finish,sweep,resolve}.rs` |
//!
//! **Time** is a choice: whatever may be late is late in some run. What the product rules out by deadlines is
//! ruled out here by a condition that says so: a process does not begin to send what was swept, since it must
//! begin within 5 s of DISPATCHED and a sweep waits longer. Signatures, digests and tenants are not modelled:
//! a statement is what it says.

#![allow(clippy::indexing_slicing, reason = "a wrong index is a mistake of the model and may stop it")]

mod approval;
mod check;
mod connector;
mod fault;
mod governance;
mod graph;
mod properties;
mod protocol;
mod world;

pub use check::Found;
pub use fault::Fault;
pub use graph::{Unfinished, can_always_end};
pub use protocol::{Bounds, Protocol, Step};
pub use world::World;
