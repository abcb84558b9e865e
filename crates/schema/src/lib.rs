//! JSON Schema over frozen values: checks arguments, fills in defaults, checks results. Draft
//! 2020-12, `format` asserted, patterns in linear time, references inside the schema only.
//! Knows no tool and fetches nothing.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests may stop at once"
    )
)]

mod convert;
mod defaults;
mod text;

#[cfg(test)]
mod tests;

use exequatur_canonical::Object;
use jsonschema::{Draft, PatternOptions, Validator};

pub use convert::to_json;

/// Largest schema, bytes.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {0}")]
pub struct SchemaError(pub(crate) String);

/// The first place where a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct Violation {
    /// JSON Pointer into the value; empty for the whole.
    pub pointer: String,
    /// What is wrong, without the value itself.
    pub message: String,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    object: Object,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema's exact text.
    ///
    /// # Errors
    /// When the text is not strict JSON, no object, names another draft, refers outside of itself
    /// or in a circle, uses an unknown format or a pattern that cannot run in linear time.
    pub fn compile(text: &str) -> Result<Self, SchemaError> {
        let object = text::read(text)?;
        let json = convert::object_to_json(&object).map_err(|v| SchemaError(v.message))?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20))
            .build(&json)
            .map_err(|e| SchemaError(e.to_string()))?;
        Ok(Self { object, validator })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The first violation; equal arguments give the same one.
    pub fn validate(&self, arguments: &Object) -> Result<(), Violation> {
        let json = convert::object_to_json(arguments)?;
        self.check(&json, true)
    }

    /// Checks a result, given as JSON text. The message holds no word of the text.
    ///
    /// # Errors
    /// When the text is not JSON, or its first violation.
    pub fn validate_json(&self, text: &[u8]) -> Result<(), Violation> {
        let json: serde_json::Value = serde_json::from_slice(text)
            .map_err(|_| Violation { pointer: String::new(), message: "is not JSON".to_owned() })?;
        self.check(&json, false)
    }

    fn check(&self, json: &serde_json::Value, named: bool) -> Result<(), Violation> {
        self.validator.validate(json).map_err(|error| Violation {
            pointer: if named { error.instance_path().as_str().to_owned() } else { String::new() },
            message: if named {
                short(error.masked().to_string())
            } else {
                format!("breaks `{}` of the schema", error.schema_path().as_str())
            },
        })
    }

    /// Fills in defaults and names the filled places as JSON Pointers, in order. Only a `default`
    /// that stands under `properties` of an object that is there counts, in nested properties, list
    /// items and local references too, never inside `oneOf`, `anyOf`, `allOf`, `if` or `not`. A
    /// filled value is not itself filled further. Validate what comes back.
    #[must_use]
    pub fn fill_defaults(&self, arguments: &Object) -> (Object, Vec<String>) {
        let mut filled = Vec::new();
        let object = defaults::fill(&self.object, arguments, &mut filled);
        (object, filled)
    }

    /// Names under the top level's `properties`, sorted.
    #[must_use]
    pub fn property_names(&self) -> Vec<String> {
        match self.object.get("properties") {
            Some(exequatur_canonical::Value::Object(properties)) => {
                properties.iter().map(|(name, _)| name.to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Names in a message may be as long as the arguments.
fn short(mut message: String) -> String {
    const MAX: usize = 512;
    if message.len() > MAX {
        let end = (0..=MAX).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}
