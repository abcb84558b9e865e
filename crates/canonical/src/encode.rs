//! The one encoder (specification section 3).

use crate::plan::{PlanHeader, Timestamp};
use crate::value::{Object, Value};

pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

/// A length-delimited field, written also when empty.
fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    key(out, field, 2);
    varint(out, u64::try_from(content.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(content);
}

/// A length-delimited field with implicit presence: absent when empty.
fn implicit(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    if !content.is_empty() {
        bytes(out, field, content);
    }
}

pub(crate) fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

fn value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => {
            key(out, 1, 0);
            varint(out, 0);
        }
        Value::Bool(flag) => {
            key(out, 2, 0);
            varint(out, u64::from(*flag));
        }
        Value::Int(number) => {
            key(out, 3, 0);
            varint(out, zigzag(*number));
        }
        Value::Uint(number) => {
            key(out, 4, 0);
            varint(out, *number);
        }
        Value::Double(number) => {
            key(out, 5, 1);
            out.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::String(text) => bytes(out, 6, text.as_bytes()),
        Value::Bytes(raw) => bytes(out, 7, raw),
        Value::List(items) => {
            let mut inner = Vec::new();
            for item in items {
                let mut one = Vec::new();
                self::value(&mut one, item);
                bytes(&mut inner, 1, &one);
            }
            bytes(out, 8, &inner);
        }
        Value::Object(members) => bytes(out, 9, &object(members)),
    }
}

pub(crate) fn object(members: &Object) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, member) in members.iter() {
        let mut field = Vec::new();
        implicit(&mut field, 1, name.as_bytes());
        let mut inner = Vec::new();
        value(&mut inner, member);
        bytes(&mut field, 2, &inner);
        bytes(&mut out, 1, &field);
    }
    out
}

/// The parts of an action's bytes: before the rationale, the rationale, after it.
pub(crate) struct ActionParts {
    pub(crate) before: Vec<u8>,
    pub(crate) rationale: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

pub(crate) fn action(tool: &str, arguments: &Object, rationale: &str, tool_digest: &[u8]) -> ActionParts {
    let (mut before, mut reason, mut after) = (Vec::new(), Vec::new(), Vec::new());
    implicit(&mut before, 1, tool.as_bytes());
    bytes(&mut before, 2, &object(arguments));
    implicit(&mut reason, 3, rationale.as_bytes());
    implicit(&mut after, 4, tool_digest);
    ActionParts { before, rationale: reason, after }
}

fn timestamp(at: Timestamp) -> Vec<u8> {
    let mut out = Vec::new();
    if at.seconds != 0 {
        key(&mut out, 1, 0);
        varint(&mut out, at.seconds.cast_unsigned());
    }
    if at.nanos != 0 {
        key(&mut out, 2, 0);
        varint(&mut out, i64::from(at.nanos).cast_unsigned());
    }
    out
}

pub(crate) fn plan(header: &PlanHeader) -> Vec<u8> {
    let mut out = Vec::new();
    implicit(&mut out, 1, header.tenant.as_bytes());
    implicit(&mut out, 2, header.run.as_bytes());
    implicit(&mut out, 3, header.agent.as_bytes());
    implicit(&mut out, 4, header.plan.as_bytes());
    bytes(&mut out, 5, &timestamp(header.proposed_at));
    implicit(&mut out, 6, header.context.as_bytes());
    for digest in &header.action_digests {
        bytes(&mut out, 7, digest.as_bytes());
    }
    for (field, flag) in [(8, header.continue_on_failure), (9, header.allow_partial)] {
        if flag {
            key(&mut out, field, 0);
            varint(&mut out, 1);
        }
    }
    implicit(&mut out, 10, header.realm.as_bytes());
    implicit(&mut out, 11, header.owner.as_bytes());
    out
}
