//! The HTTP side: read a request whole, log it, then misbehave as ordered or answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::World;
use crate::fault::Behaviour;
use crate::providers::{self, Call};

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Time between two chunks, so that they leave in writes of their own.
const CHUNK_PAUSE: Duration = Duration::from_millis(3);

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, world: Arc<World>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let (world, tls) = (Arc::clone(&world), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => connection(stream, world).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(stream, world).await;
                    }
                }
            }
        });
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, world: Arc<World>) {
    let service = service_fn(move |request| handle(request, Arc::clone(&world)));
    // An error of `handle` closes the connection without an answer: that is how `close` works.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle(request: Request<Incoming>, world: Arc<World>) -> std::io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let target = parts.uri.path_and_query().map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
    let provider = providers::of_path(parts.uri.path());
    let sequence =
        world.journal.http(provider, parts.method.as_str(), &target, log_headers(&parts.headers), &body)?;

    let call = Call {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        content_type: text(&parts.headers, "content-type"),
        authorization: text(&parts.headers, "authorization"),
        body: &body,
        sequence,
    };
    let (status, value) = providers::answer(provider, &call, &world.accounts);
    match world.faults.take(provider) {
        None => respond(status, value.to_string().into_bytes(), &Behaviour::default()),
        Some(behaviour) => misbehave(behaviour, status, value.to_string(), call.authorization).await,
    }
}

async fn misbehave(
    behaviour: Behaviour,
    status: u16,
    body: String,
    authorization: &str,
) -> std::io::Result<Response<Body>> {
    if let Some(delay) = behaviour.delay_ms {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    if behaviour.hang {
        std::future::pending::<()>().await;
    }
    if behaviour.close {
        return Err(std::io::Error::other("closed as ordered"));
    }
    let status = behaviour.status.unwrap_or(if behaviour.redirect.is_some() { 302 } else { status });
    let mut body = behaviour.body.clone().unwrap_or(body);
    if !behaviour.echo.is_empty() {
        let secret = providers::secret_of(authorization);
        if behaviour.body.is_none() {
            body.clear();
        }
        for encoding in &behaviour.echo {
            body.push_str(&encoding.encode(&secret, authorization));
            body.push('\n');
        }
    }
    let mut body = body.into_bytes();
    if let Some(size) = behaviour.oversize
        && body.len() < size
    {
        body.resize(size, b'x');
    }
    respond(status, body, &behaviour)
}

fn respond(status: u16, body: Vec<u8>, behaviour: &Behaviour) -> std::io::Result<Response<Body>> {
    let body = if behaviour.byte_by_byte {
        chunked(body.into_iter().map(|byte| Bytes::from(vec![byte])).collect())
    } else if behaviour.chunks.is_empty() {
        Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
    } else {
        let mut rest = Bytes::from(body);
        let mut parts = Vec::new();
        for size in &behaviour.chunks {
            parts.push(rest.split_to((*size).min(rest.len())));
        }
        parts.push(rest);
        chunked(parts)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).map_err(std::io::Error::other)?;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &behaviour.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(std::io::Error::other)?;
        response.headers_mut().insert(name, HeaderValue::from_str(value).map_err(std::io::Error::other)?);
    }
    if let Some(location) = &behaviour.redirect {
        response
            .headers_mut()
            .insert(LOCATION, HeaderValue::from_str(location).map_err(std::io::Error::other)?);
    }
    Ok(response)
}

fn chunked(parts: Vec<Bytes>) -> Body {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    let frames = stream::unfold((parts, true), |(mut parts, first)| async move {
        let part = parts.next()?;
        if !first {
            tokio::time::sleep(CHUNK_PAUSE).await;
        }
        Some((Ok(Frame::data(part)), (parts, false)))
    });
    StreamBody::new(frames).boxed_unsync()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

fn log_headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut map: Map<String, Value> = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match map.get_mut(name.as_str()) {
            Some(Value::String(before)) => {
                before.push_str(", ");
                before.push_str(&value);
            }
            _ => {
                map.insert(name.as_str().to_owned(), value.into());
            }
        }
    }
    map
}
