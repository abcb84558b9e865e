//! Reads schema text and refuses what would reach outside of it or run in a circle.

use exequatur_canonical::{Object, Value, read_arguments};

use crate::{MAX_SCHEMA_BYTES, SchemaError};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

pub(crate) fn read(text: &str) -> Result<Object, SchemaError> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError(format!("it is larger than {MAX_SCHEMA_BYTES} bytes")));
    }
    let object = read_arguments(text.as_bytes())
        .map_err(|e| SchemaError(format!("it must be a JSON object, read strictly ({})", e.code)))?;
    match object.get("$schema") {
        None => {}
        Some(Value::String(draft)) if draft == DRAFT => {}
        Some(_) => return Err(SchemaError(format!("`$schema` must be absent or `{DRAFT}`"))),
    }
    walk(&object, true, &object)?;
    Ok(object)
}

fn walk(object: &Object, top: bool, root: &Object) -> Result<(), SchemaError> {
    for (name, value) in object.iter() {
        match (name, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                if !target.starts_with('#') {
                    return Err(SchemaError("references must stay inside the schema (`#…`)".to_owned()));
                }
                if name == "$ref" {
                    circle(target, root)?;
                }
            }
            // An inner `$id` would change what `#…` means.
            ("$id", Value::String(_)) if !top => {
                return Err(SchemaError("`$id` may stand at the top only".to_owned()));
            }
            (_, Value::Object(inner)) => walk(inner, false, root)?,
            (_, Value::List(items)) => {
                for item in items {
                    walk_value(item, root)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn walk_value(value: &Value, root: &Object) -> Result<(), SchemaError> {
    match value {
        Value::Object(object) => walk(object, false, root),
        Value::List(items) => items.iter().try_for_each(|item| walk_value(item, root)),
        _ => Ok(()),
    }
}

/// The schema that a local pointer reference names.
pub(crate) fn resolve<'a>(reference: &str, root: &'a Object) -> Option<&'a Object> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    match root.pointer(pointer) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// References that lead straight back to themselves would never end.
fn circle(start: &str, root: &Object) -> Result<(), SchemaError> {
    let mut at = start.to_owned();
    for _ in 0..64 {
        match resolve(&at, root).and_then(|o| o.get("$ref")) {
            Some(Value::String(next)) => at = next.clone(),
            _ => return Ok(()),
        }
    }
    Err(SchemaError(format!("the reference `{start}` runs in a circle")))
}
