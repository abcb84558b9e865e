//! The YAML form of a tool definition: text in, definition bytes out. Used where definitions are
//! written; no zone links it. Knows no action and no service.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests may stop at once"
    )
)]

mod credentials;
mod http;
mod postgres;
mod schema;
mod smtp;
mod source;
mod units;

#[cfg(test)]
mod tests;

use exequatur_prepare::{Definition, PrepareError, lint};
use exequatur_proto::definition::v1::{
    Attestation, DisplayField, Effect, Idempotency, ReturnPolicy, Reversibility, Risk, StatusOutcome,
    StatusRule, TenantScope, ToolDefinition, tool_definition::Template,
};
pub use exequatur_yaml::FileError;
use exequatur_yaml::{Kind, Map, Node, nearest};
use prost::Message as _;

/// Reads one tool file and checks everything that [`Definition::verify`] checks.
///
/// # Errors
/// The first thing that is wrong, with its line and, for a mistyped word, the nearest one.
pub fn read(text: &str) -> Result<Definition, FileError> {
    let document = exequatur_yaml::read(text)?;
    let message = definition(&document)?;
    arguments_exist(&document, &message)?;
    Definition::verify(&message.encode_to_vec()).map_err(|error| match error {
        PrepareError::Invalid { path, why } => locate(&document, &path).error(format!("{path}: {why}")),
        other => document.error(other.to_string()),
    })
}

fn definition(document: &Node) -> Result<ToolDefinition, FileError> {
    let mut map = document.map()?;
    let effect = map.need("effect")?.word(&[("read", Effect::Read), ("write", Effect::Write)])?;
    let reversibility = match map.take("reversible") {
        Some(node) if node.bool()? => Reversibility::Reversible,
        Some(_) => Reversibility::Irreversible,
        None if effect == Effect::Read => Reversibility::Reversible,
        None => return Err(map.place().error("`reversible` is missing: say true or false")),
    };
    let out = ToolDefinition {
        tool: map.need("tool")?.text()?.to_owned(),
        summary: map.need("summary")?.text()?.to_owned(),
        effect: effect.into(),
        risk: map
            .need("risk")?
            .word(&[("low", Risk::Low), ("medium", Risk::Medium), ("high", Risk::High)])?
            .into(),
        reversibility: reversibility.into(),
        attestation: attestation(map.take("attestation"))?.into(),
        input_schema: schema::input(map.need("input_schema")?)?,
        output_schema: map.take("output_schema").map_or_else(|| Ok(String::new()), schema::output)?,
        template: Some(template(&mut map, effect == Effect::Read)?),
        credentials: map.take("credentials").map_or_else(|| Ok(Vec::new()), credentials::read)?,
        tenant_scope: map.take("tenant_scope").map(tenant_scope).transpose()?,
        statuses: map.take("statuses").map_or_else(|| Ok(Vec::new()), statuses)?,
        timeout_ms: map.take("timeout").map_or(Ok(30_000), units::milliseconds)?,
        max_response_bytes: map.take("max_response").map_or(Ok(1 << 20), units::bytes)?,
        return_policy: map
            .take("return")
            .map_or(Ok(ReturnPolicy::Agent), |node| {
                node.word(&[("agent", ReturnPolicy::Agent), ("withheld", ReturnPolicy::Withheld)])
            })?
            .into(),
        idempotency: map.take("idempotency").map(idempotency).transpose()?,
        display: map.take("display").map_or_else(|| Ok(Vec::new()), display)?,
    };
    map.done()?;
    Ok(out)
}

fn template(map: &mut Map<'_>, reads: bool) -> Result<Template, FileError> {
    match (map.take("http"), map.take("smtp"), map.take("postgres")) {
        (Some(node), None, None) => http::read(node).map(Template::Http),
        (None, Some(node), None) => smtp::read(node).map(Template::Smtp),
        (None, None, Some(node)) => postgres::read(node, reads).map(Template::Postgres),
        (None, None, None) => Err(map.place().error("one of `http`, `smtp` and `postgres` must be there")),
        (_, second, third) => {
            let place = third.or(second).map_or_else(|| map.place(), |node| node.place);
            Err(place.error("a tool has one of `http`, `smtp` and `postgres`"))
        }
    }
}

/// What must stand behind; a person's approval where nothing is said.
pub(crate) fn attestation(node: Option<&Node>) -> Result<Attestation, FileError> {
    node.map_or(Ok(Attestation::Reservation), |node| {
        node.word(&[("reservation", Attestation::Reservation), ("auto", Attestation::Auto)])
    })
}

