//! Builds the HTTP request of an action. Knows no connection and no secret.

use exequatur_canonical::Object;
use exequatur_proto::definition::v1::{
    HttpHeader, HttpRequest, HttpTemplate, NamedSource, http_template::Body,
};

use crate::place::{self, percent};
use crate::{PrepareError, json};

/// Longest request target, bytes.
const MAX_TARGET: usize = 16 * 1024;

/// Builds the request.
pub(crate) fn build(template: &HttpTemplate, arguments: &Object) -> Result<HttpRequest, PrepareError> {
    let mut headers = Vec::new();
    let mut body = String::new();
    match &template.body {
        None => {}
        Some(Body::Json(node)) => {
            headers.push(header("content-type", "application/json"));
            if !json::build(node, arguments, &mut body)? {
                return Err(json::absent(node));
            }
        }
        Some(Body::Form(form)) => {
            headers.push(header("content-type", "application/x-www-form-urlencoded"));
            body = pairs(&form.pairs, arguments)?;
        }
    }
    for source in &template.headers {
        let Some(placed) = named(source, arguments)? else { continue };
        let text = placed.text()?;
        place::header_value(&text).map_err(|why| placed.does_not_fit(why))?;
        headers.push(HttpHeader { name: source.name.clone(), value: text });
    }
    Ok(HttpRequest {
        method: template.method.clone(),
        scheme: template.scheme.clone(),
        host: template.host.clone(),
        port: template.port,
        target: target(template, arguments)?,
        headers,
        body: body.into_bytes(),
    })
}

fn header(name: &str, value: &str) -> HttpHeader {
    HttpHeader { name: name.to_owned(), value: value.to_owned() }
}

fn target(template: &HttpTemplate, arguments: &Object) -> Result<String, PrepareError> {
    let mut target = String::new();
    for (at, source) in template.path.iter().enumerate() {
        let placed = place::need(source, arguments)?;
        let text = placed.text()?;
        target.push('/');
        // A fixed empty last segment is how a definition asks for a trailing slash.
        let trailing = placed.pointer.is_empty() && text.is_empty() && at + 1 == template.path.len();
        if !trailing {
            place::segment(&text).map_err(|why| placed.does_not_fit(why))?;
        }
        target.push_str(&percent(&text));
    }
    if target.is_empty() {
        target.push('/');
    }
    let query = pairs(&template.query, arguments)?;
    if !query.is_empty() {
        target.push('?');
        target.push_str(&query);
    }
    if target.len() > MAX_TARGET {
        return Err(PrepareError::TooLarge {
            what: "the request target",
            bytes: target.len(),
            limit: MAX_TARGET,
        });
    }
    Ok(target)
}

fn pairs(sources: &[NamedSource], arguments: &Object) -> Result<String, PrepareError> {
    let mut out = String::new();
    for source in sources {
        let Some(placed) = named(source, arguments)? else { continue };
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(&percent(&source.name));
        out.push('=');
        out.push_str(&percent(&placed.text()?));
    }
    Ok(out)
}

fn named<'a>(
    source: &'a NamedSource,
    arguments: &'a Object,
) -> Result<Option<place::Placed<'a>>, PrepareError> {
    let Some(value) = &source.value else { return Err(PrepareError::NotCanonical("the definition")) };
    if source.optional { Ok(place::find(value, arguments)) } else { place::need(value, arguments).map(Some) }
}
