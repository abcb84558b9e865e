//! Where a credential is in Vault: a fixed function of mount, tenant and credential, so that the
//! connector computes the same path by itself. Must not know Vault's answers.
//!
//! | engine | path |
//! | --- | --- |
//! | KV v2 | `{mount}/data/{tenant}/{credential}` |
//! | database | `{mount}/creds/{tenant}--{credential}` |
//! | TOTP | `{mount}/code/{tenant}--{credential}` |
//! | policy of a scoped token | `exequatur-scoped-{tenant}--{credential}` |
//!
//! Names are `[a-z0-9][a-z0-9._-]{0,62}`; a mount is one to four such names with `/` between. Role and
//! policy names have no `/`, so `--` separates there. To keep two tenants apart, such a tenant must
//! not hold `--` or end with `-`; the credential must end with a letter, a digit or `_`, as Vault
//! demands of a role.

use std::fmt;

use serde::Deserialize;

use crate::{Engine, Error, Kind};

/// Where in Vault things are. credential-vault and connector hold the same.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Paths {
    /// Mount of the key/value engine, version 2.
    pub kv2: String,
    /// Mount of the database engine.
    pub database: String,
    /// Mount of the engine for one-time passcodes.
    pub totp: String,
    /// Token role that scoped tokens are minted by; of no use to the connector.
    pub scoped_role: String,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            kv2: "secret".to_owned(),
            database: "database".to_owned(),
            totp: "totp".to_owned(),
            scoped_role: "exequatur-scoped".to_owned(),
        }
    }
}

impl Paths {
    /// The path of a credential in an engine.
    ///
    /// # Errors
    /// `BadName` when a part is not of the allowed form, or the pair could be read as another pair.
    pub fn of(
        &self,
        engine: &'static dyn Engine,
        tenant: &str,
        credential: &str,
    ) -> Result<SecretPath, Error> {
        let mount = engine.mount(self);
        if !is_mount(mount) {
            return Err(Error::new(Kind::BadName, "path"));
        }
        Ok(SecretPath { text: format!("{mount}/{}", engine.path(tenant, credential)?), engine })
    }
}

/// A path below `/v1/` and the engine that answers there, made by [`Paths::of`] only.
#[derive(Debug, Clone)]
pub struct SecretPath {
    text: String,
    pub(crate) engine: &'static dyn Engine,
}

impl SecretPath {
    /// Without leading `/`, as Vault writes it in a wrapping token's creation path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SecretPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `exequatur-scoped-{tenant}--{credential}`: the policy that lets a scoped token read one path.
///
/// # Errors
/// `BadName` as [`Paths::of`].
pub fn scoped_policy(tenant: &str, credential: &str) -> Result<String, Error> {
    Ok(format!("exequatur-scoped-{}", joined(tenant, credential)?))
}

/// `{tenant}--{credential}`, for names without `/`.
pub(crate) fn joined(tenant: &str, credential: &str) -> Result<String, Error> {
    let ends_well = credential.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if is_name(tenant) && is_name(credential) && !tenant.contains("--") && !tenant.ends_with('-') && ends_well
    {
        Ok(format!("{tenant}--{credential}"))
    } else {
        Err(Error::new(Kind::BadName, "path"))
    }
}

fn is_mount(mount: &str) -> bool {
    mount.split('/').count() <= 4 && mount.split('/').all(is_name)
}

/// `[a-z0-9][a-z0-9._-]{0,62}`, and no `..` anywhere.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= 63
        && !name.contains("..")
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may stop at once")]

    use super::*;
    use crate::engine;

    fn path(word: &str, mount: &str, tenant: &str, credential: &str) -> Result<String, Error> {
        let mount = mount.to_owned();
        let paths = Paths { kv2: mount.clone(), database: mount.clone(), totp: mount, ..Paths::default() };
        paths.of(engine(word).unwrap(), tenant, credential).map(|path| path.to_string())
    }

    #[test]
    fn paths_have_one_fixed_form() {
        for (word, mount, tenant, credential, expected) in [
            ("kv2", "secret", "t-green", "crm.read", "secret/data/t-green/crm.read"),
            ("kv2", "a/kv", "t", "a--b-", "a/kv/data/t/a--b-"),
            ("database", "database", "t", "db.query", "database/creds/t--db.query"),
            ("totp", "totp", "t", "bank", "totp/code/t--bank"),
        ] {
            assert_eq!(path(word, mount, tenant, credential).unwrap(), expected);
        }
        assert_eq!(scoped_policy("t-green", "sms.send").unwrap(), "exequatur-scoped-t-green--sms.send");
    }

    #[test]
    fn no_other_name_becomes_a_path() {
        let long = "a".repeat(64);
        let bad =
            ["", ".", "..", "a..b", "a/../b", "/a", "a/", "A", "-a", "a b", "a%2f", "a?x", "a#", "é", &long];
        for bad in bad {
            for word in crate::engine_words() {
                assert!(path(word, "mount", bad, "c").is_err(), "{word} {bad}");
                assert!(path(word, "mount", "t", bad).is_err(), "{word} {bad}");
                assert!(path(word, bad, "t", "c").is_err(), "{word} {bad}");
            }
            assert!(scoped_policy("t", bad).is_err(), "{bad}");
        }
        assert!(path("kv2", "a/b/c/d/e", "t", "c").is_err());
    }

    #[test]
    fn no_two_pairs_share_a_role() {
        for word in ["database", "totp"] {
            // `a--b` + `c` would be `a` + `b--c`.
            assert!(path(word, "d", "a--b", "c").is_err());
            assert!(path(word, "d", "a-", "b").is_err());
            assert!(path(word, "d", "a", "b--c").is_ok());
            assert!(path(word, "d", "a", "b-").is_err() && path(word, "d", "a", "b.").is_err());
        }
    }
}
