//! Rules against the tools and schemas that exist.

use exequatur_canonical::{Object, Value};
use exequatur_proto::action::v1::value::Kind;
use exequatur_proto::policy::v1 as proto;
use exequatur_yaml::nearest;

use super::{KnownTool, names};
use crate::argument;
use crate::compiled::CompiledRule;

/// What the schemas of the tools say about a path.
struct Known<'a> {
    schemas: Vec<&'a Object>,
    /// A tool takes names that its schema does not list.
    open: bool,
    names: Vec<&'a str>,
}

pub(super) fn against(
    at: usize,
    rule: &proto::Rule,
    compiled: &CompiledRule,
    tools: &[KnownTool],
    add: &mut impl FnMut(usize, &'static str, String),
) {
    let reached: Vec<&KnownTool> = tools.iter().filter(|tool| names(compiled, &tool.name)).collect();
    if reached.is_empty() {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("no tool is named `{}`{}", rule.tool, hint(&rule.tool, &known));
        return add(at, "unknown_tool", message);
    }
    let wanted = match rule.reversibility() {
        exequatur_proto::definition::v1::Reversibility::Reversible => Some(true),
        exequatur_proto::definition::v1::Reversibility::Irreversible => Some(false),
        exequatur_proto::definition::v1::Reversibility::Unspecified => None,
    };
    if wanted.is_some_and(|wanted| reached.iter().all(|tool| tool.reversible != wanted)) {
        add(at, "never_reversible", "no tool that it names is as `reversible` says".to_owned());
    }
    for condition in &rule.args_match {
        let Ok(path) = argument::path(&condition.path) else { continue };
        let known = look(&path, &reached);
        if known.schemas.is_empty() {
            if !known.open {
                let message = format!(
                    "no tool that it names has an argument `{}`{}",
                    condition.path,
                    hint(path.last().map_or("", String::as_str), &known.names)
                );
                add(at, "unknown_argument", message);
            }
            continue;
        }
        if !known.open {
            types(at, condition, &known.schemas, add);
        }
    }
    for path in compiled.when.iter().flat_map(|when| when.paths()) {
        let known = look(path, &reached);
        if known.schemas.is_empty() && !known.open {
            let message = format!(
                "`when` names `args.{}`, which no tool that it names has{}",
                path.join("."),
                hint(path.last().map_or("", String::as_str), &known.names)
            );
            add(at, "unknown_argument", message);
        }
    }
}

fn hint(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}

fn look<'a>(path: &[String], tools: &[&'a KnownTool]) -> Known<'a> {
    let mut out = Known { schemas: Vec::new(), open: false, names: Vec::new() };
    for tool in tools {
        let mut schema = Some(&tool.schema);
        for name in path {
            let Some(object) = schema else { break };
            let Some(properties) = object.get("properties").and_then(Value::as_object) else {
                // What is not listed cannot be judged.
                out.open = true;
                schema = None;
                break;
            };
            schema = properties.get(name).and_then(Value::as_object);
            if schema.is_none() {
                out.names.extend(properties.iter().map(|(name, _)| name));
                out.open |= object.get("additionalProperties") != Some(&Value::Bool(false));
            }
        }
        out.schemas.extend(schema);
    }
    out
}

/// Whether a value that the condition speaks of can stand there at all.
fn types(
    at: usize,
    condition: &proto::ArgumentMatch,
    schemas: &[&Object],
    add: &mut impl FnMut(usize, &'static str, String),
) {
    let path = &condition.path;
    let listed: Vec<&str> = schemas.iter().filter_map(|s| s.get("type").and_then(Value::as_str)).collect();
    if condition.presence != 0 || listed.len() != schemas.len() {
        return;
    }
    let lists = condition.elements() != proto::Elements::Unspecified;
    if lists != listed.contains(&"array") {
        let why =
            if lists { "is no list: leave `any` or `all` out" } else { "is a list: write `any:` or `all:`" };
        return add(at, "argument_type", format!("argument `{path}` {why}"));
    }
    if lists {
        return;
    }
    let enums: Option<Vec<&Value>> = schemas
        .iter()
        .map(|s| s.get("enum").and_then(Value::as_list))
        .collect::<Option<Vec<_>>>()
        .map(|lists| lists.into_iter().flatten().collect());
    for pattern in &condition.any_of {
        let word = word(condition, pattern);
        let fits = listed.iter().any(|kind| *kind == word || (*kind == "number" && word == "integer"));
        let numeric = condition.r#type() == proto::ValueType::Number
            && listed.iter().any(|kind| matches!(*kind, "number" | "integer"));
        if !fits && !numeric {
            let message = format!("argument `{path}` is {}, never {word}", listed.join(" or "));
            add(at, "argument_type", message);
        } else if let (Some(enums), Some(text)) = (&enums, exact_text(pattern)) {
            let texts: Vec<&str> = enums.iter().filter_map(|v| v.as_str()).collect();
            if !texts.contains(&text) {
                let message = format!("argument `{path}` is never `{text}`{}", hint(text, &texts));
                add(at, "impossible_value", message);
            }
        }
    }
}

fn exact_text(pattern: &proto::Pattern) -> Option<&str> {
    match &pattern.pattern {
        Some(proto::pattern::Pattern::Scalar(_)) => super::text_of(pattern),
        _ => None,
    }
}

fn word(condition: &proto::ArgumentMatch, pattern: &proto::Pattern) -> &'static str {
    match (condition.r#type(), &pattern.pattern) {
        (proto::ValueType::Number, _) | (_, Some(proto::pattern::Pattern::Range(_))) => "number",
        (_, Some(proto::pattern::Pattern::Scalar(value))) => match value.kind {
            Some(Kind::NullValue(_)) => "null",
            Some(Kind::BoolValue(_)) => "boolean",
            Some(Kind::IntValue(_) | Kind::UintValue(_)) => "integer",
            Some(Kind::DoubleValue(_)) => "number",
            _ => "string",
        },
        _ => "string",
    }
}
