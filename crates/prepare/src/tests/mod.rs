//! Tests over whole definitions and actions.

mod definition;
mod http;
mod mail;
mod postgres;
mod properties;
mod scope;

use exequatur_canonical::{FrozenAction, freeze_action};
use exequatur_proto::definition::v1::{
    Attestation, BearerInjection, CredentialUse, Effect, HttpTemplate, NamedSource, PostgresSecurity,
    PostgresTemplate, ReturnPolicy, Reversibility, Risk, SmtpSecurity, SmtpTemplate, Source, ToolDefinition,
    credential_use::Injection, prepared_request::Request, source::From, tool_definition::Template,
};
use prost::Message as _;

use crate::{Definition, PrepareError, Prepared, prepare, verify_prepared};

pub(crate) fn lit(text: &str) -> Source {
    Source { from: Some(From::Literal(text.to_owned())) }
}

pub(crate) fn arg(pointer: &str) -> Source {
    Source { from: Some(From::Argument(pointer.to_owned())) }
}

pub(crate) fn pair(name: &str, value: Source) -> NamedSource {
    NamedSource { name: name.to_owned(), value: Some(value), optional: false }
}

pub(crate) fn optional(name: &str, value: Source) -> NamedSource {
    NamedSource { optional: true, ..pair(name, value) }
}

/// A definition around a template, valid in all else.
pub(crate) fn around(template: Template) -> ToolDefinition {
    ToolDefinition {
        tool: "test.tool".to_owned(),
        summary: "does a thing".to_owned(),
        effect: Effect::Write.into(),
        risk: Risk::Low.into(),
        reversibility: Reversibility::Reversible.into(),
        attestation: Attestation::Reservation.into(),
        input_schema: "{}".to_owned(),
        output_schema: String::new(),
        template: Some(template),
        credentials: Vec::new(),
        tenant_scope: None,
        statuses: Vec::new(),
        timeout_ms: 1000,
        max_response_bytes: 1024,
        return_policy: ReturnPolicy::Agent.into(),
        idempotency: None,
        display: Vec::new(),
    }
}

pub(crate) fn http() -> HttpTemplate {
    HttpTemplate {
        method: "POST".to_owned(),
        scheme: "https".to_owned(),
        host: "api.example.com".to_owned(),
        port: 443,
        path: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
    }
}

pub(crate) fn smtp() -> SmtpTemplate {
    SmtpTemplate {
        host: "mail.example.com".to_owned(),
        port: 587,
        security: SmtpSecurity::Starttls.into(),
        from: "ops@example.com".to_owned(),
        to: vec![arg("/to")],
        subject: Some(arg("/subject")),
        body: Some(arg("/body")),
    }
}

pub(crate) fn postgres() -> PostgresTemplate {
    PostgresTemplate {
        host: "db.example.com".to_owned(),
        port: 5432,
        security: PostgresSecurity::Tls.into(),
        database: "crm".to_owned(),
        statement: "SELECT id FROM customer WHERE name = $1".to_owned(),
        parameters: vec![arg("/v")],
        read_only: true,
        max_rows: 10,
    }
}

pub(crate) fn bearer(name: &str) -> CredentialUse {
    CredentialUse {
        credential: name.to_owned(),
        injection: Some(Injection::Bearer(BearerInjection {})),
        attestation: Attestation::Reservation.into(),
    }
}

pub(crate) fn verify(message: &ToolDefinition) -> Result<Definition, PrepareError> {
    Definition::verify(&message.encode_to_vec())
}

pub(crate) fn action(definition: &Definition, arguments: &str) -> FrozenAction {
    freeze_action(definition.tool(), arguments.as_bytes(), "", Some(definition.digest().as_bytes())).unwrap()
}

/// Prepares, and checks on the way that the bytes read back and come out again the same.
pub(crate) fn run(template: Template, arguments: &str) -> Result<Prepared, PrepareError> {
    let definition = verify(&around(template)).unwrap();
    let action = action(&definition, arguments);
    let prepared = prepare(&definition, &action)?;
    assert_eq!(prepare(&definition, &action).unwrap(), prepared);
    assert_eq!(verify_prepared(prepared.bytes()).unwrap(), prepared);
    assert_eq!(prepared.destination(), definition.destination());
    Ok(prepared)
}

pub(crate) fn http_of(prepared: &Prepared) -> &exequatur_proto::definition::v1::HttpRequest {
    match &prepared.request().request {
        Some(Request::Http(http)) => http,
        _ => panic!("no http request"),
    }
}

pub(crate) fn smtp_of(prepared: &Prepared) -> &exequatur_proto::definition::v1::SmtpRequest {
    match &prepared.request().request {
        Some(Request::Smtp(smtp)) => smtp,
        _ => panic!("no smtp request"),
    }
}
