//! Every rule that a definition must keep before anything is prepared with it. Knows no action.

mod credentials;
mod requests;
mod templates;

pub(crate) use requests::prepared;
pub use templates::arguments_used;

use exequatur_canonical::{Object, Value, read_arguments};
use exequatur_proto::definition::v1::{
    Attestation, CredentialUse, Effect, ReturnPolicy, Reversibility, Risk, StatusOutcome, ToolDefinition,
    tool_definition::Template,
};

use crate::{PrepareError, names, scope};

pub(crate) type Checked = Result<(), PrepareError>;

/// Fails with a path and a reason unless the condition holds.
pub(crate) fn ensure(holds: bool, path: impl Into<String>, why: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(PrepareError::invalid(path, why)) }
}

/// Checks a whole definition.
pub(crate) fn definition(d: &ToolDefinition) -> Checked {
    ensure(names::tool(&d.tool), "tool", "must be a letter and up to 127 of letters, digits and `_.-/`")?;
    ensure(
        !d.summary.is_empty() && names::plain_line(&d.summary, 512),
        "summary",
        "must be one line of 1 to 512 bytes without hidden characters",
    )?;
    words(d)?;
    schema("input_schema", &d.input_schema)?;
    if !d.output_schema.is_empty() {
        schema("output_schema", &d.output_schema)?;
    }
    ensure((1..=300_000).contains(&d.timeout_ms), "timeout_ms", "must be 1 to 300000")?;
    ensure((1..=4_194_304).contains(&d.max_response_bytes), "max_response_bytes", "must be 1 to 4194304")?;
    match &d.template {
        Some(Template::Http(template)) => templates::http(template)?,
        Some(Template::Smtp(template)) => templates::smtp(template)?,
        Some(Template::Postgres(template)) => {
            templates::postgres(template)?;
            ensure(
                d.effect() != Effect::Read || template.read_only,
                "postgres.read_only",
                "a tool that only reads runs its statement read only",
            )?;
        }
        None => {
            return Err(PrepareError::invalid(
                "template",
                "one of `http`, `smtp` and `postgres` must be there",
            ));
        }
    }
    statuses(d)?;
    if let Some(confined) = &d.tenant_scope {
        ensure(
            names::pointer(&confined.argument) && !confined.argument.is_empty(),
            "tenant_scope.argument",
            "must be a JSON Pointer into the arguments, such as `/account`",
        )?;
        scope::pattern(&confined.pattern)
            .map_err(|why| PrepareError::invalid("tenant_scope.pattern", why))?;
        ensure(names::plain_line(&confined.pattern, 512), "tenant_scope.pattern", "must be one plain line")?;
    }
    credentials::check(d)?;
    display(d)
}

fn words(d: &ToolDefinition) -> Checked {
    let known =
        |ok: bool, path: &str| ensure(ok, path, "must be one of the words of the definition language");
    known(!matches!(Effect::try_from(d.effect), Err(_) | Ok(Effect::Unspecified)), "effect")?;
    known(!matches!(Risk::try_from(d.risk), Err(_) | Ok(Risk::Unspecified)), "risk")?;
    known(
        !matches!(Reversibility::try_from(d.reversibility), Err(_) | Ok(Reversibility::Unspecified)),
        "reversibility",
    )?;
    known(
        !matches!(Attestation::try_from(d.attestation), Err(_) | Ok(Attestation::Unspecified)),
        "attestation",
    )?;
    known(
        !matches!(ReturnPolicy::try_from(d.return_policy), Err(_) | Ok(ReturnPolicy::Unspecified)),
        "return_policy",
    )?;
    ensure(
        d.effect() != Effect::Read || d.reversibility() == Reversibility::Reversible,
        "reversibility",
        "a tool that only reads is reversible",
    )?;
    // Else every action that a rule allows would fail at the lease.
    let wants_person = |used: &CredentialUse| used.attestation() == Attestation::Reservation;
    match d.credentials.iter().position(wants_person) {
        Some(at) if d.attestation() == Attestation::Auto => Err(PrepareError::invalid(
            format!("credentials[{at}]"),
            "wants a person, and a rule alone may allow this tool: say `attestation: auto` here too, or \
             `reservation` for the tool",
        )),
        _ => Ok(()),
    }
}

fn statuses(d: &ToolDefinition) -> Checked {
    ensure(
        d.statuses.is_empty() || matches!(d.template, Some(Template::Http(_))),
        "statuses",
        "only an http tool has statuses",
    )?;
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for (at, rule) in d.statuses.iter().enumerate() {
        let path = format!("statuses[{at}]");
        ensure(
            200 <= rule.from && rule.from <= rule.to && rule.to <= 599,
            &path,
            "`from` and `to` must be 200 to 599, in this order",
        )?;
        ensure(
            !matches!(StatusOutcome::try_from(rule.outcome), Err(_) | Ok(StatusOutcome::Unspecified)),
            &path,
            "the outcome must be succeeded, failed or in_doubt",
        )?;
        ensure(
            seen.iter().all(|(from, to)| rule.to < *from || *to < rule.from),
            &path,
            "no two ranges may overlap",
        )?;
        seen.push((rule.from, rule.to));
    }
    Ok(())
}

fn display(d: &ToolDefinition) -> Checked {
    let mut seen: Vec<&str> = Vec::new();
    for (at, field) in d.display.iter().enumerate() {
        let path = format!("display[{at}]");
        ensure(
            names::pointer(&field.argument) && !field.argument.is_empty(),
            &path,
            "`argument` must be a JSON Pointer, such as `/to`",
        )?;
        ensure(!seen.contains(&field.argument.as_str()), &path, "the argument has a label already")?;
        ensure(
            !field.label.is_empty() && names::plain_line(&field.label, 128),
            &path,
            "`label` must be one line of 1 to 128 bytes without hidden characters",
        )?;
        ensure(
            names::plain_line(&field.unit, 32),
            &path,
            "`unit` must be at most 32 bytes without hidden characters",
        )?;
        seen.push(&field.argument);
    }
    Ok(())
}

/// A schema must be a JSON object in which every reference stays inside. Its keywords are the
/// business of whoever compiles it.
fn schema(path: &str, text: &str) -> Checked {
    let object = read_arguments(text.as_bytes()).map_err(|e| {
        PrepareError::invalid(path, format!("must be a JSON object, read strictly ({})", e.code))
    })?;
    references(path, &object)
}

fn references(path: &str, object: &Object) -> Checked {
    for (name, value) in object.iter() {
        let reference = matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef");
        match value {
            Value::String(target) if reference => {
                ensure(target.starts_with('#'), path, "references must stay inside the schema (`#…`)")?;
            }
            other => inside(path, other)?,
        }
    }
    Ok(())
}

fn inside(path: &str, value: &Value) -> Checked {
    match value {
        Value::Object(object) => references(path, object),
        Value::List(items) => items.iter().try_for_each(|item| inside(path, item)),
        _ => Ok(()),
    }
}
