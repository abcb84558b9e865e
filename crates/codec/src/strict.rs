//! A walk over protobuf bytes beside their descriptor. Decodes nothing and keeps nothing.

use std::collections::HashSet;
use std::fmt;

use exequatur_proto::POOL;
use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{Kind, MessageDescriptor};

/// Nesting at which prost itself stops.
const MAX_DEPTH: usize = 100;

/// Why bytes are not a strict message of their type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Dotted path of field names, with a field number for what has no name.
    pub path: String,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at `{}`: send only what the published .proto names", self.what, self.path)
    }
}

impl std::error::Error for Violation {}

/// Checks that `bytes` hold only known fields, each singular one at most once.
pub fn check(full_name: &str, bytes: &[u8]) -> Result<(), Violation> {
    let Some(message) = POOL.get_message_by_name(full_name) else {
        return Err(Violation { path: full_name.to_owned(), what: "unknown message type" });
    };
    walk(&message, bytes, "", 0)
}

fn walk(message: &MessageDescriptor, mut bytes: &[u8], path: &str, depth: usize) -> Result<(), Violation> {
    let fail = |what, field: &str| Err(Violation { path: join(path, field), what });
    if depth >= MAX_DEPTH {
        return fail("nested too deep", "");
    }
    let mut seen = HashSet::new();
    while bytes.has_remaining() {
        let Ok((tag, wire)) = decode_key(&mut bytes) else {
            return fail("malformed bytes", "");
        };
        let Some(field) = message.get_field(tag) else {
            return fail("unknown field", &tag.to_string());
        };
        // A oneof counts as one singular field: two members are two values for one place.
        let slot = field
            .containing_oneof()
            .map_or(tag, |oneof| oneof.fields().next().map_or(tag, |first| first.number()));
        if !field.is_list() && !field.is_map() && !seen.insert(slot) {
            return fail("repeated singular field", field.name());
        }
        if let (Kind::Message(inner), WireType::LengthDelimited) = (field.kind(), wire) {
            let Ok(length) = decode_varint(&mut bytes) else {
                return fail("malformed bytes", field.name());
            };
            let Some((head, rest)) = usize::try_from(length).ok().and_then(|n| bytes.split_at_checked(n))
            else {
                return fail("malformed bytes", field.name());
            };
            walk(&inner, head, &join(path, field.name()), depth + 1)?;
            bytes = rest;
        } else if skip_field(wire, tag, &mut bytes, DecodeContext::default()).is_err() {
            return fail("malformed bytes", field.name());
        }
    }
    Ok(())
}

fn join(path: &str, field: &str) -> String {
    match (path.is_empty(), field.is_empty()) {
        (true, _) => field.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}.{field}"),
    }
}
