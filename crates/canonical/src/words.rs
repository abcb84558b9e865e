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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bip_39s() {
        assert_eq!(LIST.len(), 2048);
        assert_eq!((LIST.first(), LIST.last()), (Some(&"abandon"), Some(&"zoo")));
        assert_eq!(
            Digest::sha256(include_bytes!("english.txt")).to_string(),
            "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
        );
    }

    #[test]
    fn bits_are_taken_most_significant_first() {
        let mut bytes = [0; 32];
        (bytes[0], bytes[1]) = (0xff, 0xe0);
        assert_eq!(words(&Digest::new(bytes), false), "zoo-abandon-abandon-abandon-abandon-abandon");
        assert_eq!(words(&Digest::new([0xff; 32]), true), ["zoo"; 8].join("-"));
        // The last bit of the words is bit 66, or 88; what follows does not count.
        let mut bytes = [0; 32];
        bytes[8] = 0x40;
        assert!(words(&Digest::new(bytes), false).ends_with("-ability"));
        bytes[8] = 0x20;
        assert!(words(&Digest::new(bytes), false).ends_with("-abandon"));
    }
}
