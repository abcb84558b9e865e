//! The zone `approval`: keeps frozen plans waiting, records people's decisions, reserves and spends
//! them. It cannot change what is shown, mint warrants or reach a secret.
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

pub use assemble::run;
