//! Bytes that are wiped when dropped and cannot be printed. Knows no key and no place.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// An opened secret: wiped when its last clone is dropped, and it cannot be printed. A clone copies no byte.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Takes over bytes; the caller's copy is moved, not cloned.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes)))
    }

    /// The bytes, for the one place that puts them into a request.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