fn tenant_scope(node: &Node) -> Result<TenantScope, FileError> {
    let mut map = node.map()?;
    let out = TenantScope {
        argument: source::pointer(map.need("$arg")?)?,
        pattern: map.need("pattern")?.text()?.to_owned(),
    };
    map.done()?;
    Ok(out)
}

fn statuses(node: &Node) -> Result<Vec<StatusRule>, FileError> {
    let words = &[
        ("succeeded", StatusOutcome::Succeeded),
        ("failed", StatusOutcome::Failed),
        ("in_doubt", StatusOutcome::InDoubt),
    ];
    node.map()?
        .entries()
        .iter()
        .map(|(place, range, outcome)| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) => Ok(StatusRule { from, to, outcome: outcome.word(words)?.into() }),
                _ => Err(place.error("a status is a number such as `404` or a range such as `500-599`")),
            }
        })
        .collect()
}

fn idempotency(node: &Node) -> Result<Idempotency, FileError> {
    let mut map = node.map()?;
    let out = Idempotency {
        header: map.need("header")?.text()?.to_owned(),
        window_s: units::seconds(map.need("window")?)?,
    };
    map.done()?;
    Ok(out)
}

fn display(node: &Node) -> Result<Vec<DisplayField>, FileError> {
    node.list()?
        .iter()
        .map(|item| {
            let mut map = item.map()?;
            let field = DisplayField {
                argument: source::pointer(map.need("$arg")?)?,
                label: map.need("label")?.text()?.to_owned(),
                unit: map.take("unit").map_or(Ok(""), Node::text)?.to_owned(),
            };
            map.done()?;
            Ok(field)
        })
        .collect()
}

/// Every argument that is placed, labelled or confined should be one that the schema names.
fn arguments_exist(document: &Node, message: &ToolDefinition) -> Result<(), FileError> {
    let Some(names) = schema::top_names(&message.input_schema) else { return Ok(()) };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut used = lint::arguments_used(message);
    used.extend(message.tenant_scope.iter().map(|scope| scope.argument.clone()));
    used.extend(message.display.iter().map(|field| field.argument.clone()));
    for pointer in used {
        let Some(first) = pointer.split('/').nth(1) else { continue };
        let first = first.replace("~1", "/").replace("~0", "~");
        if !names.contains(&first.as_str()) {
            let hint = nearest(&first, &names).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
            let place = find_argument(document, &pointer, &first).unwrap_or(document.place);
            return Err(place.error(format!("the input schema names no argument `{first}`{hint}")));
        }
    }
    Ok(())
}

/// Where an argument is named in the file.
fn find_argument(node: &Node, pointer: &str, name: &str) -> Option<exequatur_yaml::Place> {
    match &node.kind {
        Kind::List(items) => items.iter().find_map(|item| find_argument(item, pointer, name)),
        Kind::Map(entries) => entries.iter().find_map(|(_, key, value)| match &value.kind {
            Kind::Text(text) if key == source::ARG && (text == pointer || text == name) => Some(value.place),
            Kind::Text(text) if key == "path" && text.contains(&format!("{{{name}}}")) => Some(value.place),
            // The schema itself may hold anything.
            _ if key == "input_schema" || key == "output_schema" => None,
            _ => find_argument(value, pointer, name),
        }),
        _ => None,
    }
}

/// The place in the file that a definition's field path is about, as near as the names lead.
fn locate(document: &Node, path: &str) -> exequatur_yaml::Place {
    let mut at = document;
    let mut place = document.place;
    for part in path.split(['.', '[']) {
        let part = part.trim_end_matches(']');
        let key = match part {
            "timeout_ms" => "timeout",
            "max_response_bytes" => "max_response",
            "return_policy" => "return",
            "reversibility" => "reversible",
            "window_s" => "window",
            "scheme" | "host" | "port" => "url",
            other => other,
        };
        let next = match &at.kind {
            Kind::Map(entries) => entries
                .iter()
                .find(|(_, name, _)| name == key || (key == "url" && name == "server"))
                .or_else(|| part.parse::<usize>().ok().and_then(|n| entries.get(n)))
                .map(|(place, _, node)| (*place, node)),
            Kind::List(items) => {
                part.parse::<usize>().ok().and_then(|n| items.get(n)).map(|node| (node.place, node))
            }
            _ => None,
        };
        let Some((found, node)) = next else { break };
        (place, at) = (found, node);
    }
    place
}
