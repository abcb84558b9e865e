//! Frozen values as the validator's values. Integers stay integers, doubles stay doubles.

use exequatur_canonical::{Object, Value};
use serde_json::Number;

use crate::Violation;

/// Converts one value.
///
/// # Errors
/// Bytes and numbers that are not finite have no JSON form.
pub fn to_json(value: &Value) -> Result<serde_json::Value, Violation> {
    Ok(match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => serde_json::Value::Bool(*b),
        Value::Int(n) => serde_json::Value::Number(Number::from(*n)),
        Value::Uint(n) => serde_json::Value::Number(Number::from(*n)),
        Value::Double(n) => serde_json::Value::Number(
            Number::from_f64(*n).ok_or_else(|| no_form("a number that is not finite has no JSON form"))?,
        ),
        Value::String(text) => serde_json::Value::String(text.clone()),
        Value::Bytes(_) => return Err(no_form("bytes have no JSON form")),
        Value::List(items) => serde_json::Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Object(object) => object_to_json(object)?,
    })
}

pub(crate) fn object_to_json(object: &Object) -> Result<serde_json::Value, Violation> {
    let mut map = serde_json::Map::new();
    for (name, value) in object.iter() {
        map.insert(name.to_owned(), to_json(value)?);
    }
    Ok(serde_json::Value::Object(map))
}

fn no_form(message: &str) -> Violation {
    Violation { pointer: String::new(), message: message.to_owned() }
}
