//! JSON bodies: typed nodes out of arguments, one text for one value. Knows no HTTP.

use std::fmt::Write as _;

use exequatur_canonical::{Object, Value};
use exequatur_proto::definition::v1::{JsonNode, json_node::Node};

use crate::PrepareError;

/// Writes a value's one JSON text: members in their order, numbers exact (`1` and `1.0` differ),
/// strings with the fewest escapes.
///
/// # Errors
/// Bytes have no JSON form.
pub(crate) fn write(value: &Value, out: &mut String) -> Result<(), &'static str> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        // Debug writes the shortest text that reads back, always with a point or an exponent.
        Value::Double(number) if number.is_finite() => out.push_str(&format!("{number:?}")),
        Value::Double(_) => return Err("a number that is not finite has no JSON form"),
        Value::String(text) => string(text, out),
        Value::Bytes(_) => return Err("bytes have no JSON form"),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(object) => write_object(object, out)?,
    }
    Ok(())
}

fn write_object(object: &Object, out: &mut String) -> Result<(), &'static str> {
    out.push('{');
    for (at, (name, value)) in object.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(name, out);
        out.push(':');
        write(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Builds the text of a template node. `Ok(false)`: the node's argument is absent, nothing was written.
pub(crate) fn build(node: &JsonNode, arguments: &Object, out: &mut String) -> Result<bool, PrepareError> {
    match &node.node {
        // `check` refuses a definition with an empty node.
        None => Err(PrepareError::NotCanonical("the definition")),
        Some(Node::Literal(text)) => {
            out.push_str(text);
            Ok(true)
        }
        Some(Node::Argument(pointer)) => {
            let fit = |why: &str| PrepareError::DoesNotFit { pointer: pointer.clone(), why: why.to_owned() };
            if pointer.is_empty() {
                write_object(arguments, out).map_err(fit)?;
                return Ok(true);
            }
            let Some(value) = arguments.pointer(pointer) else { return Ok(false) };
            write(value, out).map_err(fit)?;
            Ok(true)
        }
        Some(Node::Object(object)) => {
            out.push('{');
            let mut first = true;
            for member in &object.members {
                let Some(value) = &member.value else {
                    return Err(PrepareError::NotCanonical("the definition"));
                };
                let before = out.len();
                if !first {
                    out.push(',');
                }
                string(&member.name, out);
                out.push(':');
                if build(value, arguments, out)? {
                    first = false;
                } else if member.optional {
                    out.truncate(before);
                } else {
                    return Err(absent(value));
                }
            }
            out.push('}');
            Ok(true)
        }
        Some(Node::List(list)) => {
            out.push('[');
            for (at, item) in list.items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                if !build(item, arguments, out)? {
                    return Err(absent(item));
                }
            }
            out.push(']');
            Ok(true)
        }
    }
}

/// The error for a node whose argument is absent.
pub(crate) fn absent(node: &JsonNode) -> PrepareError {
    let pointer = match &node.node {
        Some(Node::Argument(pointer)) => pointer.clone(),
        _ => String::new(),
    };
    PrepareError::Missing { pointer }
}
