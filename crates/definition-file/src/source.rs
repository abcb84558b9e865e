//! Where a value comes from: fixed text, or `{$arg: NAME}`.

use exequatur_proto::definition::v1::{NamedSource, Source, source::From};
use exequatur_yaml::{FileError, Kind, Node};

/// The key that stands for an argument.
pub(crate) const ARG: &str = "$arg";
/// The key that allows the argument to be absent.
pub(crate) const OPTIONAL: &str = "$optional";

/// An argument's JSON Pointer: written as one (`/a/b`), or as a top-level name.
pub(crate) fn pointer(node: &Node) -> Result<String, FileError> {
    let text = node.text()?;
    if text.is_empty() || text.starts_with('/') { Ok(text.to_owned()) } else { Ok(name_pointer(text)) }
}

/// The pointer of a top-level name.
pub(crate) fn name_pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Whether a node is `{$arg: …}`.
pub(crate) fn is_argument(node: &Node) -> bool {
    matches!(&node.kind, Kind::Map(entries) if entries.iter().any(|(_, key, _)| key == ARG || key == OPTIONAL))
}

/// The pointer and whether the argument may be absent.
pub(crate) fn argument(node: &Node) -> Result<(String, bool), FileError> {
    let mut map = node.map()?;
    let pointer = pointer(map.need(ARG)?)?;
    let optional = map.take(OPTIONAL).map_or(Ok(false), Node::bool)?;
    map.done()?;
    Ok((pointer, optional))
}

/// A source that must be there.
pub(crate) fn required(node: &Node) -> Result<Source, FileError> {
    let (source, optional) = read(node)?;
    if optional {
        Err(node.error("this cannot be left out, so it cannot be `$optional`"))
    } else {
        Ok(source)
    }
}

/// Pairs under free names.
pub(crate) fn pairs(node: &Node) -> Result<Vec<NamedSource>, FileError> {
    node.map()?
        .entries()
        .iter()
        .map(|(_, name, value)| {
            let (source, optional) = read(value)?;
            Ok(NamedSource { name: name.clone(), value: Some(source), optional })
        })
        .collect()
}

fn read(node: &Node) -> Result<(Source, bool), FileError> {
    let literal = |text: String| Ok((Source { from: Some(From::Literal(text)) }, false));
    match &node.kind {
        Kind::Text(text) => literal(text.clone()),
        Kind::Number(text) => literal(text.clone()),
        Kind::Bool(value) => literal(value.to_string()),
        Kind::Map(_) if is_argument(node) => {
            let (pointer, optional) = argument(node)?;
            Ok((Source { from: Some(From::Argument(pointer)) }, optional))
        }
        _ => Err(node.error("must be fixed text or `{$arg: NAME}`")),
    }
}
