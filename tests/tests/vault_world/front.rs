//! A server between the zones and the real OpenBao, with OpenBao's own certificate. It passes everything on
//! from the caller's own address until it is told to misbehave, and counts what it was asked.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What it does with a request for a secret, a token or an unwrapping; other requests are passed on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Does {
    /// Nothing of its own.
    Pass,
    /// Answers with a status instead.
    Status(u16),
    /// Never answers.
    Hang,
    /// Answers after a time.
    Late(Duration),
    /// Two megabytes instead of an answer.
    Flood,
    /// Something that is no JSON.
    Garbage,
    /// Gives this wrapping token in place of the one that Vault made.
    Swap(String),
    /// Opens the wrapping token itself, then hands it on.
    Open,
}

struct Asked {
    at: Instant,
    path: String,
}

/// The server.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    does: Arc<Mutex<Does>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

struct Inner {
    real: String,
    ca: reqwest::Certificate,
    does: Arc<Mutex<Does>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Front {
    /// Starts it before `real`; `folder` holds OpenBao's certificate, key and CA.
    pub(crate) async fn start(real: String, folder: &Path) -> Self {
        let chain = vec![CertificateDer::from_pem_file(folder.join("server.crt")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
        let tls = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
        let tls = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (does, asked) = (Arc::new(Mutex::new(Does::Pass)), Arc::new(Mutex::new(Vec::new())));
        let ca = reqwest::Certificate::from_pem(&std::fs::read(folder.join("ca.crt")).unwrap()).unwrap();
        let inner = Arc::new(Inner { real, ca, does: Arc::clone(&does), asked: Arc::clone(&asked) });
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (tls, inner) = (tls.clone(), Arc::clone(&inner));
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let client = inner.client(peer.ip());
                    let service = service_fn(|request| answer(&inner, &client, request));
                    let server = hyper::server::conn::http1::Builder::new();
                    drop(server.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { address, does, asked }
    }

    /// What it does from now on.
    pub(crate) fn does(&self, what: Does) {
        *self.does.lock().unwrap() = what;
    }

    /// Requests since then whose path holds this.
    pub(crate) fn asked(&self, since: Instant, path: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|a| a.at >= since && a.path.contains(path)).count()
    }
}

impl Inner {
    fn client(&self, from: IpAddr) -> reqwest::Client {
        let builder = reqwest::Client::builder().no_proxy().local_address(from);
        builder.tls_certs_only([self.ca.clone()]).build().unwrap()
    }

    async fn pass(
        &self,
        client: &reqwest::Client,
        request: Request<Incoming>,
    ) -> Result<(StatusCode, Bytes), reqwest::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let mut out = client.request(head.method, format!("{}{}", self.real, head.uri)).body(body);
        for (name, value) in &head.headers {
            if name != "host" && name != "content-length" {
                out = out.header(name, value);
            }
        }
        let answer = out.send().await?;
        Ok((answer.status(), answer.bytes().await?))
    }
}

async fn answer(
    inner: &Inner,
    client: &reqwest::Client,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    inner.asked.lock().unwrap().push(Asked { at: Instant::now(), path: path.clone() });
    let reads = ["/secret/data/", "/database/creds/", "/token/create/", "/wrapping/unwrap"];
    let does = match reads.iter().any(|part| path.contains(part)) {
        true => inner.does.lock().unwrap().clone(),
        false => Does::Pass,
    };
    let own = |status: u16, body: Vec<u8>| {
        Ok(Response::builder().status(status).body(Full::new(Bytes::from(body))).unwrap())
    };
    match &does {
        Does::Status(status) => return own(*status, br#"{"errors":["told to"]}"#.to_vec()),
        Does::Flood => return own(200, vec![b' '; 2 << 20]),
        Does::Garbage => return own(200, b"<html>not Vault</html>".to_vec()),
        Does::Hang => std::future::pending::<()>().await,
        Does::Late(time) => tokio::time::sleep(*time).await,
        Does::Pass | Does::Swap(_) | Does::Open => {}
    }
    let Ok((status, body)) = inner.pass(client, request).await else { return own(502, Vec::new()) };
    let mut text: Json = serde_json::from_slice(&body).unwrap_or_default();
    let wrapped = text.pointer("/wrap_info/token").and_then(Json::as_str).map(ToOwned::to_owned);
    match (does, wrapped) {
        (Does::Swap(other), Some(_)) => text["wrap_info"]["token"] = Json::from(other),
        (Does::Open, Some(token)) => {
            let open = client.post(format!("{}/v1/sys/wrapping/unwrap", inner.real));
            let opened = open.header("X-Vault-Token", token).send().await.unwrap();
            assert!(opened.status().is_success(), "a thief is served once");
        }
        _ => return Ok(Response::builder().status(status).body(Full::new(body)).unwrap()),
    }
    Ok(Response::builder().status(status).body(Full::new(text.to_string().into())).unwrap())
}
