//! The prepared request: what a provider will get, as a pure function of definition bytes and
//! action bytes. Templates place typed values and never paste text. Knows no I/O, no clock and no
//! secret: a credential stands in the request by its name only.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        reason = "tests may stop at once"
    )
)]

mod check;
mod definition;
mod error;
mod http;
mod json;
mod mail;
mod names;
mod place;
mod postgres;
mod prepared;
mod scope;
mod text;

#[cfg(test)]
mod tests;

pub use definition::{Definition, MAX_DEFINITION_BYTES};
pub use error::{PrepareError, ScopeError};
pub use prepared::{Prepared, prepare, verify_prepared};
pub use scope::tenant_scope;
pub use text::request_text;

/// Checks a definition piece by piece, for tools that write definitions.
pub mod lint {
    pub use crate::check::arguments_used;
}
