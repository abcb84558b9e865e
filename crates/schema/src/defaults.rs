//! Filling in defaults. Follows values, so it ends where the arguments end.

use exequatur_canonical::{Object, Value};

use crate::text::resolve;

/// Fills the arguments from the root schema.
pub(crate) fn fill(root: &Object, arguments: &Object, filled: &mut Vec<String>) -> Object {
    object(root, root, arguments, "", filled)
}

/// The schema itself, or what its local reference names.
fn follow<'a>(root: &'a Object, schema: &'a Object) -> &'a Object {
    let mut at = schema;
    for _ in 0..64 {
        if at.get("properties").is_some() || at.get("items").is_some() {
            return at;
        }
        match at.get("$ref") {
            Some(Value::String(reference)) => match resolve(reference, root) {
                Some(next) => at = next,
                None => return at,
            },
            _ => return at,
        }
    }
    at
}

fn object(root: &Object, schema: &Object, value: &Object, place: &str, filled: &mut Vec<String>) -> Object {
    let schema = follow(root, schema);
    let Some(Value::Object(properties)) = schema.get("properties") else { return value.clone() };
    let mut members: Vec<(String, Value)> = Vec::new();
    for (name, old) in value.iter() {
        let new = match properties.get(name) {
            Some(Value::Object(inner)) => any(root, inner, old, &join(place, name), filled),
            _ => old.clone(),
        };
        members.push((name.to_owned(), new));
    }
    for (name, property) in properties.iter() {
        let Value::Object(property) = property else { continue };
        if value.get(name).is_none()
            && let Some(default) = property.get("default")
        {
            filled.push(join(place, name));
            members.push((name.to_owned(), default.clone()));
        }
    }
    let mut out = Object::default();
    for (name, value) in members {
        // Names are distinct: old ones come from an object, new ones are absent from it.
        let _ = out.insert(name, value);
    }
    out
}

fn any(root: &Object, schema: &Object, value: &Value, place: &str, filled: &mut Vec<String>) -> Value {
    match value {
        Value::Object(inner) => Value::Object(object(root, schema, inner, place, filled)),
        Value::List(items) => match follow(root, schema).get("items") {
            Some(Value::Object(each)) => Value::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| any(root, each, item, &join(place, &at.to_string()), filled))
                    .collect(),
            ),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn join(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}
