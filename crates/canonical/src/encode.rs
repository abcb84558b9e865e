//! Canonical bytes from values (spec section 3). Trusts that its input was checked.
//!
//! Written back to front, so that a message's length is known when its prefix is
//! written and nesting costs nothing.

use crate::action::Action;
use crate::plan::{PlanHeader, Timestamp};
use crate::value::{Object, Value};

struct Writer {
    reversed: Vec<u8>,
}

impl Writer {
    const fn new() -> Self {
        Self { reversed: Vec::new() }
    }

    fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    fn varint(&mut self, mut n: u64) {
        let start = self.reversed.len();
        loop {
            let low = n.to_le_bytes().first().copied().unwrap_or(0) & 0x7f;
            n >>= 7;
            self.reversed.push(if n == 0 { low } else { low | 0x80 });
            if n == 0 {
                break;
            }
        }
        if let Some(written) = self.reversed.get_mut(start..) {
            written.reverse();
        }
    }

    /// A field of wire type 0.
    fn number(&mut self, tag: u8, n: u64) {
        self.varint(n);
        self.reversed.push(tag);
    }

    /// A field of wire type 2 with the given content.
    fn bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
        self.close(tag, bytes.len());
    }

    /// As [`Self::bytes`], absent where empty.
    fn bytes_or_absent(&mut self, tag: u8, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes(tag, bytes);
        }
    }

    /// A field of wire type 2 whose content `body` writes.
    fn message(&mut self, tag: u8, body: impl FnOnce(&mut Self)) {
        let before = self.reversed.len();
        body(self);
        self.close(tag, self.reversed.len() - before);
    }

    fn close(&mut self, tag: u8, length: usize) {
        self.varint(length as u64);
        self.reversed.push(tag);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.number(0x08, 0),
            Value::Bool(b) => self.number(0x10, u64::from(*b)),
            Value::Int(n) => self.number(0x18, ((n << 1) ^ (n >> 63)).cast_unsigned()),
            Value::Uint(n) => self.number(0x20, *n),
            Value::Double(n) => {
                self.reversed.extend(n.to_le_bytes().iter().rev());
                self.reversed.push(0x29);
            }
            Value::String(s) => self.bytes(0x32, s.as_bytes()),
            Value::Bytes(b) => self.bytes(0x3a, b),
            Value::List(items) => self.message(0x42, |w| {
                for item in items.iter().rev() {
                    w.message(0x0a, |w| w.value(item));
                }
            }),
            Value::Object(object) => self.message(0x4a, |w| w.object(object)),
        }
    }

    fn object(&mut self, object: &Object) {
        for (name, value) in object.iter().rev() {
            self.message(0x0a, |w| {
                w.message(0x12, |w| w.value(value));
                w.bytes_or_absent(0x0a, name.as_bytes());
            });
        }
    }

    fn timestamp(&mut self, time: Timestamp) {
        if time.nanos != 0 {
            self.number(0x10, i64::from(time.nanos).cast_unsigned());
        }
        if time.seconds != 0 {
            self.number(0x08, time.seconds.cast_unsigned());
        }
    }
}

/// An action's bytes, and how many of them at the end the rationale and the tool digest take.
pub(crate) struct EncodedAction {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rationale_len: usize,
    pub(crate) tool_digest_len: usize,
}

pub(crate) fn action(action: &Action) -> EncodedAction {
    let mut w = Writer::new();
    w.bytes_or_absent(0x22, action.tool_digest.as_ref().map_or(&[][..], |digest| digest.as_bytes()));
    let tool_digest_len = w.reversed.len();
    w.bytes_or_absent(0x1a, action.rationale.as_bytes());
    let rationale_len = w.reversed.len() - tool_digest_len;
    w.message(0x12, |w| w.object(&action.arguments));
    w.bytes_or_absent(0x0a, action.tool.as_bytes());
    EncodedAction { bytes: w.finish(), rationale_len, tool_digest_len }
}

pub(crate) fn plan(header: &PlanHeader) -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes_or_absent(0x5a, header.owner.as_bytes());
    w.bytes_or_absent(0x52, header.realm.as_bytes());
    for (tag, flag) in [(0x48, header.allow_partial), (0x40, header.continue_on_failure)] {
        if flag {
            w.number(tag, 1);
        }
    }
    for digest in header.action_digests.iter().rev() {
        w.bytes(0x3a, digest.as_bytes());
    }
    w.bytes_or_absent(0x32, header.context.as_bytes());
    w.message(0x2a, |w| w.timestamp(header.proposed_at));
    w.bytes_or_absent(0x22, header.plan.as_bytes());
    w.bytes_or_absent(0x1a, header.agent.as_bytes());
    w.bytes_or_absent(0x12, header.run.as_bytes());
    w.bytes_or_absent(0x0a, header.tenant.as_bytes());
    w.finish()
}
