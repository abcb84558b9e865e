//! Digests with their domains (specification section 5).

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidDigest;

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest is 32 bytes, written as 64 lower-case hex digits")
    }
}

impl std::error::Error for InvalidDigest {}

impl Digest {
    /// Of 32 bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Of a slice.
    ///
    /// # Errors
    /// [`InvalidDigest`] for any other length.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, InvalidDigest> {
        bytes.try_into().map(Self).map_err(|_| InvalidDigest)
    }

    /// Plain SHA-256, without a domain.
    #[must_use]
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The bytes as a vector, for protobuf fields.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        hex::encode_to_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let nibble = |c: u8| match c {
            b'0'..=b'9' => Ok(c - b'0'),
            b'a'..=b'f' => Ok(c - b'a' + 10),
            _ => Err(InvalidDigest),
        };
        if text.len() != 64 {
            return Err(InvalidDigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            if let [high, low] = pair {
                *byte = nibble(*high)? << 4 | nibble(*low)?;
            }
        }
        Ok(Self(bytes))
    }
}

/// SHA-256 of `domain 00 bytes`.
#[must_use]
pub fn digest_with(domain: &str, bytes: &[u8]) -> Digest {
    digest_parts(domain, &[bytes])
}

pub(crate) fn digest_parts(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(domain.as_bytes());
    hash.update([0]);
    for part in parts {
        hash.update(part);
    }
    Digest(hash.finalize().into())
}

/// Digest of ToolDefinition bytes.
#[must_use]
pub fn tool_digest(bytes: &[u8]) -> Digest {
    digest_with("exequatur.definition.v1", bytes)
}

/// Digest of RuleSet bytes.
#[must_use]
pub fn rule_set_digest(bytes: &[u8]) -> Digest {
    digest_with("exequatur.ruleset.v1", bytes)
}

/// Digest of PreparedRequest bytes.
#[must_use]
pub fn wire_digest(bytes: &[u8]) -> Digest {
    digest_with("exequatur.wire.v1", bytes)
}
