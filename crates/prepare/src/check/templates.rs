//! Rules for templates: what is fixed in them must fit, what is not must name its argument.

use exequatur_canonical::{Value, read_arguments};
use exequatur_proto::definition::v1::{
    HttpTemplate, JsonNode, NamedSource, PostgresSecurity, PostgresTemplate, SmtpSecurity, SmtpTemplate,
    Source, ToolDefinition, http_template::Body, json_node::Node, source::From, tool_definition::Template,
};

use super::{Checked, ensure};
use crate::{PrepareError, json, names, place, postgres};

/// Deepest JSON template.
const MAX_JSON_DEPTH: usize = 16;
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

pub(super) fn http(t: &HttpTemplate) -> Checked {
    ensure(METHODS.contains(&t.method.as_str()), "http.method", "must be GET, POST, PUT, PATCH or DELETE")?;
    ensure(matches!(t.scheme.as_str(), "https" | "http"), "http.scheme", "must be `https` or `http`")?;
    destination("http", &t.host, t.port)?;
    for (at, source) in t.path.iter().enumerate() {
        let path = format!("http.path[{at}]");
        let trailing = at > 0 && at + 1 == t.path.len();
        fixed(&path, source, |text| if trailing && text.is_empty() { Ok(()) } else { place::segment(text) })?;
    }
    pairs("http.query", &t.query)?;
    let mut seen: Vec<&str> = Vec::new();
    for (at, source) in t.headers.iter().enumerate() {
        let path = format!("http.headers[{at}]");
        ensure(names::header_token(&source.name), &path, "the name must be a lower-case header name")?;
        ensure(
            !names::reserved_header(&source.name),
            &path,
            format!("`{}` is written by the connector, the body or a credential only", source.name),
        )?;
        ensure(!seen.contains(&source.name.as_str()), &path, "the header stands twice")?;
        seen.push(&source.name);
        named(&path, source, place::header_value)?;
    }
    match &t.body {
        None => Ok(()),
        Some(_) if t.method == "GET" => Err(PrepareError::invalid("http.body", "a GET has no body")),
        Some(Body::Json(node)) => json_node("http.json", node, 1),
        Some(Body::Form(form)) => pairs("http.form", &form.pairs),
    }
}

pub(super) fn smtp(t: &SmtpTemplate) -> Checked {
    destination("smtp", &t.host, t.port)?;
    ensure(
        !matches!(SmtpSecurity::try_from(t.security), Err(_) | Ok(SmtpSecurity::Unspecified)),
        "smtp.security",
        "must be tls, starttls or none",
    )?;
    names::address(&t.from).map_err(|why| PrepareError::invalid("smtp.from", why))?;
    ensure(!t.to.is_empty() && t.to.len() <= 100, "smtp.to", "must name 1 to 100 recipients")?;
    for (at, source) in t.to.iter().enumerate() {
        fixed(&format!("smtp.to[{at}]"), source, names::address)?;
    }
    let line = |text: &str| {
        if names::plain_line(text, 900) && !text.contains("=?") {
            Ok(())
        } else {
            Err("must be one plain line")
        }
    };
    match (&t.subject, &t.body) {
        (Some(subject), Some(body)) => {
            fixed("smtp.subject", subject, line)?;
            fixed("smtp.body", body, |_| Ok(()))
        }
        _ => Err(PrepareError::invalid("smtp", "`subject` and `body` must be there")),
    }
}

pub(super) fn postgres(t: &PostgresTemplate) -> Checked {
    destination("postgres", &t.host, t.port)?;
    ensure(
        !matches!(PostgresSecurity::try_from(t.security), Err(_) | Ok(PostgresSecurity::Unspecified)),
        "postgres.security",
        "must be tls or none",
    )?;
    ensure(names::database(&t.database), "postgres.database", "must be 1 to 63 visible ASCII characters")?;
    postgres::statement(&t.statement).map_err(|why| PrepareError::invalid("postgres.statement", why))?;
    ensure((1..=10_000).contains(&t.max_rows), "postgres.max_rows", "must be 1 to 10000")?;
    ensure(
        t.parameters.len() <= postgres::MAX_PARAMETERS,
        "postgres.parameters",
        "a statement has at most 64 parameters",
    )?;
    for (at, source) in t.parameters.iter().enumerate() {
        fixed(&format!("postgres.parameters[{at}]"), source, postgres::value)?;
    }
    Ok(())
}

fn destination(path: &str, host: &str, port: u32) -> Checked {
    names::host(host).map_err(|why| PrepareError::invalid(format!("{path}.host"), why))?;
    ensure((1..=65_535).contains(&port), format!("{path}.port"), "must be 1 to 65535")
}

