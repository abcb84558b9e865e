//! A strict subset of YAML 1.2 as a tree whose every node knows its line: no anchors, tags or
//! second documents, no duplicate keys, numbers in JSON's form only. Knows neither rules nor tools.
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

mod map;
mod number;
mod read;

use std::fmt;

pub use map::{Map, nearest};
pub use read::read;

/// Largest file that is read, bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A place in a file, both counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// Line, from one.
    pub line: usize,
    /// Column, from one.
    pub column: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for FileError {}

impl Place {
    /// An error at this place.
    #[must_use]
    pub fn error(self, message: impl Into<String>) -> FileError {
        FileError { line: self.line, column: self.column, message: message.into() }
    }
}

/// A node and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The exact text of a JSON number.
    Number(String),
    /// Any other plain text, or quoted text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping in the file's order; keys are unique text.
    Map(Vec<(Place, String, Node)>),
}

impl Node {
    /// What it is, for messages.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// An error at this node.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> FileError {
        self.place.error(message)
    }

    fn not(&self, wanted: &str) -> FileError {
        self.error(format!("must be {wanted}, is {}", self.what()))
    }

    /// Text.
    ///
    /// # Errors
    /// When the node is anything else.
    pub fn text(&self) -> Result<&str, FileError> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.not("text (quote it)")),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// When the node is anything else.
    pub fn bool(&self) -> Result<bool, FileError> {
        match self.kind {
            Kind::Bool(value) => Ok(value),
            _ => Err(self.not("true or false")),
        }
    }

    /// A whole number within `min..=max`.
    ///
    /// # Errors
    /// When the node is anything else.
    pub fn whole(&self, min: u64, max: u64) -> Result<u64, FileError> {
        let value = match &self.kind {
            Kind::Number(text) => text.parse::<u64>().ok(),
            _ => None,
        };
        value
            .filter(|v| (min..=max).contains(v))
            .ok_or_else(|| self.error(format!("must be a whole number from {min} to {max}")))
    }

    /// A list.
    ///
    /// # Errors
    /// When the node is anything else.
    pub fn list(&self) -> Result<&[Self], FileError> {
        match &self.kind {
            Kind::List(items) => Ok(items),
            _ => Err(self.not("a list")),
        }
    }

    /// A mapping whose keys are taken one by one; see [`Map`].
    ///
    /// # Errors
    /// When the node is anything else.
    pub fn map(&self) -> Result<Map<'_>, FileError> {
        match &self.kind {
            Kind::Map(entries) => Ok(Map::new(self.place, entries)),
            _ => Err(self.not("a mapping")),
        }
    }

    /// One of some words.
    ///
    /// # Errors
    /// Names the nearest word when the text is none of them.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, FileError> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let list = names.join(", ");
        let Kind::Text(text) = &self.kind else { return Err(self.not(&format!("one of {list}"))) };
        match words.iter().find(|(name, _)| name == text) {
            Some((_, value)) => Ok(*value),
            None => Err(self.error(format!(
                "`{}` is not a word here{}; the words are {list}",
                text.escape_debug(),
                nearest(text, &names).map_or(String::new(), |n| format!(", did you mean `{n}`?")),
            ))),
        }
    }

    /// JSON text of the node, members sorted by name, without blanks: equal trees give equal text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        number::write_json(self, &mut out);
        out
    }
}

#[cfg(test)]
mod tests;
