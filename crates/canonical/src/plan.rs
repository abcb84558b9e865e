//! The plan header: one digest that binds the whole plan.

use crate::decode;
use crate::digest::{Digest, digest_with};
use crate::encode;
use crate::error::{CanonicalError, ErrorCode};
use crate::words;

/// Actions that a plan may have.
pub const MAX_ACTIONS: usize = 256;

/// A point in time, as protobuf's well-known type has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp {
    /// Seconds since the epoch, may be negative.
    pub seconds: i64,
    /// 0..999,999,999, counted forward.
    pub nanos: i32,
}

/// The header that binds a plan's actions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanHeader {
    /// Tenant.
    pub tenant: String,
    /// Run.
    pub run: String,
    /// Agent.
    pub agent: String,
    /// Plan.
    pub plan: String,
    /// When governance froze it.
    pub proposed_at: Timestamp,
    /// The agent's summary of why.
    pub context: String,
    /// 1..256, in execution order.
    pub action_digests: Vec<Digest>,
    /// Go on after a failed action.
    pub continue_on_failure: bool,
    /// A reviewer may select a subset.
    pub allow_partial: bool,
    /// Trust domain.
    pub realm: String,
    /// The principal that started the run.
    pub owner: String,
}

/// A header with its bytes and digest; made only by [`freeze_plan`] and [`verify_plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenPlan {
    header: PlanHeader,
    bytes: Vec<u8>,
    digest: Digest,
}

impl FrozenPlan {
    /// The canonical bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What they say.
    #[must_use]
    pub const fn header(&self) -> &PlanHeader {
        &self.header
    }

    /// The plan digest.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Six words for people to compare.
    #[must_use]
    pub fn words(&self) -> String {
        words::words(&self.digest, false)
    }

    /// Eight words, where risk is high.
    #[must_use]
    pub fn words_high(&self) -> String {
        words::words(&self.digest, true)
    }
}

/// Makes the bytes of a header.
///
/// # Errors
/// `NOT_CANONICAL` for no or more than 256 actions, or nanoseconds out of range.
pub fn freeze_plan(header: PlanHeader) -> Result<FrozenPlan, CanonicalError> {
    let count = header.action_digests.len();
    if count == 0 || count > MAX_ACTIONS || !(0..=999_999_999).contains(&header.proposed_at.nanos) {
        return Err(CanonicalError::new(ErrorCode::NotCanonical));
    }
    let bytes = encode::plan(&header);
    let digest = digest_with("exequatur.plan.v1", &bytes);
    Ok(FrozenPlan { header, bytes, digest })
}

/// Checks the bytes of a header.
///
/// # Errors
/// `NOT_CANONICAL`, whatever is wrong.
pub fn verify_plan(bytes: &[u8]) -> Result<FrozenPlan, CanonicalError> {
    let not_canonical = || CanonicalError::new(ErrorCode::NotCanonical);
    let frozen = freeze_plan(decode::plan(bytes).ok_or_else(not_canonical)?)?;
    if frozen.bytes == bytes { Ok(frozen) } else { Err(not_canonical()) }
}
