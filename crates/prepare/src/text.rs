//! A prepared request as text for people: everything that goes out, nothing cut, secrets and
//! late values as `‹marks›`. Knows no page and no terminal.

use exequatur_canonical::display::escape;
use exequatur_proto::definition::v1::{
    CredentialUse, HttpRequest, PostgresRequest, PostgresSecurity, SmtpRequest, SmtpSecurity,
    credential_use::Injection, prepared_request::Request,
};

use crate::{Prepared, definition, mail, place::percent};

const IDEMPOTENCY: &str = "‹idempotency key›";

/// The whole request. Marks cannot be imitated: where they stand, values are ASCII only, and
/// every line of a body begins with `| `.
#[must_use]
pub fn request_text(prepared: &Prepared) -> String {
    let request = prepared.request();
    let mut lines = Vec::new();
    match &request.request {
        Some(Request::Http(http)) => {
            http_lines(http, &request.credentials, &request.idempotency_header, &mut lines);
        }
        Some(Request::Smtp(smtp)) => smtp_lines(smtp, &request.credentials, &mut lines),
        Some(Request::Postgres(postgres)) => postgres_lines(postgres, &request.credentials, &mut lines),
        // Unreachable: a `Prepared` has a request.
        None => {}
    }
    lines.join("\n")
}

/// Untrusted text on one line. Quotes stay as they are; the backslash is escaped, so nothing is
/// ambiguous.
fn shown(text: &str) -> String {
    text.split('"').map(escape).collect::<Vec<_>>().join("\"")
}

fn http_lines(http: &HttpRequest, credentials: &[CredentialUse], idempotency: &str, lines: &mut Vec<String>) {
    let mut target = http.target.clone();
    for used in credentials {
        if let Some(Injection::Query(query)) = &used.injection {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&format!("{}=‹{}›", percent(&query.name), used.credential));
        }
    }
    let at = definition::destination(&http.host, http.port);
    lines.push(format!("{} {}://{at}{target}", shown(&http.method), shown(&http.scheme)));
    for header in &http.headers {
        lines.push(format!("{}: {}", shown(&header.name), shown(&header.value)));
    }
    for used in credentials {
        let name = &used.credential;
        match &used.injection {
            Some(Injection::Bearer(_)) => lines.push(format!("authorization: Bearer ‹{name}›")),
            Some(Injection::Basic(basic)) => {
                lines.push(format!("authorization: Basic base64({}:‹{name}›)", shown(&basic.user)));
            }
            Some(Injection::Header(header)) => lines.push(format!("{}: ‹{name}›", shown(&header.name))),
            _ => {}
        }
    }
    if !idempotency.is_empty() {
        lines.push(format!("{}: {IDEMPOTENCY}", shown(idempotency)));
    }
    if http.body.is_empty() {
        lines.push("no body".to_owned());
    } else {
        lines.push(format!("body, {} bytes:", http.body.len()));
        body_lines(&http.body, lines);
    }
}

fn smtp_lines(smtp: &SmtpRequest, credentials: &[CredentialUse], lines: &mut Vec<String>) {
    let security = match SmtpSecurity::try_from(smtp.security) {
        Ok(SmtpSecurity::Tls) => "TLS",
        Ok(SmtpSecurity::Starttls) => "STARTTLS",
        _ => "no transport security",
    };
    lines.push(format!("SMTP to {}, {security}", definition::destination(&smtp.host, smtp.port)));
    for used in credentials {
        if let Some(Injection::SmtpPassword(login)) = &used.injection {
            lines.push(format!("login {} with ‹{}›", shown(&login.user), used.credential));
        }
    }
    lines.push(format!("MAIL FROM: <{}>", shown(&smtp.from)));
    for to in &smtp.to {
        lines.push(format!("RCPT TO: <{}>", shown(to)));
    }
    lines.push("Message-ID: ‹from the idempotency key›".to_owned());
    lines.push("Date: ‹time of dispatch›".to_owned());
    match mail::parts(&smtp.message) {
        Some(parts) => {
            for header in &parts.headers {
                if header.starts_with("Subject: ") {
                    lines.push(format!("Subject: | {}", shown(&parts.subject)));
                } else {
                    lines.push(shown(&header.replace("\r\n ", " ")));
                }
            }
            lines.push(format!("body, {} bytes, sent as {}:", parts.body.len(), parts.encoding));
            body_lines(parts.body.as_bytes(), lines);
        }
        None => {
            lines.push(format!("message, {} bytes:", smtp.message.len()));
            body_lines(&smtp.message, lines);
        }
    }
}

fn postgres_lines(request: &PostgresRequest, credentials: &[CredentialUse], lines: &mut Vec<String>) {
    let security = match PostgresSecurity::try_from(request.security) {
        Ok(PostgresSecurity::Tls) => "TLS",
        _ => "no transport security",
    };
    let at = definition::destination(&request.host, request.port);
    lines.push(format!("PostgreSQL at {at}, database {}, {security}", shown(&request.database)));
    for used in credentials {
        if let Some(Injection::PostgresLogin(login)) = &used.injection {
            let name = &used.credential;
            lines.push(match login.user.as_str() {
                "" => format!("login with user and password of ‹{name}›"),
                user => format!("login {} with ‹{name}›", shown(user)),
            });
        }
    }
    let kind = if request.read_only { "read only" } else { "may write" };
    lines.push(format!(
        "one transaction, {kind}, at most {} rows, at most {} ms",
        request.max_rows, request.statement_timeout_ms
    ));
    lines.push(format!("statement, {} bytes:", request.statement.len()));
    body_lines(request.statement.as_bytes(), lines);
    for (at, parameter) in (1..).zip(&request.parameters) {
        if parameter.null {
            lines.push(format!("${at} is NULL"));
        } else {
            lines.push(format!("${at}, {} bytes:", parameter.text.len()));
            body_lines(parameter.text.as_bytes(), lines);
        }
    }
}

/// A body line by line; line ends that are not a plain line feed are seen as escapes.
fn body_lines(body: &[u8], lines: &mut Vec<String>) {
    match std::str::from_utf8(body) {
        Ok(text) => lines.extend(text.split('\n').map(|line| format!("| {}", shown(line)))),
        Err(_) => {
            lines.push(format!("| bytes {}", body.iter().map(|b| format!("{b:02x}")).collect::<String>()))
        }
    }
}
