//! Reads Vault's answers. Must not send. Values of secrets are taken out and the rest is wiped.
//!
//! A field of a KV secret is text, and its UTF-8 bytes are the secret. A binary secret is kept as
//! standard base64 with padding in a field whose name ends with `_base64`, and is decoded here; the name
//! decides, never the content.

use std::fmt;
use std::mem;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_secret::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use vaultrs::api::EndpointResult;
use zeroize::{Zeroize as _, Zeroizing};

use crate::{Error, Kind};

/// A secret's longest value, as of a sealed one.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
/// Ends the names of fields that hold base64.
const BINARY: &str = "_base64";

/// One field of one version of a KV v2 secret.
#[derive(Debug)]
pub struct Kv2Field {
    /// The field's bytes.
    pub value: Secret,
    /// The version that it comes from, for a caller that pinned one.
    pub version: u64,
}

/// A dynamic user of a database.
pub struct DatabaseCreds {
    /// For `revoke_lease`; not a secret.
    pub lease_id: String,
    /// Seconds.
    pub lease_duration_s: u64,
    /// The user.
    pub username: String,
    /// Its password.
    pub password: Secret,
}

impl fmt::Debug for DatabaseCreds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseCreds({})", self.lease_id)
    }
}

/// A whole answer, not yet read.
pub(crate) struct Answer {
    call: &'static str,
    body: Zeroizing<Vec<u8>>,
}

#[derive(Deserialize)]
struct Kv2 {
    data: Option<Map<String, Value>>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    version: u64,
}

#[derive(Deserialize)]
struct Creds {
    username: String,
    password: String,
}

impl Answer {
    pub(crate) const fn new(call: &'static str, body: Zeroizing<Vec<u8>>) -> Self {
        Self { call, body }
    }

    pub(crate) const fn error(&self, kind: Kind) -> Error {
        Error::new(kind, self.call)
    }

    /// The outer form. The parser's message would quote the answer, so it is dropped.
    pub(crate) fn outer<T: DeserializeOwned>(&self) -> Result<EndpointResult<T>, Error> {
        serde_json::from_slice(&self.body).map_err(|_| self.error(Kind::Malformed))
    }

    /// The part `data`.
    pub(crate) fn data<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.outer()?.data.ok_or_else(|| self.error(Kind::Malformed))
    }

    #[cfg(feature = "setup")]
    pub(crate) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// All of it, for operators' calls.
    #[cfg(feature = "setup")]
    pub(crate) fn plain<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|_| self.error(Kind::Malformed))
    }

    /// One field of a KV v2 read. A deleted version has metadata and no data.
    pub(crate) fn kv2(&self, field: &str) -> Result<Kv2Field, Error> {
        let mut kv2: Kv2 = self.data()?;
        let version = kv2.metadata.version;
        let mut data = kv2.data.take().ok_or_else(|| self.error(Kind::NotFound))?;
        let value = data.get_mut(field).map(Value::take);
        data.values_mut().for_each(wipe);
        let text = match value {
            Some(Value::String(text)) => Zeroizing::new(text),
            Some(mut other) => {
                wipe(&mut other);
                return Err(self.error(Kind::Malformed));
            }
            None => return Err(self.error(Kind::MissingField)),
        };
        let value = self.bytes(field, text)?;
        Ok(Kv2Field { value, version })
    }

    fn bytes(&self, field: &str, mut text: Zeroizing<String>) -> Result<Secret, Error> {
        let value = if field.ends_with(BINARY) {
            Secret::new(STANDARD.decode(text.as_bytes()).map_err(|_| self.error(Kind::Malformed))?)
        } else {
            Secret::new(mem::take(&mut *text).into_bytes())
        };
        match value.expose().len() {
            // An empty value opens nothing and would be sent as if it did.
            0 => Err(self.error(Kind::MissingField)),
            1..=MAX_SECRET_BYTES => Ok(value),
            _ => Err(self.error(Kind::TooLarge)),
        }
    }

    /// A dynamic user with its lease.
    pub(crate) fn database(&self) -> Result<DatabaseCreds, Error> {
        let outer = self.outer::<Creds>()?;
        let creds = outer.data.ok_or_else(|| self.error(Kind::Malformed))?;
        let password = Secret::new(creds.password.into_bytes());
        if outer.lease_id.is_empty() || creds.username.is_empty() || password.expose().is_empty() {
            return Err(self.error(Kind::Malformed));
        }
        let lease_duration_s = u64::from(outer.lease_duration);
        Ok(DatabaseCreds { lease_id: outer.lease_id, lease_duration_s, username: creds.username, password })
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(map) => map.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may stop at once")]

    use super::*;

    fn kv2(data: &str, field: &str) -> Result<Vec<u8>, Kind> {
        let text = format!(
            r#"{{"request_id":"","lease_id":"","renewable":false,"lease_duration":0,"wrap_info":null,
            "warnings":null,"auth":null,"data":{{"data":{data},"metadata":{{"version":3}}}}}}"#
        );
        let answer = Answer::new("test", Zeroizing::new(text.into_bytes()));
        answer.kv2(field).map(|read| read.value.expose().to_vec()).map_err(|error| error.kind())
    }

    #[test]
    fn a_field_is_text_and_a_base64_field_is_bytes() {
        assert_eq!(kv2(r#"{"value":"a\u00e9\n"}"#, "value"), Ok("aé\n".into()));
        assert_eq!(kv2(r#"{"key_base64":"AP8="}"#, "key_base64"), Ok(vec![0, 255]));
        assert_eq!(kv2(r#"{"value":"AP8="}"#, "value"), Ok(b"AP8=".to_vec()));
        for (data, field, kind) in [
            ("null", "value", Kind::NotFound),
            ("{}", "value", Kind::MissingField),
            (r#"{"value":""}"#, "value", Kind::MissingField),
            (r#"{"other":"x"}"#, "value", Kind::MissingField),
            (r#"{"value":7}"#, "value", Kind::Malformed),
            (r#"{"value":{"a":["x"]}}"#, "value", Kind::Malformed),
            (r#"{"key_base64":"AP8"}"#, "key_base64", Kind::Malformed),
            (r#"{"key_base64":"AP8=\n"}"#, "key_base64", Kind::Malformed),
            ("[]", "value", Kind::Malformed),
        ] {
            assert_eq!(kv2(data, field), Err(kind), "{data}");
        }
        let long = |length: usize| kv2(&format!(r#"{{"value":"{}"}}"#, "x".repeat(length)), "value");
        assert!(long(MAX_SECRET_BYTES).is_ok());
        assert_eq!(long(MAX_SECRET_BYTES + 1), Err(Kind::TooLarge));
    }

    #[test]
    fn no_answer_is_malformed_and_nothing_prints() {
        for text in ["", "{", "null", "{\"data\":1}", "<html>hunter2</html>", "[]"] {
            let answer = Answer::new("test", Zeroizing::new(text.as_bytes().to_vec()));
            let error = answer.kv2("value").unwrap_err();
            assert_eq!(error.kind(), Kind::Malformed);
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
