//! Rules for credentials and for the idempotency key: each goes into one place of its own.

use exequatur_proto::definition::v1::{
    Attestation, CredentialUse, HttpTemplate, ToolDefinition, credential_use::Injection,
    tool_definition::Template,
};

use super::{Checked, ensure};
use crate::{PrepareError, names};

pub(super) fn check(d: &ToolDefinition) -> Checked {
    let mut headers: Vec<String> = Vec::new();
    let mut queries: Vec<String> = Vec::new();
    if let Some(Template::Http(HttpTemplate { headers: fixed, query, .. })) = &d.template {
        headers.extend(fixed.iter().map(|h| h.name.clone()));
        queries.extend(query.iter().map(|q| q.name.clone()));
    }
    if let Some(idempotency) = &d.idempotency {
        ensure(
            matches!(d.template, Some(Template::Http(_))),
            "idempotency",
            "only an http tool has an idempotency header",
        )?;
        ensure(
            names::header_token(&idempotency.header) && !names::reserved_header(&idempotency.header),
            "idempotency.header",
            "must be a lower-case header name that nothing else writes",
        )?;
        ensure(idempotency.window_s > 0, "idempotency.window_s", "must be at least one second")?;
        claim(&mut headers, &idempotency.header, "idempotency.header")?;
    }
    let kind = match &d.template {
        Some(Template::Http(_)) => Kind::Http,
        Some(Template::Postgres(_)) => Kind::Postgres,
        Some(Template::Smtp(_)) | None => Kind::Smtp,
    };
    uses(&d.credentials, kind, &mut headers, &mut queries)
}

/// What a credential goes into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Http,
    Smtp,
    Postgres,
}

/// Checks the uses against the places already taken.
pub(super) fn uses(
    all: &[CredentialUse],
    kind: Kind,
    headers: &mut Vec<String>,
    queries: &mut Vec<String>,
) -> Checked {
    let mut seen: Vec<&str> = Vec::new();
    let mut logins = 0;
    for (at, used) in all.iter().enumerate() {
        let path = format!("credentials[{at}]");
        ensure(
            names::plain_id(&used.credential),
            &path,
            "a credential's name is a lower-case letter or digit and up to 62 of `a-z0-9._-`",
        )?;
        ensure(!seen.contains(&used.credential.as_str()), &path, "the credential stands twice")?;
        seen.push(&used.credential);
        ensure(
            !matches!(Attestation::try_from(used.attestation), Err(_) | Ok(Attestation::Unspecified)),
            &path,
            "the attestation must be reservation or auto",
        )?;
        let user = |name: &str| {
            ensure(
                names::user(name),
                &path,
                "the user must be visible ASCII without `:`, 1 to 255 characters",
            )
        };
        match &used.injection {
            None => return Err(PrepareError::invalid(path, "says not where the credential goes")),
            Some(Injection::SmtpPassword(login)) => {
                ensure(kind == Kind::Smtp, &path, "`smtp_password` is for smtp tools")?;
                logins += 1;
                ensure(logins == 1, &path, "one login only")?;
                user(&login.user)?;
            }
            Some(Injection::PostgresLogin(login)) => {
                ensure(kind == Kind::Postgres, &path, "`postgres_login` is for postgres tools")?;
                logins += 1;
                ensure(logins == 1, &path, "one login only")?;
                if !login.user.is_empty() {
                    user(&login.user)?;
                }
            }
            Some(_) if kind == Kind::Smtp => {
                return Err(PrepareError::invalid(path, "an smtp tool takes `smtp_password` only"));
            }
            Some(_) if kind == Kind::Postgres => {
                return Err(PrepareError::invalid(path, "a postgres tool takes `postgres_login` only"));
            }
            Some(Injection::Bearer(_)) => claim(headers, "authorization", &path)?,
            Some(Injection::Basic(basic)) => {
                user(&basic.user)?;
                claim(headers, "authorization", &path)?;
            }
            Some(Injection::Header(header)) => {
                ensure(names::header_token(&header.name), &path, "the header's name must be lower case")?;
                ensure(
                    header.name == "authorization" || !names::reserved_header(&header.name),
                    &path,
                    format!("a credential cannot go into `{}`", header.name),
                )?;
                claim(headers, &header.name, &path)?;
            }
            Some(Injection::Query(query)) => {
                ensure(
                    !query.name.is_empty() && names::plain_line(&query.name, 256),
                    &path,
                    "the query name must be one plain line",
                )?;
                claim(queries, &query.name, &path)?;
            }
        }
    }
    Ok(())
}

fn claim(taken: &mut Vec<String>, name: &str, path: &str) -> Checked {
    ensure(!taken.iter().any(|t| t == name), path, format!("`{name}` is written by something else already"))?;
    taken.push(name.to_owned());
    Ok(())
}
