//! Generators and helpers of the property tests.
#![allow(dead_code, reason = "each test file uses its part")]

use exequatur_canonical::{Action, Digest, Object, PlanHeader, Timestamp, Value};
use proptest::prelude::*;

/// Characters that make text hard: quotes, escapes, blanks, line breaks, hidden ones, marks of the renderer.
pub(crate) fn hard_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c]{0,3}",
        1 => Just("\"".to_owned()),
        1 => Just("\\".to_owned()),
        1 => Just("\\u{a}".to_owned()),
        1 => Just("\\s{9}".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\n  | ".to_owned()),
        1 => Just("\": \"".to_owned()),
        2 => (0_usize..12).prop_map(|n| " ".repeat(n)),
        1 => Just("\u{202e}".to_owned()),
        1 => Just("\u{2003}".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn plain_double(n: f64) -> bool {
    n.is_finite() && !(n == 0.0 && n.is_sign_negative())
}

/// Values of every kind, also bytes, which JSON has no form for.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    value_of(true)
}

/// Values that JSON text can give.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    value_of(false)
}

fn value_of(bytes: bool) -> BoxedStrategy<Value> {
    let raw = prop::collection::vec(any::<u8>(), 0..4);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![-3_i64..3, any::<i64>()].prop_map(Value::Int),
        ((1_u64 << 63)..=u64::MAX).prop_map(Value::Uint),
        prop_oneof![Just(1.0), Just(0.0), any::<f64>()]
            .prop_filter("plain", |n| plain_double(*n))
            .prop_map(Value::Double),
        hard_text().prop_map(Value::String),
        raw.prop_map(move |raw| if bytes { Value::Bytes(raw) } else { Value::Null }),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            members(inner).prop_map(Value::Object),
        ]
    })
    .boxed()
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Object> {
    prop::collection::btree_map(hard_text(), value, 0..4).prop_map(|map| {
        let mut object = Object::new();
        for (name, value) in map {
            object.insert(name, value).unwrap();
        }
        object
    })
}

/// Arguments of an action.
pub(crate) fn arguments() -> impl Strategy<Value = Object> {
    members(value())
}

/// Arguments that JSON text can give.
pub(crate) fn json_arguments() -> impl Strategy<Value = Object> {
    members(json_value())
}

/// A digest.
pub(crate) fn digest() -> impl Strategy<Value = Digest> {
    prop_oneof![Just(Digest::new([0; 32])), any::<[u8; 32]>().prop_map(Digest::new)]
}

/// Any action that can be frozen.
pub(crate) fn action() -> impl Strategy<Value = Action> {
    ("[A-Za-z][A-Za-z0-9_.\\-/]{0,5}", arguments(), hard_text(), prop::option::of(digest())).prop_map(
        |(tool, arguments, rationale, tool_digest)| Action { tool, arguments, rationale, tool_digest },
    )
}

/// Any header that can be frozen.
pub(crate) fn header() -> impl Strategy<Value = PlanHeader> {
    let texts = prop::collection::vec(hard_text(), 7);
    let seconds = prop_oneof![-3_i64..3, 0_i64..4_000_000_000, any::<i64>()];
    let nanos = prop_oneof![Just(0), 0..=999_999_999_i32];
    let digests = prop::collection::vec(digest(), 1..4);
    (texts, seconds, nanos, digests, any::<bool>(), any::<bool>()).prop_map(
        |(texts, seconds, nanos, action_digests, continue_on_failure, allow_partial)| {
            let mut texts = texts.into_iter();
            let mut next = || texts.next().unwrap();
            PlanHeader {
                tenant: next(),
                run: next(),
                agent: next(),
                plan: next(),
                proposed_at: Timestamp { seconds, nanos },
                context: next(),
                action_digests,
                continue_on_failure,
                allow_partial,
                realm: next(),
                owner: next(),
            }
        },
    )
}

/// JSON text of a value, members in the order that `order` gives them.
pub(crate) fn to_json(value: &Value, order: &mut impl FnMut(usize) -> Vec<usize>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => n.to_string(),
        Value::Double(n) => format!("{n:?}"),
        Value::String(text) => serde_json::to_string(text).unwrap(),
        Value::Bytes(_) => panic!("JSON has no bytes"),
        Value::List(items) => {
            format!("[{}]", items.iter().map(|v| to_json(v, order)).collect::<Vec<_>>().join(","))
        }
        Value::Object(object) => object_to_json(object, order),
    }
}

/// As [`to_json`], of an object.
pub(crate) fn object_to_json(object: &Object, order: &mut impl FnMut(usize) -> Vec<usize>) -> String {
    let members: Vec<(&str, &Value)> = object.iter().collect();
    let mut out = Vec::new();
    for at in order(members.len()) {
        let (name, value) = members[at];
        out.push(format!("{} : {}", serde_json::to_string(name).unwrap(), to_json(value, order)));
    }
    format!("{{{}}}", out.join(" ,\n"))
}
