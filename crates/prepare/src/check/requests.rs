//! Rules for prepared bytes that come from elsewhere: only what `prepare` could have made.

use exequatur_proto::definition::v1::{
    HttpRequest, PostgresRequest, PostgresSecurity, PreparedRequest, SmtpRequest, SmtpSecurity,
    prepared_request::Request,
};

use super::credentials::{self, Kind};
use super::{Checked, ensure};
use crate::{PrepareError, mail, names, place, postgres};

pub(crate) fn prepared(request: &PreparedRequest) -> Checked {
    let mut headers: Vec<String> = Vec::new();
    let kind = match &request.request {
        None => {
            return Err(PrepareError::invalid(
                "request",
                "one of `http`, `smtp` and `postgres` must be there",
            ));
        }
        Some(Request::Http(http)) => {
            self::http(http)?;
            headers.extend(http.headers.iter().map(|h| h.name.clone()));
            Kind::Http
        }
        Some(Request::Smtp(smtp)) => {
            self::smtp(smtp)?;
            Kind::Smtp
        }
        Some(Request::Postgres(postgres)) => {
            self::postgres(postgres)?;
            Kind::Postgres
        }
    };
    let key = &request.idempotency_header;
    if !key.is_empty() {
        ensure(
            kind == Kind::Http
                && names::header_token(key)
                && !names::reserved_header(key)
                && !headers.contains(key),
            "idempotency_header",
            "must be a header of an http request that nothing else writes",
        )?;
        headers.push(key.clone());
    }
    // The names in the query are percent-encoded here, so only credentials among themselves are compared.
    credentials::uses(&request.credentials, kind, &mut headers, &mut Vec::new())
}

fn http(http: &HttpRequest) -> Checked {
    ensure(
        matches!(http.method.as_str(), "GET" | "POST" | "PUT" | "PATCH" | "DELETE"),
        "http.method",
        "must be GET, POST, PUT, PATCH or DELETE",
    )?;
    ensure(matches!(http.scheme.as_str(), "https" | "http"), "http.scheme", "must be `https` or `http`")?;
    names::host(&http.host).map_err(|why| PrepareError::invalid("http.host", why))?;
    ensure((1..=65_535).contains(&http.port), "http.port", "must be 1 to 65535")?;
    let (path, query) = match http.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (http.target.as_str(), None),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~%".contains(&b);
    let segments = path.strip_prefix('/').is_some_and(|rest| {
        let count = rest.split('/').count();
        rest.split('/').enumerate().all(|(at, segment)| {
            let last = at + 1 == count;
            segment.bytes().all(plain) && !matches!(segment, "." | "..") && (last || !segment.is_empty())
        })
    });
    let pairs =
        query.is_none_or(|q| !q.is_empty() && q.bytes().all(|b| plain(b) || matches!(b, b'=' | b'&')));
    ensure(segments && pairs, "http.target", "must be an origin-form target with encoded parts")?;
    let mut seen: Vec<&str> = Vec::new();
    for header in &http.headers {
        ensure(
            names::header_token(&header.name)
                && (header.name == "content-type" || !names::reserved_header(&header.name))
                && !seen.contains(&header.name.as_str()),
            "http.headers",
            "a header's name is reserved, malformed or stands twice",
        )?;
        place::header_value(&header.value).map_err(|why| PrepareError::invalid("http.headers", why))?;
        seen.push(&header.name);
    }
    Ok(())
}

fn smtp(smtp: &SmtpRequest) -> Checked {
    names::host(&smtp.host).map_err(|why| PrepareError::invalid("smtp.host", why))?;
    ensure((1..=65_535).contains(&smtp.port), "smtp.port", "must be 1 to 65535")?;
    ensure(
        !matches!(SmtpSecurity::try_from(smtp.security), Err(_) | Ok(SmtpSecurity::Unspecified)),
        "smtp.security",
        "must be tls, starttls or none",
    )?;
    names::address(&smtp.from).map_err(|why| PrepareError::invalid("smtp.from", why))?;
    ensure((1..=100).contains(&smtp.to.len()), "smtp.to", "must name 1 to 100 recipients")?;
    for to in &smtp.to {
        names::address(to).map_err(|why| PrepareError::invalid("smtp.to", why))?;
    }
    ensure(mail::parts(&smtp.message).is_some(), "smtp.message", "is no mail in the one form made here")
}

fn postgres(p: &PostgresRequest) -> Checked {
    names::host(&p.host).map_err(|why| PrepareError::invalid("postgres.host", why))?;
    ensure((1..=65_535).contains(&p.port), "postgres.port", "must be 1 to 65535")?;
    ensure(
        !matches!(PostgresSecurity::try_from(p.security), Err(_) | Ok(PostgresSecurity::Unspecified)),
        "postgres.security",
        "must be tls or none",
    )?;
    ensure(names::database(&p.database), "postgres.database", "must be 1 to 63 visible ASCII characters")?;
    postgres::statement(&p.statement).map_err(|why| PrepareError::invalid("postgres.statement", why))?;
    ensure((1..=10_000).contains(&p.max_rows), "postgres.max_rows", "must be 1 to 10000")?;
    ensure(
        (1..=300_000).contains(&p.statement_timeout_ms),
        "postgres.statement_timeout_ms",
        "must be 1 to 300000",
    )?;
    ensure(
        p.parameters.len() <= postgres::MAX_PARAMETERS,
        "postgres.parameters",
        "a statement has at most 64 parameters",
    )?;
    for parameter in &p.parameters {
        ensure(!parameter.null || parameter.text.is_empty(), "postgres.parameters", "NULL has no text")?;
        postgres::value(&parameter.text).map_err(|why| PrepareError::invalid("postgres.parameters", why))?;
    }
    Ok(())
}
