//! Generated messages of `proto/` and their descriptor set.
//! No service code and no transport: those are crates of their own under `crates/rpc`.
#![allow(
    missing_docs,
    unreachable_pub,
    rustdoc::all,
    clippy::all,
    clippy::pedantic,
    reason = "generated code"
)]

use std::sync::LazyLock;

/// The encoded `FileDescriptorSet` of all our packages with their imports.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The descriptor pool of [`DESCRIPTORS`], with extensions, parsed once.
#[allow(clippy::expect_used, reason = "the bytes are made by this crate's own build")]
pub static POOL: LazyLock<prost_reflect::DescriptorPool> =
    LazyLock::new(|| prost_reflect::DescriptorPool::decode(DESCRIPTORS).expect("own descriptor set decodes"));

mod generated {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}
pub use generated::exequatur::*;
