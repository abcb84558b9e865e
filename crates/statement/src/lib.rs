//! Signed statements: DSSE envelopes, purpose-bound Ed25519 keys, the trust bundle.
//! Knows no transport and no store; the verifier of exports uses it too.

mod dsse;
mod error;
mod key;
mod kind;
mod trust;
mod watch;

pub use dsse::{Expect, Verified, envelope_digest, from_json, sign, sign_bytes, to_json};
pub use error::StatementError;
pub use key::{PublicRoot, SigningKey};
pub use kind::Statement;
pub use trust::{Trust, seal_bundle};
