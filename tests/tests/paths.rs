//! Attack row S41: raw HTTP/2 over real mutual TLS, with a `:path` that is nearly a method's. What a
//! router might still find and a table of callers might not is never handled for who may not call it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exequatur_testkit::{Plane, Ready};
use http::Request;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{aws_lc_rs, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const LIMIT: Duration = Duration::from_secs(10);
/// gRPC's numbers.
const OK: &str = "0";
const PERMISSION_DENIED: &str = "7";
const UNIMPLEMENTED: &str = "12";
const UNAUTHENTICATED: &str = "16";
/// The stream was reset, or the connection closed: no handler answered.
const RESET: &str = "reset";
const STATUS: &str = "status";
const ANSWER: &str = "answer";
/// NOT_FOUND by the table of methods, before any handler; a handler's own has another message.
const NO_METHOD: &str = "no such method";

/// Whoever answers: these tests are about the server's view of the client.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A client with a certificate of the plane.
struct Client(TlsConnector);

impl Client {
    fn new(certificate: &Path, key: &Path) -> Self {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer))
            .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self(TlsConnector::from(Arc::new(config)))
    }

    fn of(ready: &Ready, who: &str) -> Self {
        Self::new(&ready.path(&format!("/{who}/cert")), &ready.path(&format!("/{who}/key")))
    }

    async fn open(&self, address: &str) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(address).await.unwrap();
        self.0.connect(ServerName::try_from("zone.invalid").unwrap(), stream).await.unwrap()
    }

    /// One call with this `:path`, and the status that came back.
    async fn call(&self, address: &str, path: &str, message: &[u8]) -> String {
        let exchange = async {
            let (sender, connection) = h2::client::handshake(self.open(address).await).await.unwrap();
            let driver = tokio::spawn(connection);
            let mut sender = sender.ready().await.unwrap();
            let request = Request::post(format!("https://zone.invalid{path}"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(())
                .unwrap();
            assert_eq!(request.uri().path_and_query().unwrap().as_str(), path, "sent as it is written here");
            let (response, mut body) = sender.send_request(request, false).unwrap();
            // The server may have answered already.
            drop(body.send_data(framed(message).into(), true));
            let status = status(response).await;
            driver.abort();
            status
        };
        tokio::time::timeout(LIMIT, exchange).await.unwrap()
    }

    /// The same with frames written by hand: what no URI type would let through.
    async fn raw(&self, address: &str, path: &str, message: &[u8]) -> &'static str {
        let mut stream = self.open(address).await;
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", path),
            (":authority", "zone.invalid"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            // HPACK: a literal that is not indexed, its name new, no Huffman code.
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).ok().filter(|n| *n < 127).unwrap());
                block.extend(text.as_bytes());
            }
        }
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        bytes.extend(frame(1, 4, 1, &block));
        bytes.extend(frame(0, 1, 1, &framed(message)));
        stream.write_all(&bytes).await.unwrap();
        tokio::time::timeout(LIMIT, first_answer(&mut stream)).await.unwrap()
    }
}

/// A gRPC message: not compressed, its length, its bytes.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What the server says first of stream 1: an answer's headers, a status alone, or that it is no stream.
async fn first_answer(stream: &mut TlsStream<TcpStream>) -> &'static str {
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return RESET;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        if stream.read_exact(&mut payload).await.is_err() {
            return RESET;
        }
        match head[3] {
            // END_STREAM: a status and no answer.
            1 => return if head[4] & 1 == 1 { STATUS } else { ANSWER },
            // RST_STREAM, GOAWAY.
            3 | 7 => return RESET,
            _ => {}
        }
    }
}

/// `grpc-status`, of the headers or of the trailers; HTTP's own where there is none.
async fn status(response: h2::client::ResponseFuture) -> String {
    let Ok(response) = response.await else { return RESET.to_owned() };
    let text = |headers: &http::HeaderMap| {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let message = text("grpc-message").unwrap_or_default().replace("%20", " ");
        let by_table = [NO_METHOD, "a method path has no query"].contains(&message.as_str());
        text("grpc-status").map(|code| if by_table { NO_METHOD.to_owned() } else { code })
    };
    let http = format!("HTTP {}", response.status().as_u16());
    if let Some(status) = text(response.headers()) {
        return status;
    }
    let mut body = response.into_body();
    while let Some(chunk) = body.data().await {
        let Ok(chunk) = chunk else { return RESET.to_owned() };
        body.flow_control().release_capacity(chunk.len()).unwrap();
    }
    let Ok(trailers) = body.trailers().await else { return RESET.to_owned() };
    trailers.as_ref().and_then(text).unwrap_or(http)
}

