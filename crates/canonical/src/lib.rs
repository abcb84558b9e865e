//! Canonical bytes, digests, words and the one display renderer (docs/spec/canonical-v1.md).
//! Pure: knows no service, no clock and no I/O.
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

mod action;
mod decode;
mod digest;
pub mod display;
mod encode;
mod error;
mod escape;
mod json;
pub mod jsonl;
mod number;
mod plan;
mod value;
mod warning;
mod words;

pub use action::{
    Action, FrozenAction, MAX_ACTION_BYTES, freeze_action, freeze_value_action, is_tool_name, verify_action,
};
pub use digest::{Digest, InvalidDigest, digest_with, rule_set_digest, tool_digest, wire_digest};
pub use error::{CanonicalError, ErrorCode};
pub use json::{MAX_DEPTH, read_arguments, read_value};
pub use plan::{FrozenPlan, MAX_ACTIONS, PlanHeader, Timestamp, freeze_plan, verify_plan};
pub use value::{Duplicate, Object, Value, pointer_token};
pub use words::words;
