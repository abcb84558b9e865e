//! Parser events into a tree, with a bound on depth. Knows no key by name.

use std::borrow::Cow;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use crate::number::{Looks, looks_like};
use crate::{FileError, Kind, MAX_BYTES, Node, Place};

const MAX_DEPTH: usize = 40;
/// Most keys of one mapping; keys are compared with each other.
const MAX_KEYS: usize = 4096;

enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<(Place, String, Node)>, Option<(Place, String)>),
}

/// Reads one document.
///
/// # Errors
/// [`FileError`] with the place of the first thing that is not in the subset.
pub fn read(text: &str) -> Result<Node, FileError> {
    let start = Place { line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        return Err(start.error(format!("the file is larger than {MAX_BYTES} bytes")));
    }
    let mut stack: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|e| place_of(e.marker()).error(e.info().to_owned()))?;
        let place = place_of(&span.start);
        if event.tag().is_some() {
            return Err(place.error("tags (`!`) are not used here, write the plain value"));
        }
        let done = match event {
            Event::MappingStart(_, anchor, _) => {
                no_anchor(anchor, place)?;
                push(&mut stack, Open::Map(place, Vec::new(), None), place)?;
                None
            }
            Event::SequenceStart(_, anchor, _) => {
                no_anchor(anchor, place)?;
                push(&mut stack, Open::List(place, Vec::new()), place)?;
                None
            }
            Event::MappingEnd | Event::SequenceEnd => match stack.pop() {
                Some(Open::Map(place, entries, _)) => Some(Node { place, kind: Kind::Map(entries) }),
                Some(Open::List(place, items)) => Some(Node { place, kind: Kind::List(items) }),
                None => None,
            },
            Event::Scalar(value, style, anchor, _) => {
                no_anchor(anchor, place)?;
                Some(scalar(value, style, place)?)
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                return Err(place.error("aliases (`*`) are not used here; quote text that begins with `*`"));
            }
            Event::DocumentStart(..) if root.is_some() => {
                return Err(place.error("a file holds one document"));
            }
            _ => None,
        };
        if let Some(node) = done {
            add(&mut stack, &mut root, node)?;
        }
    }
    root.ok_or_else(|| start.error("the file is empty"))
}

fn place_of(mark: &Marker) -> Place {
    Place { line: mark.line().max(1), column: mark.col() + 1 }
}

fn no_anchor(anchor: usize, place: Place) -> Result<(), FileError> {
    if anchor == 0 {
        Ok(())
    } else {
        Err(place.error("anchors (`&`) are not used here, write the value out"))
    }
}

fn push(stack: &mut Vec<Open>, open: Open, place: Place) -> Result<(), FileError> {
    if stack.len() >= MAX_DEPTH {
        return Err(place.error(format!("more than {MAX_DEPTH} levels deep")));
    }
    stack.push(open);
    Ok(())
}

fn add(stack: &mut [Open], root: &mut Option<Node>, node: Node) -> Result<(), FileError> {
    match stack.last_mut() {
        None => *root = Some(node),
        Some(Open::List(_, items)) => items.push(node),
        Some(Open::Map(_, entries, key)) => match key.take() {
            Some((place, name)) => entries.push((place, name, node)),
            None => {
                let name = match node.kind {
                    Kind::Text(text) => text,
                    // `no: 1` or `1: x`: the text as written is the name.
                    Kind::Number(text) => text,
                    Kind::Bool(value) => value.to_string(),
                    _ => return Err(node.place.error("a key must be text")),
                };
                if entries.iter().any(|(_, other, _)| *other == name) {
                    return Err(node.place.error(format!("the key `{}` stands twice", name.escape_debug())));
                }
                if entries.len() >= MAX_KEYS {
                    return Err(node.place.error(format!("a mapping has at most {MAX_KEYS} keys")));
                }
                *key = Some((node.place, name));
            }
        },
    }
    Ok(())
}

fn scalar(value: Cow<'_, str>, style: ScalarStyle, place: Place) -> Result<Node, FileError> {
    let kind = if style == ScalarStyle::Plain {
        match value.as_ref() {
            "" | "~" | "null" => Kind::Null,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            text => match looks_like(text) {
                Looks::Json => Kind::Number(value.into_owned()),
                Looks::Text => Kind::Text(value.into_owned()),
                Looks::Unclear => {
                    return Err(place.error(format!(
                        "`{text}` may be a number or text: quote it, or write the number as JSON does"
                    )));
                }
            },
        }
    } else {
        Kind::Text(value.into_owned())
    };
    Ok(Node { place, kind })
}
