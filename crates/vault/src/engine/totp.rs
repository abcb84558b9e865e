//! One-time passcodes (RFC 6238) that Vault computes from a key which it never gives away:
//! `{mount}/code/{tenant}--{credential}`. Must not know the key.

use exequatur_secret::Secret;
use serde::Deserialize;

use super::{Engine, Opened};
use crate::answer::Answer;
use crate::paths::joined;
use crate::{Error, Kind, Paths};

/// The engine `totp`.
#[derive(Debug)]
pub(super) struct Totp;

#[derive(Deserialize)]
struct Code {
    code: String,
}

impl Engine for Totp {
    fn word(&self) -> &'static str {
        "totp"
    }

    fn mount<'a>(&self, paths: &'a Paths) -> &'a str {
        &paths.totp
    }

    fn path(&self, tenant: &str, credential: &str) -> Result<String, Error> {
        Ok(format!("code/{}", joined(tenant, credential)?))
    }

    fn open(&self, answer: &Answer, _: &str) -> Result<Opened, Error> {
        let Code { code } = answer.data()?;
        let secret = Secret::new(code.into_bytes());
        if (6..=8).contains(&secret.expose().len()) && secret.expose().iter().all(u8::is_ascii_digit) {
            Ok(Opened::plain(secret))
        } else {
            Err(answer.error(Kind::Malformed))
        }
    }

    /// A code is good for half a minute, and providers take it once.
    fn is_reusable(&self) -> bool {
        false
    }
}
