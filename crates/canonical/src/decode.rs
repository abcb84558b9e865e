//! The strict decoder. It reads structure only; that bytes are canonical is proved by encoding
//! what was read and comparing, so that the decoder accepts exactly what the encoder makes.

use crate::digest::Digest;
use crate::json::MAX_DEPTH;
use crate::plan::{PlanHeader, Timestamp};
use crate::value::{Object, Value};

/// What an action's bytes hold.
pub(crate) struct RawAction {
    pub(crate) tool: String,
    pub(crate) arguments: Object,
    pub(crate) rationale: String,
    pub(crate) tool_digest: Vec<u8>,
}

enum Content<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let part = u64::from(byte & 0x7f);
            value |= part.checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The next field; `Some(None)` at the end.
    #[allow(clippy::option_option, reason = "the end and a fault are two things")]
    fn next(&mut self) -> Option<Option<(u64, Content<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let content = match key & 7 {
            0 => Content::Varint(self.varint()?),
            1 => {
                let (head, rest) = self.0.split_first_chunk::<8>()?;
                self.0 = rest;
                Content::Fixed(u64::from_le_bytes(*head))
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (head, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Content::Bytes(head)
            }
            _ => return None,
        };
        Some(Some((key >> 3, content)))
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(ToOwned::to_owned)
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

fn value(bytes: &[u8], depth: usize) -> Option<Value> {
    let mut fields = Fields(bytes);
    let (field, content) = fields.next()??;
    let read = match (field, content) {
        (1, Content::Varint(0)) => Value::Null,
        (2, Content::Varint(flag @ 0..=1)) => Value::Bool(flag == 1),
        (3, Content::Varint(raw)) => Value::Int(unzigzag(raw)),
        (4, Content::Varint(raw)) if i64::try_from(raw).is_err() => Value::Uint(raw),
        (5, Content::Fixed(bits)) => {
            let number = f64::from_bits(bits);
            if !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
                return None;
            }
            Value::Double(number)
        }
        (6, Content::Bytes(raw)) => Value::String(text(raw)?),
        (7, Content::Bytes(raw)) => Value::Bytes(raw.to_vec()),
        (8, Content::Bytes(raw)) => Value::List(list(raw, depth + 1)?),
        (9, Content::Bytes(raw)) => Value::Object(object(raw, depth + 1)?),
        _ => return None,
    };
    fields.next()?.is_none().then_some(read)
}

fn list(bytes: &[u8], depth: usize) -> Option<Vec<Value>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut items = Vec::new();
    let mut fields = Fields(bytes);
    while let Some((field, content)) = fields.next()? {
        match (field, content) {
            (1, Content::Bytes(raw)) => items.push(value(raw, depth)?),
            _ => return None,
        }
    }
    Some(items)
}

pub(crate) fn object(bytes: &[u8], depth: usize) -> Option<Object> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut members = Object::new();
    let mut fields = Fields(bytes);
    while let Some((field, content)) = fields.next()? {
        let (1, Content::Bytes(raw)) = (field, content) else { return None };
        let (mut name, mut member) = (String::new(), None);
        let mut inner = Fields(raw);
        while let Some(part) = inner.next()? {
            match part {
                (1, Content::Bytes(raw)) => name = text(raw)?,
                (2, Content::Bytes(raw)) => member = Some(value(raw, depth)?),
                _ => return None,
            }
        }
        if !members.push_last(name, member?) {
            return None;
        }
    }
    Some(members)
}

pub(crate) fn action(bytes: &[u8]) -> Option<RawAction> {
    let mut read = RawAction {
        tool: String::new(),
        arguments: Object::new(),
        rationale: String::new(),
        tool_digest: Vec::new(),
    };
    let mut fields = Fields(bytes);
    while let Some(part) = fields.next()? {
        match part {
            (1, Content::Bytes(raw)) => read.tool = text(raw)?,
            (2, Content::Bytes(raw)) => read.arguments = object(raw, 1)?,
            (3, Content::Bytes(raw)) => read.rationale = text(raw)?,
            (4, Content::Bytes(raw)) => read.tool_digest = raw.to_vec(),
            _ => return None,
        }
    }
    Some(read)
}

fn timestamp(bytes: &[u8]) -> Option<Timestamp> {
    let mut at = Timestamp { seconds: 0, nanos: 0 };
    let mut fields = Fields(bytes);
    while let Some(part) = fields.next()? {
        match part {
            (1, Content::Varint(raw)) => at.seconds = raw.cast_signed(),
            (2, Content::Varint(raw)) => at.nanos = i32::try_from(raw).ok()?,
            _ => return None,
        }
    }
    Some(at)
}

pub(crate) fn plan(bytes: &[u8]) -> Option<PlanHeader> {
    let mut header = PlanHeader::default();
    let mut fields = Fields(bytes);
    while let Some(part) = fields.next()? {
        match part {
            (1, Content::Bytes(raw)) => header.tenant = text(raw)?,
            (2, Content::Bytes(raw)) => header.run = text(raw)?,
            (3, Content::Bytes(raw)) => header.agent = text(raw)?,
            (4, Content::Bytes(raw)) => header.plan = text(raw)?,
            (5, Content::Bytes(raw)) => header.proposed_at = timestamp(raw)?,
            (6, Content::Bytes(raw)) => header.context = text(raw)?,
            (7, Content::Bytes(raw)) => header.action_digests.push(Digest::from_slice(raw).ok()?),
            (8, Content::Varint(1)) => header.continue_on_failure = true,
            (9, Content::Varint(1)) => header.allow_partial = true,
            (10, Content::Bytes(raw)) => header.realm = text(raw)?,
            (11, Content::Bytes(raw)) => header.owner = text(raw)?,
            _ => return None,
        }
    }
    Some(header)
}
