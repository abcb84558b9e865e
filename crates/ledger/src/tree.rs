//! RFC 6962 section 2.1: the Merkle tree hash of a list of leaf hashes, in one pass.

use exequatur_canonical::Digest;
use sha2::{Digest as _, Sha256};

/// The root of the leaves, in order; of none: SHA-256 of the empty string.
#[must_use]
pub fn root<'a>(leaves: impl Iterator<Item = &'a [u8]>) -> Digest {
    // One complete subtree per set bit of the count, largest first.
    let mut peaks: Vec<(u64, Vec<u8>)> = Vec::new();
    for leaf in leaves {
        let mut node = (1, leaf.to_vec());
        while let Some((size, left)) = peaks.pop_if(|(size, _)| *size == node.0) {
            node = (size * 2, parent(&left, &node.1));
        }
        peaks.push(node);
    }
    let Some((_, mut hash)) = peaks.pop() else { return Digest::sha256(b"") };
    while let Some((_, left)) = peaks.pop() {
        hash = parent(&left, &hash);
    }
    Digest::from_slice(&hash).unwrap_or_else(|_| Digest::sha256(b""))
}

fn parent(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update([1]);
    hash.update(left);
    hash.update(right);
    hash.finalize().to_vec()
}
