//! The zone `credential-vault`: a catalog of credentials, which tools and destinations each serves,
//! and their sealed values. It has no key that opens one, and it never talks to a provider.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests may stop at once"
    )
)]

pub mod api;
pub mod app;
mod assemble;
pub mod backend;
pub mod config;
pub mod store;

pub use assemble::run;
