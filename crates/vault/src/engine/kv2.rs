//! The key/value engine, version 2: `{mount}/data/{tenant}/{credential}`. Must not know who asks.
//!
//! A field of a secret is text, and its UTF-8 bytes are the secret. A binary secret is kept as standard
//! base64 with padding in a field whose name ends with `_base64`, and is decoded here; the name decides,
//! never the content.

use std::mem;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_secret::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};
use zeroize::{Zeroize as _, Zeroizing};

use super::{Engine, Opened};
use crate::answer::{Answer, MAX_SECRET_BYTES};
use crate::paths::is_name;
use crate::{Error, Kind, Paths};

/// Ends the names of fields that hold base64.
const BINARY: &str = "_base64";

/// The engine `kv`, version 2.
#[derive(Debug)]
pub(super) struct Kv2;

#[derive(Deserialize)]
struct Answered {
    data: Option<Map<String, Value>>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    version: u64,
}

impl Engine for Kv2 {
    fn word(&self) -> &'static str {
        "kv2"
    }

    fn mount<'a>(&self, paths: &'a Paths) -> &'a str {
        &paths.kv2
    }

    fn path(&self, tenant: &str, credential: &str) -> Result<String, Error> {
        if is_name(tenant) && is_name(credential) {
            Ok(format!("data/{tenant}/{credential}"))
        } else {
            Err(Error::new(Kind::BadName, "path"))
        }
    }

    fn open(&self, answer: &Answer, field: &str) -> Result<Opened, Error> {
        let mut kv2: Answered = answer.data()?;
        let version = kv2.metadata.version;
        // A deleted version has metadata and no data.
        let mut data = kv2.data.take().ok_or_else(|| answer.error(Kind::NotFound))?;
        let value = data.get_mut(field).map(Value::take);
        data.values_mut().for_each(wipe);
        let text = match value {
            Some(Value::String(text)) => Zeroizing::new(text),
            Some(mut other) => {
                wipe(&mut other);
                return Err(answer.error(Kind::Malformed));
            }
            None => return Err(answer.error(Kind::MissingField)),
        };
        Ok(Opened { version, ..Opened::plain(bytes(answer, field, text)?) })
    }

    fn has_fields(&self) -> bool {
        true
    }
}

fn bytes(answer: &Answer, field: &str, mut text: Zeroizing<String>) -> Result<Secret, Error> {
    let value = if field.ends_with(BINARY) {
        Secret::new(STANDARD.decode(text.as_bytes()).map_err(|_| answer.error(Kind::Malformed))?)
    } else {
        Secret::new(mem::take(&mut *text).into_bytes())
    };
    match value.expose().len() {
        // An empty value opens nothing and would be sent as if it did.
        0 => Err(answer.error(Kind::MissingField)),
        1..=MAX_SECRET_BYTES => Ok(value),
        _ => Err(answer.error(Kind::TooLarge)),
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
        Kv2.open(&answer, field).map(|read| read.secret.expose().to_vec()).map_err(|error| error.kind())
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
            let error = Kv2.open(&answer, "value").unwrap_err();
            assert_eq!(error.kind(), Kind::Malformed);
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
