//! The database engine: a user that is made for this read, with a lease: `{mount}/creds/{tenant}--{credential}`.
//! Must not know databases.

use exequatur_secret::Secret;
use serde::Deserialize;

use super::{Engine, Opened};
use crate::answer::Answer;
use crate::paths::joined;
use crate::{Error, Kind, Paths};

/// The engine `database`.
#[derive(Debug)]
pub(super) struct Database;

#[derive(Deserialize)]
struct Creds {
    username: String,
    password: String,
}

impl Engine for Database {
    fn word(&self) -> &'static str {
        "database"
    }

    fn mount<'a>(&self, paths: &'a Paths) -> &'a str {
        &paths.database
    }

    fn path(&self, tenant: &str, credential: &str) -> Result<String, Error> {
        Ok(format!("creds/{}", joined(tenant, credential)?))
    }

    fn open(&self, answer: &Answer, _: &str) -> Result<Opened, Error> {
        let outer = answer.outer::<Creds>()?;
        let creds = outer.data.ok_or_else(|| answer.error(Kind::Malformed))?;
        let secret = Secret::new(creds.password.into_bytes());
        if outer.lease_id.is_empty() || creds.username.is_empty() || secret.expose().is_empty() {
            return Err(answer.error(Kind::Malformed));
        }
        Ok(Opened {
            secret,
            user: creds.username,
            lease: outer.lease_id,
            lease_s: u64::from(outer.lease_duration),
            version: 0,
        })
    }
}
