//! One HTTP/1.1 request over one fresh connection: no pool, no retry, no redirect, no decompression.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::definition::v1::credential_use::Injection;
use exequatur_proto::definition::v1::{CredentialUse, HttpRequest};
use exequatur_secret::Secret;
use http::header::{AUTHORIZATION, HOST, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use zeroize::Zeroizing;

use crate::Sent;
use crate::link::{Destination, Link, Security};

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Whether the body came in a content coding, so that nobody could look into it.
    pub encoded: bool,
    /// The body, at most the limit.
    pub body: Vec<u8>,
}

/// A request with its secrets in, ready to be sent once. Cannot be printed.
pub struct Ready(Request<Full<Bytes>>);

/// Where a prepared request goes.
///
/// # Errors
/// `DESTINATION_FORBIDDEN` for another scheme than `https` and `http`, or a port out of range.
pub fn destination(request: &HttpRequest) -> Result<Destination, Fault> {
    let security = match request.scheme.as_str() {
        "https" => Security::Tls,
        "http" => Security::Plain,
        _ => return Err(Fault::new(Reason::DestinationForbidden, "the scheme is neither https nor http")),
    };
    let port = u16::try_from(request.port)
        .map_err(|_| Fault::new(Reason::DestinationForbidden, "the port is out of range"))?;
    Ok(Destination { host: request.host.clone(), port, security })
}

/// Puts the secrets and the idempotency key into a prepared request.
///
/// # Errors
/// `VALUE_DOES_NOT_FIT` when a secret does not fit its place; nothing was sent.
pub fn ready(
    request: &HttpRequest,
    secrets: &[(CredentialUse, Secret)],
    idempotency: Option<(&str, &str)>,
) -> Result<Ready, Fault> {
    let unfit =
        |what: &str| Fault::new(Reason::ValueDoesNotFit, format!("{what} does not fit into the request"));
    let mut target = Zeroizing::new(request.target.clone());
    let mut built = Request::builder()
        .method(Method::from_bytes(request.method.as_bytes()).map_err(|_| unfit("the method"))?);
    let default_port = matches!((request.scheme.as_str(), request.port), ("https", 443) | ("http", 80));
    let host = if default_port { request.host.clone() } else { format!("{}:{}", request.host, request.port) };
    let headers = built.headers_mut().ok_or_else(|| unfit("the method"))?;
    headers.insert(HOST, HeaderValue::from_str(&host).map_err(|_| unfit("the host"))?);
    let name = |text: &str| HeaderName::from_bytes(text.as_bytes()).map_err(|_| unfit("a header's name"));
    for header in &request.headers {
        let value = HeaderValue::from_str(&header.value).map_err(|_| unfit("a header's value"))?;
        headers.append(name(&header.name)?, value);
    }
    if let Some((header, key)) = idempotency {
        headers.insert(name(header)?, HeaderValue::from_str(key).map_err(|_| unfit("the idempotency key"))?);
    }
    for (place, secret) in secrets {
        let value = visible(secret).ok_or_else(|| unfit("a credential"))?;
        let (header, text) = match &place.injection {
            Some(Injection::Bearer(_)) => (AUTHORIZATION, Zeroizing::new(format!("Bearer {value}"))),
            Some(Injection::Basic(basic)) => {
                let pair = Zeroizing::new(format!("{}:{value}", basic.user));
                let pair = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
                (AUTHORIZATION, Zeroizing::new(format!("Basic {}", &*pair)))
            }
            Some(Injection::Header(place)) => (name(&place.name)?, Zeroizing::new(value.to_owned())),
            Some(Injection::Query(place)) => {
                let mark = if target.contains('?') { '&' } else { '?' };
                target.push(mark);
                target.push_str(&percent(place.name.as_bytes()));
                target.push('=');
                target.push_str(&percent(value.as_bytes()));
                continue;
            }
            Some(Injection::SmtpPassword(_) | Injection::PostgresLogin(_)) | None => {
                return Err(unfit("a credential"));
            }
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| unfit("a credential"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let uri: Uri = target.parse().map_err(|_| unfit("the target"))?;
    built
        .uri(uri)
        .body(Full::new(Bytes::from(request.body.clone())))
        .map(Ready)
        .map_err(|_| unfit("the request"))
}

/// A secret of visible ASCII; anything else has no place in a header or query.
fn visible(secret: &Secret) -> Option<&str> {
    std::str::from_utf8(secret.expose())
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() || b == b' '))
        .filter(|text| !text.starts_with(' ') && !text.ends_with(' '))
}

fn percent(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// Sends the request once and reads the answer, all within `limit`; the body at most `max_body` bytes.
pub async fn send(link: Link, request: Ready, limit: Duration, max_body: usize) -> Sent<Answer> {
    let written = link.written.clone();
    let unclear = |why: &str| {
        if written.count() == 0 { Sent::NotSent(why.to_owned()) } else { Sent::Unclear(why.to_owned()) }
    };
    let exchange = async {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(link.stream)).await.map_err(|_| "the connection closed")?;
        let running = tokio::spawn(connection);
        let answer = exchange(&mut sender, request.0, max_body).await;
        running.abort();
        answer
    };
    match tokio::time::timeout(limit, exchange).await {
        Err(_) => unclear("no whole answer in time"),
        Ok(Err(why)) => unclear(why),
        Ok(Ok(answer)) => Sent::Answered(answer),
    }
}

async fn exchange(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    max_body: usize,
) -> Result<Answer, &'static str> {
    // hyper's errors may quote what came in; they are not passed on.
    let response =
        sender.send_request(request).await.map_err(|_| "the connection closed before a whole answer")?;
    let status = response.status().as_u16();
    let encoded = response
        .headers()
        .get_all(http::header::CONTENT_ENCODING)
        .iter()
        .any(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity"));
    let body = Limited::new(response.into_body(), max_body)
        .collect()
        .await
        .map_err(|_| "the answer is larger than the definition allows, or was cut")?
        .to_bytes()
        .to_vec();
    Ok(Answer { status, encoded, body })
}
