//! Where a credential is in Vault: a fixed function of mount, tenant and credential, so that the
//! connector computes the same path by itself. Must not know Vault's answers.
//!
//! | engine | path |
//! | --- | --- |
//! | KV v2 | `{mount}/data/{tenant}/{credential}` |
//! | database and other dynamic engines | `{mount}/creds/{tenant}--{credential}` |
//! | policy of a scoped token | `exequatur-scoped-{tenant}--{credential}` |
//!
//! Names are `[a-z0-9][a-z0-9._-]{0,62}`; a mount is one to four such names with `/` between. Role and
//! policy names have no `/`, so `--` separates there. To keep two tenants apart, such a tenant must
//! not hold `--` or end with `-`; the credential must end with a letter, a digit or `_`, as Vault
//! demands of a role.

use std::fmt;

use crate::{Error, Kind};

/// A path below `/v1/`, made by [`kv2_path`] or [`database_path`] only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretPath(String);

impl SecretPath {
    /// Without leading `/`, as Vault writes it in a wrapping token's creation path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `{mount}/data/{tenant}/{credential}`.
///
/// # Errors
/// `BadName` when a part is not of the allowed form.
pub fn kv2_path(mount: &str, tenant: &str, credential: &str) -> Result<SecretPath, Error> {
    if is_mount(mount) && is_name(tenant) && is_name(credential) {
        Ok(SecretPath(format!("{mount}/data/{tenant}/{credential}")))
    } else {
        Err(Error::new(Kind::BadName, "path"))
    }
}

/// `{mount}/creds/{tenant}--{credential}`.
///
/// # Errors
/// `BadName` when a part is not of the allowed form, or the pair could be read as another pair.
pub fn database_path(mount: &str, tenant: &str, credential: &str) -> Result<SecretPath, Error> {
    if is_mount(mount) {
        Ok(SecretPath(format!("{mount}/creds/{}", joined(tenant, credential)?)))
    } else {
        Err(Error::new(Kind::BadName, "path"))
    }
}

/// `exequatur-scoped-{tenant}--{credential}`: the policy that lets a scoped token read one path.
///
/// # Errors
/// `BadName` as [`database_path`].
pub fn scoped_policy(tenant: &str, credential: &str) -> Result<String, Error> {
    Ok(format!("exequatur-scoped-{}", joined(tenant, credential)?))
}

fn joined(tenant: &str, credential: &str) -> Result<String, Error> {
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

    #[test]
    fn paths_have_one_fixed_form() {
        assert_eq!(
            kv2_path("secret", "t-green", "crm.read").unwrap().as_str(),
            "secret/data/t-green/crm.read"
        );
        assert_eq!(kv2_path("a/kv", "t", "a--b-").unwrap().as_str(), "a/kv/data/t/a--b-");
        assert_eq!(
            database_path("database", "t", "db.query").unwrap().as_str(),
            "database/creds/t--db.query"
        );
        assert_eq!(scoped_policy("t-green", "sms.send").unwrap(), "exequatur-scoped-t-green--sms.send");
    }

    #[test]
    fn no_other_name_becomes_a_path() {
        let long = "a".repeat(64);
        let bad =
            ["", ".", "..", "a..b", "a/../b", "/a", "a/", "A", "-a", "a b", "a%2f", "a?x", "a#", "é", &long];
        for bad in bad {
            assert!(kv2_path("secret", bad, "c").is_err(), "{bad}");
            assert!(kv2_path("secret", "t", bad).is_err(), "{bad}");
            assert!(kv2_path(bad, "t", "c").is_err() || bad == "a/b", "{bad}");
            assert!(
                database_path("database", bad, "c").is_err() && scoped_policy("t", bad).is_err(),
                "{bad}"
            );
        }
        assert!(kv2_path("a/b/c/d/e", "t", "c").is_err());
    }

    #[test]
    fn no_two_pairs_share_a_role() {
        // `a--b` + `c` would be `a` + `b--c`.
        assert!(database_path("d", "a--b", "c").is_err());
        assert!(database_path("d", "a-", "b").is_err());
        assert!(database_path("d", "a", "b--c").is_ok());
        assert!(database_path("d", "a", "b-").is_err() && database_path("d", "a", "b.").is_err());
    }
}
