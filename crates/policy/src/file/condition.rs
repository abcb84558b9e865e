//! `args_match` as people write it. Knows no verdict.

use exequatur_canonical::{Value, read_arguments};
use exequatur_proto::action::v1 as action;
use exequatur_proto::policy::v1 as proto;
use exequatur_yaml::{FileError, Kind, Node, Place};
use proto::pattern::Pattern;

use crate::argument::{self, Condition};
use crate::glob::Glob;

const TYPES: &[(&str, proto::ValueType)] = &[
    ("text", proto::ValueType::Text),
    ("url", proto::ValueType::Url),
    ("host", proto::ValueType::Host),
    ("path", proto::ValueType::Path),
    ("email", proto::ValueType::Email),
    ("number", proto::ValueType::Number),
];

pub(super) fn args_match(node: &Node) -> Result<Vec<proto::ArgumentMatch>, FileError> {
    let map = node.map()?;
    if map.entries().is_empty() {
        return Err(node.error("`args_match` is empty; leave it out to match any arguments"));
    }
    map.entries().iter().map(|(place, path, value)| argument(*place, path, value)).collect()
}

fn argument(place: Place, path: &str, value: &Node) -> Result<proto::ArgumentMatch, FileError> {
    argument::path(path).map_err(|why| place.error(why))?;
    let mut out = proto::ArgumentMatch { path: path.to_owned(), ..Default::default() };
    alternatives(value, &mut out, true)?;
    Condition::compile(&out).map_err(|why| value.error(why))?;
    Ok(out)
}

/// A value, a list of them, or a mapping of one word that says how to read the argument.
fn alternatives(node: &Node, out: &mut proto::ArgumentMatch, outer: bool) -> Result<(), FileError> {
    let Kind::Map(_) = &node.kind else {
        out.any_of = super::either(node)?.iter().map(pattern).collect::<Result<_, _>>()?;
        return Ok(());
    };
    let mut map = node.map()?;
    let mut taken = 0;
    for (word, kind) in TYPES {
        let Some(inner) = map.take(word) else { continue };
        taken += 1;
        out.set_type(*kind);
        out.any_of = typed(inner, *kind)?;
    }
    if outer {
        for (word, elements) in [("any", proto::Elements::Any), ("all", proto::Elements::All)] {
            let Some(inner) = map.take(word) else { continue };
            taken += 1;
            out.set_elements(elements);
            alternatives(inner, out, false)?;
        }
        if let Some(present) = map.take("present") {
            taken += 1;
            out.set_presence(match present.bool()? {
                true => proto::Presence::Present,
                false => proto::Presence::Absent,
            });
        }
    }
    map.done()?;
    if taken == 1 {
        Ok(())
    } else {
        Err(node.error("must hold exactly one word that says how the argument is read, such as `url`"))
    }
}

fn typed(node: &Node, kind: proto::ValueType) -> Result<Vec<proto::Pattern>, FileError> {
    if kind == proto::ValueType::Number {
        return super::either(node)?.iter().map(number_or_range).collect();
    }
    super::either(node)?
        .iter()
        .map(|item| {
            item.text()?;
            pattern(item)
        })
        .collect()
}

fn number_or_range(node: &Node) -> Result<proto::Pattern, FileError> {
    let Kind::Map(_) = &node.kind else { return pattern(node) };
    let mut map = node.map()?;
    let mut range = proto::Range::default();
    for (word, low, open) in
        [("min", true, false), ("above", true, true), ("max", false, false), ("below", false, true)]
    {
        let Some(bound) = map.take(word) else { continue };
        let slot = if low { &mut range.min } else { &mut range.max };
        if slot.is_some() {
            return Err(bound.error("the range has two bounds on one side"));
        }
        *slot = Some(double(bound)?);
        *(if low { &mut range.above_min } else { &mut range.below_max }) = open;
    }
    map.done()?;
    Ok(proto::Pattern { pattern: Some(Pattern::Range(range)) })
}

fn double(node: &Node) -> Result<f64, FileError> {
    let Kind::Number(text) = &node.kind else { return Err(node.error("must be a number")) };
    let exact = match number(node, text)? {
        Pattern::Scalar(action::Value { kind: Some(action::value::Kind::DoubleValue(n)) }) => Some(n),
        Pattern::Scalar(action::Value { kind: Some(action::value::Kind::IntValue(n)) }) => {
            i32::try_from(n).ok().map(f64::from).or_else(|| text.parse().ok().filter(|_| n.abs() <= 1 << 53))
        }
        _ => None,
    };
    exact.ok_or_else(|| node.error("a bound is a number of at most 2^53, so that it is exact"))
}

fn pattern(node: &Node) -> Result<proto::Pattern, FileError> {
    let pattern = match &node.kind {
        Kind::Text(text) if Glob::is_glob(text) => {
            Glob::compile(text).map_err(|why| node.error(why))?;
            Pattern::Glob(text.clone())
        }
        Kind::Text(text) => scalar(action::value::Kind::StringValue(text.clone())),
        Kind::Bool(value) => scalar(action::value::Kind::BoolValue(*value)),
        Kind::Null => scalar(action::value::Kind::NullValue(0)),
        Kind::Number(text) => number(node, text)?,
        Kind::List(_) | Kind::Map(_) => return Err(node.error("must be a scalar or text with `*`")),
    };
    Ok(proto::Pattern { pattern: Some(pattern) })
}

fn scalar(kind: action::value::Kind) -> proto::pattern::Pattern {
    proto::pattern::Pattern::Scalar(action::Value { kind: Some(kind) })
}

/// Numbers have the type that the same text has in an agent's JSON.
fn number(node: &Node, text: &str) -> Result<proto::pattern::Pattern, FileError> {
    let object = read_arguments(format!("{{\"v\":{text}}}").as_bytes())
        .map_err(|e| node.error(format!("the number cannot be an argument ({})", e.code)))?;
    match object.get("v") {
        Some(Value::Int(n)) => Ok(scalar(action::value::Kind::IntValue(*n))),
        Some(Value::Uint(n)) => Ok(scalar(action::value::Kind::UintValue(*n))),
        Some(Value::Double(n)) => Ok(scalar(action::value::Kind::DoubleValue(*n))),
        _ => Err(node.error("must be a number")),
    }
}
