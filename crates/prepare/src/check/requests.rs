//! Rules for prepared bytes that come from elsewhere: only what `prepare` could have made.

use exequatur_proto::definition::v1::{
    HttpRequest, PreparedRequest, SmtpRequest, SmtpSecurity, prepared_request::Request,
};

use super::{Checked, credentials, ensure};
use crate::{PrepareError, mail, names, place};

pub(crate) fn prepared(request: &PreparedRequest) -> Checked {
    let mut headers: Vec<String> = Vec::new();
    let http = match &request.request {
        None => return Err(PrepareError::invalid("request", "one of `http` and `smtp` must be there")),
        Some(Request::Http(http)) => {
            self::http(http)?;
            headers.extend(http.headers.iter().map(|h| h.name.clone()));
            true
        }
        Some(Request::Smtp(smtp)) => {
            self::smtp(smtp)?;
            false
        }
    };
    let key = &request.idempotency_header;
    if !key.is_empty() {
        ensure(
            http && names::header_token(key) && !names::reserved_header(key) && !headers.contains(key),
            "idempotency_header",
            "must be a header of an http request that nothing else writes",
        )?;
        headers.push(key.clone());
    }
    // The names in the query are percent-encoded here, so only credentials among themselves are compared.
    credentials::uses(&request.credentials, http, &mut headers, &mut Vec::new())
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
