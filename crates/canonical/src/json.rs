//! The strict JSON reader (specification section 4): left to right, exact numbers, unique names,
//! bounded depth. Recursion is bounded by the depth limit.

use std::collections::BTreeMap;

use crate::error::{CanonicalError, ErrorCode};
use crate::number;
use crate::value::{Object, Value, pointer_token};

/// Containers that may nest; the arguments object is the first.
pub const MAX_DEPTH: usize = 32;

/// Reads one JSON text whose top level is an object.
///
/// # Errors
/// The first fault in the order of the specification.
pub fn read_arguments(json: &[u8]) -> Result<Object, CanonicalError> {
    match read_value(json)? {
        Value::Object(object) => Ok(object),
        _ => Err(CanonicalError::new(ErrorCode::NotAnObject)),
    }
}

/// Reads one JSON text of any kind.
///
/// # Errors
/// As [`read_arguments`], without `NOT_AN_OBJECT`.
pub fn read_value(json: &[u8]) -> Result<Value, CanonicalError> {
    let text = std::str::from_utf8(json).map_err(|_| CanonicalError::new(ErrorCode::InvalidUtf8))?;
    let mut reader = Reader::new(text);
    reader.blank();
    let value = reader.value()?;
    reader.blank();
    if reader.at < text.len() {
        return Err(reader.error(ErrorCode::InvalidJson));
    }
    Ok(value)
}

/// A string of a flat object.
pub(crate) struct Text {
    pub(crate) text: String,
    /// An escape left half of a surrogate pair: `text` is not what was meant, only that it was there.
    pub(crate) lone_surrogate: bool,
}

/// Reads one JSON object whose members are all strings, as the JSON Lines commands take; `None` for anything else.
pub(crate) fn read_flat(line: &[u8]) -> Option<BTreeMap<String, Text>> {
    let mut reader = Reader::new(std::str::from_utf8(line).ok()?);
    let mut members = BTreeMap::new();
    reader.blank();
    reader.take(b'{').then_some(())?;
    reader.blank();
    let mut open = !reader.take(b'}');
    while open {
        reader.blank();
        let name = reader.flat_string()?;
        reader.blank();
        reader.take(b':').then_some(())?;
        reader.blank();
        let value = reader.flat_string()?;
        if name.lone_surrogate || members.insert(name.text, value).is_some() {
            return None;
        }
        reader.blank();
        open = !reader.take(b'}');
        if open {
            reader.take(b',').then_some(())?;
        }
    }
    reader.blank();
    reader.peek().is_none().then_some(members)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: Vec<String>,
    depth: usize,
    /// Note lone surrogates instead of failing.
    keep_lone: bool,
    lone_seen: bool,
}

type Read<T> = Result<T, CanonicalError>;

impl<'a> Reader<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0, path: Vec::new(), depth: 0, keep_lone: false, lone_seen: false }
    }

    fn flat_string(&mut self) -> Option<Text> {
        if self.peek() != Some(b'"') {
            return None;
        }
        (self.keep_lone, self.lone_seen) = (true, false);
        let text = self.string().ok()?;
        Some(Text { text, lone_surrogate: self.lone_seen })
    }

    fn lone(&mut self) -> Read<char> {
        if !self.keep_lone {
            return Err(self.error(ErrorCode::LoneSurrogate));
        }
        self.lone_seen = true;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn error(&self, code: ErrorCode) -> CanonicalError {
        let pointer: String = self.path.iter().flat_map(|token| ["/", token]).collect();
        CanonicalError::at(code, pointer)
    }

    fn bad<T>(&self) -> Read<T> {
        Err(self.error(ErrorCode::InvalidJson))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Read<Value> {
        match self.peek() {
            Some(b'{') => self.container(Self::object),
            Some(b'[') => self.container(Self::list),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.literal(),
        }
    }

    fn container(&mut self, read: fn(&mut Self) -> Read<Value>) -> Read<Value> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(ErrorCode::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Read<Value> {
        let mut members = BTreeMap::new();
        self.blank();
        if self.take(b'}') {
            return Ok(Value::Object(Object::new()));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return self.bad();
            }
            let name = self.string()?;
            self.blank();
            if !self.take(b':') {
                return self.bad();
            }
            self.blank();
            self.path.push(pointer_token(&name));
            let value = self.value()?;
            // Found once the second value has been read.
            if members.insert(name, value).is_some() {
                return Err(self.error(ErrorCode::DuplicateName));
            }
            self.path.pop();
            self.blank();
            if self.take(b'}') {
                break;
            }
            if !self.take(b',') {
                return self.bad();
            }
        }
        Object::from_members(members.into_iter().collect())
            .map(Value::Object)
            .map_err(|_| self.error(ErrorCode::DuplicateName))
    }

    fn list(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        self.blank();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            self.blank();
            self.path.push(items.len().to_string());
            items.push(self.value()?);
            self.path.pop();
            self.blank();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            if !self.take(b',') {
                return self.bad();
            }
        }
    }

    fn literal(&mut self) -> Read<Value> {
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.bad()
    }

    fn number(&mut self) -> Read<Value> {
        let Some(length) = number::token(self.rest().as_bytes()) else {
            return self.bad();
        };
        let token = self.rest().get(..length).unwrap_or_default();
        let value = number::read(token).map_err(|code| self.error(code))?;
        self.at += length;
        Ok(value)
    }

    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20);
            let Some(plain) = plain else { return self.bad() };
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return self.bad(),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        self.at += 1;
        let Some(letter) = self.peek() else { return self.bad() };
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return self.bad(),
        })
    }

    fn unicode(&mut self) -> Read<char> {
        let first = self.hex4()?;
        let code = match first {
            0xD800..=0xDBFF if self.rest().starts_with("\\u") => {
                self.at += 2;
                let second = self.hex4()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return self.lone();
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.lone(),
        }
    }

    fn hex4(&mut self) -> Read<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let Some(digits) = digits.filter(|d| d.iter().all(u8::is_ascii_hexdigit)) else {
            return self.bad();
        };
        self.at += 4;
        Ok(digits.iter().fold(0, |sum, d| sum * 16 + char::from(*d).to_digit(16).unwrap_or(0)))
    }
}
