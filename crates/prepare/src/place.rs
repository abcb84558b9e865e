//! Puts one value into one kind of place, or says why it does not fit. Knows no template.

use exequatur_canonical::{Object, Value};
use exequatur_proto::definition::v1::{Source, source::From};

use crate::{PrepareError, json};

/// A value together with where it came from, for messages.
pub(crate) struct Placed<'a> {
    pub(crate) value: std::borrow::Cow<'a, Value>,
    pub(crate) pointer: &'a str,
}

impl Placed<'_> {
    pub(crate) fn does_not_fit(&self, why: impl Into<String>) -> PrepareError {
        PrepareError::DoesNotFit { pointer: self.pointer.to_owned(), why: why.into() }
    }

    /// The value as text: strings as they are, numbers and booleans as their JSON text.
    pub(crate) fn text(&self) -> Result<String, PrepareError> {
        match self.value.as_ref() {
            Value::String(text) => Ok(text.clone()),
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => {
                let mut out = String::new();
                json::write(self.value.as_ref(), &mut out).map_err(|why| self.does_not_fit(why))?;
                Ok(out)
            }
            other => Err(self.does_not_fit(format!(
                "a value of type {} does not fit here; give text, a number or a boolean",
                other.kind()
            ))),
        }
    }

    /// The value as text that must be text.
    pub(crate) fn string(&self) -> Result<&str, PrepareError> {
        match self.value.as_ref() {
            Value::String(text) => Ok(text),
            other => Err(self.does_not_fit(format!("must be text, is {}", other.kind()))),
        }
    }
}

/// Finds a source's value; `None` when its argument is absent.
pub(crate) fn find<'a>(source: &'a Source, arguments: &'a Object) -> Option<Placed<'a>> {
    match source.from.as_ref()? {
        From::Literal(text) => {
            Some(Placed { value: std::borrow::Cow::Owned(Value::String(text.clone())), pointer: "" })
        }
        From::Argument(pointer) => arguments
            .pointer(pointer)
            .map(|value| Placed { value: std::borrow::Cow::Borrowed(value), pointer }),
    }
}

/// Finds a source's value, which must be there.
pub(crate) fn need<'a>(source: &'a Source, arguments: &'a Object) -> Result<Placed<'a>, PrepareError> {
    find(source, arguments).ok_or_else(|| {
        let pointer = match &source.from {
            Some(From::Argument(pointer)) => pointer.clone(),
            _ => String::new(),
        };
        PrepareError::Missing { pointer }
    })
}

/// Everything but the unreserved characters of RFC 3986 is written as `%XX`.
const ENCODED: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes text.
pub(crate) fn percent(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, ENCODED).to_string()
}

/// Why text is no path segment.
pub(crate) fn segment(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("a path segment must not be empty"),
        "." | ".." => Err("`.` and `..` are no path segments"),
        _ => Ok(()),
    }
}

/// Why text is no header value.
pub(crate) fn header_value(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("a header value must not be empty")
    } else if !text.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        Err("a header value holds visible ASCII characters and blanks only, no line breaks")
    } else if text.starts_with(' ') || text.ends_with(' ') {
        Err("a header value must not begin or end with a blank")
    } else if text.len() > 8192 {
        Err("a header value has at most 8192 characters")
    } else {
        Ok(())
    }
}
