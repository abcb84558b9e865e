//! The zone `governance`: register, rules, run tokens, plans, warrants, dispatch. It decides by rule
//! and orders execution; it cannot reach a secret, approve for a person or talk to a provider.
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
pub mod config;
pub mod store;
mod tenants;

pub use assemble::run;
