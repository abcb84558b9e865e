//! JSON Schemas in a tool file: written inline as YAML, or as exact JSON text.

use exequatur_yaml::{FileError, Kind, Node};

/// The input schema. Inline, it is an object schema that refuses unknown arguments unless it says
/// otherwise; exact text is taken as it stands.
pub(crate) fn input(node: &Node) -> Result<String, FileError> {
    let Kind::Map(entries) = &node.kind else { return output(node) };
    let mut entries = entries.clone();
    let mut add = |key: &str, kind: Kind| {
        if !entries.iter().any(|(_, name, _)| name == key) {
            entries.push((node.place, key.to_owned(), Node { place: node.place, kind }));
        }
    };
    add("type", Kind::Text("object".to_owned()));
    add("additionalProperties", Kind::Bool(false));
    Ok(Node { place: node.place, kind: Kind::Map(entries) }.to_json())
}

/// The output schema, as it is written.
pub(crate) fn output(node: &Node) -> Result<String, FileError> {
    match &node.kind {
        Kind::Map(_) => Ok(node.to_json()),
        Kind::Text(text) => Ok(text.trim().to_owned()),
        _ => Err(node.error("must be a JSON Schema: a mapping, or JSON text")),
    }
}

/// The arguments that a schema names, if it names all there can be.
pub(crate) fn top_names(schema: &str) -> Option<Vec<String>> {
    // JSON is YAML; what this reader does not take is left to the real check.
    let node = exequatur_yaml::read(schema).ok()?;
    let Kind::Map(entries) = node.kind else { return None };
    let field = |key: &str| entries.iter().find(|(_, name, _)| name == key).map(|(_, _, value)| &value.kind);
    if field("additionalProperties") != Some(&Kind::Bool(false)) {
        return None;
    }
    match field("properties") {
        Some(Kind::Map(properties)) => Some(properties.iter().map(|(_, name, _)| name.clone()).collect()),
        Some(_) => None,
        None => Some(Vec::new()),
    }
}
