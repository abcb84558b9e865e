//! A Vault token: wiped when dropped, and it cannot be printed. Must not know what it opens.

use std::fmt;

use zeroize::Zeroizing;

use crate::{Error, Kind};

/// Batch tokens are some hundred bytes; nothing legitimate is longer.
const MAX_BYTES: usize = 4096;

/// A service, batch or wrapping token.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// Takes over a token's text, at most 4096 bytes of visible ASCII.
    ///
    /// # Errors
    /// `BadName` when it cannot be a token.
    pub fn new(text: String) -> Result<Self, Error> {
        let text = Zeroizing::new(text);
        if (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err(Error::new(Kind::BadName, "token"))
        }
    }

    /// The text, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// As a header that HTTP libraries do not print.
    pub(crate) fn header(&self) -> Option<http::HeaderValue> {
        let mut value = http::HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may stop at once")]

    use super::*;

    #[test]
    fn a_token_is_visible_ascii_and_does_not_print() {
        for bad in ["", "a b", "a\n", "a\u{7f}", "é"] {
            assert!(Token::new(bad.to_owned()).is_err());
        }
        assert!(Token::new("x".repeat(4097)).is_err());
        let token = Token::new("s.hunter2".to_owned()).unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(format!("{:?}", token.header().unwrap()), "Sensitive");
    }
}