fn pairs(path: &str, pairs: &[NamedSource]) -> Checked {
    let mut seen: Vec<&str> = Vec::new();
    for (at, source) in pairs.iter().enumerate() {
        let path = format!("{path}[{at}]");
        ensure(
            !source.name.is_empty() && names::plain_line(&source.name, 256),
            &path,
            "the name must be one line of 1 to 256 bytes without hidden characters",
        )?;
        ensure(!seen.contains(&source.name.as_str()), &path, "the name stands twice")?;
        seen.push(&source.name);
        named(&path, source, |_| Ok(()))?;
    }
    Ok(())
}

fn named(path: &str, source: &NamedSource, fits: impl Fn(&str) -> Result<(), &'static str>) -> Checked {
    let Some(value) = &source.value else { return Err(PrepareError::invalid(path, "the value is missing")) };
    fixed(path, value, fits)?;
    ensure(
        !source.optional || matches!(value.from, Some(From::Argument(_))),
        path,
        "only an argument can be optional",
    )
}

/// A source must be there; fixed text must fit its place, an argument must be a pointer.
fn fixed(path: &str, source: &Source, fits: impl Fn(&str) -> Result<(), &'static str>) -> Checked {
    match &source.from {
        Some(From::Literal(text)) => fits(text).map_err(|why| PrepareError::invalid(path, why)),
        Some(From::Argument(pointer)) => ensure(
            names::pointer(pointer) && !pointer.is_empty(),
            path,
            "`argument` must be a JSON Pointer, such as `/id`",
        ),
        None => Err(PrepareError::invalid(path, "one of `literal` and `argument` must be there")),
    }
}

fn json_node(path: &str, node: &JsonNode, depth: usize) -> Checked {
    ensure(depth <= MAX_JSON_DEPTH, path, format!("a JSON template nests at most {MAX_JSON_DEPTH} deep"))?;
    match &node.node {
        None => Err(PrepareError::invalid(path, "the node is empty")),
        Some(Node::Argument(pointer)) => {
            ensure(names::pointer(pointer), path, "`argument` must be a JSON Pointer, such as `/id`")
        }
        Some(Node::Literal(text)) => {
            ensure(scalar_text(text), path, "a literal must be a JSON scalar in its shortest form")
        }
        Some(Node::List(list)) => list
            .items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| json_node(&format!("{path}[{at}]"), item, depth + 1)),
        Some(Node::Object(object)) => {
            let mut seen: Vec<&str> = Vec::new();
            for member in &object.members {
                let path = format!("{path}.{}", member.name);
                ensure(
                    names::plain_line(&member.name, 256),
                    &path,
                    "a member's name must be one plain line",
                )?;
                ensure(!seen.contains(&member.name.as_str()), &path, "the member stands twice")?;
                seen.push(&member.name);
                let Some(value) = &member.value else {
                    return Err(PrepareError::invalid(path, "the value is missing"));
                };
                ensure(
                    !member.optional || matches!(value.node, Some(Node::Argument(_))),
                    &path,
                    "only an argument can be optional",
                )?;
                json_node(&path, value, depth + 1)?;
            }
            Ok(())
        }
    }
}

/// Whether text is exactly what the value it stands for would be written as.
fn scalar_text(text: &str) -> bool {
    let Ok(object) = read_arguments(format!("{{\"v\":{text}}}").as_bytes()) else { return false };
    match object.get("v") {
        Some(Value::List(_) | Value::Object(_)) | None => false,
        // Text such as `1,"w":2` reads as two members.
        Some(_) if object.len() != 1 => false,
        Some(value) => {
            let mut own = String::new();
            json::write(value, &mut own).is_ok() && own == text
        }
    }
}

/// The arguments that a definition's template places, as JSON Pointers in the template's order.
#[must_use]
pub fn arguments_used(definition: &ToolDefinition) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |source: Option<&Source>| {
        if let Some(Source { from: Some(From::Argument(pointer)) }) = source {
            out.push(pointer.clone());
        }
    };
    match &definition.template {
        Some(Template::Http(t)) => {
            t.path.iter().for_each(|s| add(Some(s)));
            t.query.iter().chain(&t.headers).for_each(|s| add(s.value.as_ref()));
            match &t.body {
                Some(Body::Form(form)) => form.pairs.iter().for_each(|s| add(s.value.as_ref())),
                Some(Body::Json(node)) => json_arguments(node, &mut out),
                None => {}
            }
        }
        Some(Template::Smtp(t)) => {
            t.to.iter().for_each(|s| add(Some(s)));
            add(t.subject.as_ref());
            add(t.body.as_ref());
        }
        Some(Template::Postgres(t)) => t.parameters.iter().for_each(|s| add(Some(s))),
        None => {}
    }
    out
}

fn json_arguments(node: &JsonNode, out: &mut Vec<String>) {
    match &node.node {
        Some(Node::Argument(pointer)) => out.push(pointer.clone()),
        Some(Node::List(list)) => list.items.iter().for_each(|item| json_arguments(item, out)),
        Some(Node::Object(object)) => {
            object
                .members
                .iter()
                .filter_map(|m| m.value.as_ref())
                .for_each(|value| json_arguments(value, out));
        }
        _ => {}
    }
}
