//! The zone `connector`: executes one attempt of exactly what a warrant names. It opens a credential
//! for that attempt only, keeps the journal that is the fence against a second dispatch, and redacts.
//! It cannot get a credential without warrant and reservation, and cannot choose its destination.
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
