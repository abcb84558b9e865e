//! A digest as words that people can compare.

use std::sync::LazyLock;

use crate::digest::Digest;

/// The BIP-39 English list: 2,048 words (bitcoin/bips, bip-0039/english.txt).
static LIST: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!("english.txt").lines().collect());

const BITS: usize = 11;

/// Six words of the digest's first 66 bits, or eight of its first 88, most significant bit first.
#[must_use]
pub fn words(digest: &Digest, high: bool) -> String {
    let bytes = digest.as_bytes();
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let word = |n: usize| {
        let index = (n * BITS..(n + 1) * BITS).fold(0, |sum, at| sum * 2 + usize::from(bit(at)));
        LIST.get(index).copied().unwrap_or_default()
    };
    (0..if high { 8 } else { 6 }).map(word).collect::<Vec<_>>().join("-")
}
