//! gRPC in, domain values through, gRPC out.

mod approval;
mod inbox;
mod reservation;
mod reviewer;

pub use approval::{Approvals, WARNING};
pub use inbox::Inbox;
pub use reservation::Reservations;
pub use reviewer::Reviewers;
