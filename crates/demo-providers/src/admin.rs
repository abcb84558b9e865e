//! The door for tests: `POST /faults` adds an order, `DELETE /faults` forgets all, `GET /` tells counts.
//! Nothing of the product speaks to it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::World;
use crate::fault::Order;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, world: Arc<World>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&world)));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>, world: Arc<World>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let reply = match (&parts.method, parts.uri.path()) {
        (&Method::POST, "/faults") => match body.collect().await {
            Ok(body) => match serde_json::from_slice::<Order>(&body.to_bytes()) {
                Ok(order) => {
                    world.faults.add(order);
                    (StatusCode::OK, json!({"open": world.faults.open()}))
                }
                Err(e) => (StatusCode::BAD_REQUEST, json!({"error": e.to_string()})),
            },
            Err(e) => (StatusCode::BAD_REQUEST, json!({"error": e.to_string()})),
        },
        (&Method::DELETE, "/faults") => {
            world.faults.clear();
            (StatusCode::OK, json!({"open": 0}))
        }
        (&Method::GET, "/") => {
            (StatusCode::OK, json!({"requests": world.journal.count(), "open": world.faults.open()}))
        }
        _ => (StatusCode::NOT_FOUND, json!({"error": "POST /faults, DELETE /faults or GET /"})),
    };
    let mut response = Response::new(Full::new(Bytes::from(reply.1.to_string())));
    *response.status_mut() = reply.0;
    Ok(response)
}
