//! The value model: exact JSON values with one order of names. Knows no encoding.

use std::cmp::Ordering;

/// One exact JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// JSON null.
    Null,
    /// true or false.
    Bool(bool),
    /// Within -2^63 .. 2^63-1.
    Int(i64),
    /// Within 2^63 .. 2^64-1.
    Uint(u64),
    /// Finite, never negative zero.
    Double(f64),
    /// Not normalized.
    String(String),
    /// Raw bytes; never from JSON.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(Object),
}

/// Members with unique names, ascending by their UTF-8 bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(Vec<(String, Value)>);

/// A name was already there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate;

impl Object {
    /// An empty object.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(n, _)| n.as_bytes().cmp(name.as_bytes()))
    }

    /// The member of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).ok().and_then(|at| self.0.get(at)).map(|(_, v)| v)
    }

    /// The member of that name, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.find(name).ok()?;
        self.0.get_mut(at).map(|(_, v)| v)
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`Duplicate`] when the name is there; nothing changes then.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) -> Result<(), Duplicate> {
        let name = name.into();
        match self.find(&name) {
            Ok(_) => Err(Duplicate),
            Err(at) => {
                self.0.insert(at, (name, value));
                Ok(())
            }
        }
    }

    /// Sorts members that were collected in any order.
    pub(crate) fn from_members(mut members: Vec<(String, Value)>) -> Result<Self, Duplicate> {
        members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        let unique = members.windows(2).all(|w| match w {
            [a, b] => a.0 != b.0,
            _ => true,
        });
        if unique { Ok(Self(members)) } else { Err(Duplicate) }
    }

    /// Appends a member that must come after all others.
    pub(crate) fn push_last(&mut self, name: String, value: Value) -> bool {
        if let Some((last, _)) = self.0.last()
            && last.as_bytes().cmp(name.as_bytes()) != Ordering::Less
        {
            return false;
        }
        self.0.push((name, value));
        true
    }

    /// Members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Members in order, values to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(n, v)| (n.as_str(), v))
    }

    /// Number of members.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at a JSON Pointer (RFC 6901) below this object; the empty pointer has none.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let rest = pointer.strip_prefix('/')?;
        let (token, rest) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let value = self.get(&unescape(token))?;
        if rest.is_empty() { Some(value) } else { value.pointer(rest) }
    }
}

impl Value {
    /// The value at a JSON Pointer below this one; the empty pointer is the value itself.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut value = self;
        for token in pointer.strip_prefix('/')?.split('/') {
            value = match value {
                Self::Object(object) => object.get(&unescape(token))?,
                Self::List(list) => {
                    let plain = token == "0"
                        || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
                    list.get(token.parse::<usize>().ok().filter(|_| plain)?)?
                }
                _ => return None,
            };
        }
        Some(value)
    }

    /// The kind's word, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "integer",
            Self::Double(_) => "number",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Object(_) => "object",
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// One token of a JSON Pointer, escaped.
#[must_use]
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
