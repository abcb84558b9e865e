//! A rule set that was checked, with its exact bytes.

use exequatur_canonical::{Digest, rule_set_digest};
use exequatur_proto::policy::v1 as proto;
use prost::Message as _;

use crate::check;
use crate::when::When;

/// Largest rule set, bytes.
pub const MAX_RULE_SET_BYTES: usize = 1 << 20;

/// Why rule set bytes are not put in force. One bad rule refuses all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The bytes are larger than allowed.
    #[error("the rule set has {0} bytes, at most 1048576 are allowed")]
    TooLarge(usize),
    /// The bytes do not decode, or are not the one encoding of what they decode to.
    #[error("the rule set is not in canonical encoding")]
    NotCanonical,
    /// A value that no rule set may have.
    #[error("{path}: {why}")]
    Invalid {
        /// Field path in the rule set.
        path: String,
        /// What is wrong and what is allowed.
        why: String,
    },
}

/// A rule set whose bytes are canonical and whose content passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSet {
    message: proto::RuleSet,
    bytes: Vec<u8>,
    digest: Digest,
}

impl RuleSet {
    /// Decodes and checks rule set bytes.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn verify(bytes: &[u8]) -> Result<Self, PolicyError> {
        if bytes.len() > MAX_RULE_SET_BYTES {
            return Err(PolicyError::TooLarge(bytes.len()));
        }
        let message = proto::RuleSet::decode(bytes).map_err(|_| PolicyError::NotCanonical)?;
        if message.encode_to_vec() != bytes {
            return Err(PolicyError::NotCanonical);
        }
        check::rule_set(&message)?;
        Ok(Self { message, bytes: bytes.to_vec(), digest: rule_set_digest(bytes) })
    }

    /// The decoded rule set.
    #[must_use]
    pub const fn message(&self) -> &proto::RuleSet {
        &self.message
    }

    /// The exact bytes it was made from.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The rule set digest of the bytes.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Fields of rules that are part of the language and that nothing enforces yet: a set that uses
    /// one must not be put in force, since the field would be ignored.
    #[must_use]
    pub fn not_enforced(&self) -> Vec<(&str, &'static str)> {
        let mut out = Vec::new();
        for rule in &self.message.rules {
            let used = [
                ("labels", !rule.labels.is_empty() || looks_at_labels(&rule.when)),
                ("inputs", !rule.inputs.is_empty()),
                ("risk", rule.risk != 0),
                ("reviewers", !rule.reviewers.is_empty()),
                ("quorum", rule.quorum > 1),
                ("escalation", rule.escalation.is_some()),
                ("rate", rule.rate.is_some()),
                ("notify", !rule.notify.is_empty()),
            ];
            out.extend(used.into_iter().filter(|(_, used)| *used).map(|(f, _)| (rule.id.as_str(), f)));
        }
        out
    }
}

fn looks_at_labels(when: &str) -> bool {
    !when.is_empty() && When::compile(when).is_ok_and(|when| when.uses("labels"))
}
