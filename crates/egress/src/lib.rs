//! The one way out to providers: guarded addresses, own TCP and TLS stream, one HTTP/1.1 request, one
//! SMTP conversation or one PostgreSQL transaction per connection, and redaction of what was injected. Knows no journal, no
//! approval and no store; it says whether anything was sent and leaves the meaning to the caller.

mod counted;
mod guard;
pub mod http;
mod link;
pub mod postgres;
#[cfg(test)]
mod rebinding;
pub mod redact;
pub mod smtp;
#[cfg(test)]
mod tests;

pub use guard::{Guard, is_public};
pub use link::{Destination, Egress, Link, Security};

/// What became of one send.
#[derive(Debug)]
pub enum Sent<A> {
    /// Surely nothing that counts reached the provider.
    NotSent(String),
    /// The provider answered, whole.
    Answered(A),
    /// Something was sent and no whole answer came.
    Unclear(String),
}
