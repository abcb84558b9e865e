//! Generated client of `SealingService`. A dependency on this crate is an edge of the call graph.
#![allow(
    missing_docs,
    unreachable_pub,
    rustdoc::all,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

include!(concat!(env!("RPC_DIR"), "/sealing_client.rs"));