/// Everything that is nearly `/package.Service/Method`.
fn nearly(service: &str, method: &str) -> Vec<String> {
    let path = format!("/{service}/{method}");
    let (package, name) = service.rsplit_once('.').unwrap();
    vec![
        format!("/{path}"),
        format!("//{service}//{method}"),
        format!("/{}/{method}", service.to_lowercase()),
        format!("/{package}.{}/{method}", name.to_uppercase()),
        format!("/{service}/{}", method.to_lowercase()),
        format!("{path}?x"),
        format!("{path}?"),
        format!("{path}/"),
        format!("{path}/x"),
        format!("{path};x"),
        format!("{path}%20"),
        format!("{path}%00"),
        format!("/{service}%2F{method}"),
        format!("/{service}%2f{method}"),
        format!("/%65{}/{method}", service.trim_start_matches('e')),
        format!("/{}/{method}", service.replace('.', "%2E")),
        format!("/./{service}/{method}"),
        format!("/x/..{path}"),
        format!("/{}/{method}", service.trim_start_matches("exequatur.")),
        format!("/{name}/{method}"),
        format!("/{service}"),
        "/".to_owned(),
    ]
}

fn refused(status: &str) -> bool {
    [UNIMPLEMENTED, PERMISSION_DENIED, UNAUTHENTICATED, RESET, NO_METHOD].contains(&status)
}

/// A method, who may call it and who may not.
struct Case<'a> {
    address: String,
    service: &'a str,
    method: &'a str,
    message: Vec<u8>,
    may: &'a Client,
    may_not: &'a Client,
}

async fn holds(case: &Case<'_>) {
    let proper = format!("/{}/{}", case.service, case.method);
    let handled = case.may.call(&case.address, &proper, &case.message).await;
    assert!(!refused(&handled), "the proper path {proper} reaches its handler: {handled}");
    assert_eq!(case.may_not.call(&case.address, &proper, &case.message).await, PERMISSION_DENIED, "{proper}");
    for path in nearly(case.service, case.method) {
        for client in [case.may, case.may_not] {
            let status = client.call(&case.address, &path, &case.message).await;
            assert!(refused(&status), "{path}: {status}");
        }
    }
    for path in [&proper[1..], "", "\\exequatur", " /x", case.service] {
        for client in [case.may, case.may_not] {
            let answer = client.raw(&case.address, path, &case.message).await;
            assert_eq!(answer, RESET, "a `:path` of `{path}`");
        }
    }
    // HTTP/2 itself takes `*`; it is no method either.
    assert_eq!(case.may.raw(&case.address, "*", &case.message).await, STATUS);
    let expected = if handled == OK { ANSWER } else { STATUS };
    assert_eq!(case.may.raw(&case.address, &proper, &case.message).await, expected, "{proper}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_path_is_a_method() {
    exequatur_identity::install_crypto();
    let plane = tokio::task::spawn_blocking(Plane::start).await.unwrap();
    let ready = plane.ready();
    let (operator, reviewer) = (Client::of(&ready, "operator"), Client::of(&ready, "reviewer"));

    // Something is waiting that a wrong path must not decide.
    let (_, token) = plane.run_token(&["sms.send"]);
    let plan = json!({"context": "c", "idempotency_key": "paths", "actions":
        [{"tool": "sms.send", "arguments": {"to": "+15550160", "body": "Hello"}, "rationale": "r"}]});
    let plan = plane.propose(&token, &plan, &[]).json["plan"].as_str().unwrap().to_owned();
    let approval = plane.approval_of(&plan);

    // DecideRequest with the approval's id and a yes, without what was shown.
    let yes = [&[0x0a, u8::try_from(approval.len()).unwrap()][..], approval.as_bytes(), &[0x22, 0]].concat();
    let inbox = "exequatur.approval.v1.InboxService";
    let (governance, approvals) = (ready.endpoint("governance"), ready.endpoint("approval"));
    for (address, service, method, message, may, may_not) in [
        (&approvals, inbox, "Decide", yes.clone(), &reviewer, &operator),
        (&approvals, inbox, "ListApprovals", Vec::new(), &reviewer, &operator),
        (
            &governance,
            "exequatur.run.v1.RunService",
            "ListRuns",
            [&[0x0a, 4][..], b"demo"].concat(),
            &operator,
            &reviewer,
        ),
    ] {
        holds(&Case { address: address.clone(), service, method, message, may, may_not }).await;
    }
    // A method of one zone is none of another's.
    for path in [format!("/{inbox}/Decide"), format!("//{inbox}/Decide")] {
        for client in [&operator, &reviewer] {
            let status = client.call(&governance, &path, &yes).await;
            assert!(refused(&status), "{path} at governance: {status}");
        }
    }

    // Nothing was decided, and the proper way still decides.
    assert_eq!(plane.plan(&token, &plan)["actions"][0]["state"], "AWAITING_APPROVAL");
    assert_eq!(reviewer.call(&approvals, &format!("/{inbox}/ListApprovals"), &[]).await, OK);
    assert_eq!(plane.cli(&["inbox", "approve", &approval]).code, 0);
    let done = plane.until(&token, &plan, 0, &["SUCCEEDED", "FAILED", "IN_DOUBT"]);
    assert_eq!(done["actions"][0]["state"], "SUCCEEDED");
    tokio::task::spawn_blocking(move || drop(plane)).await.unwrap();
}
