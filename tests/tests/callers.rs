//! Every method × every kind of caller, over real mutual TLS against real zones. What is expected
//! stands in a file kept by hand, not in the descriptors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Buf, BufMut};
use exequatur_fault::{Fault, Reason};
use exequatur_identity::{SpiffeId, Tls, TlsFiles, channel};
use exequatur_pki::{LeafSpec, issue_leaf};
use exequatur_proto::POOL;
use exequatur_testkit::Plane;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Value};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Bytes in, bytes out: the test knows no message.
#[derive(Default, Clone)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn encode(&mut self, item: Vec<u8>, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buf.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(buf.copy_to_bytes(buf.remaining()).to_vec()))
    }
}

struct Row {
    method: String,
    zones: Vec<&'static str>,
    expected: BTreeMap<String, String>,
}

fn zones_of(method: &str) -> Vec<&'static str> {
    let all = vec!["governance", "approval", "credential-vault", "connector"];
    match method.split('.').next().unwrap() {
        "run" | "plan" | "tool" | "policy" => vec!["governance"],
        "approval" => vec!["approval"],
        "credential" => vec!["credential-vault"],
        "execution" | "sealing" => vec!["connector"],
        _ => all,
    }
}

fn rows() -> Vec<Row> {
    let text = include_str!("../golden/caller-matrix.tsv");
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names: Vec<_> = lines.next().unwrap().split('\t').skip(1).map(ToOwned::to_owned).collect();
    lines
        .map(|line| {
            let mut cells = line.split('\t');
            let method = cells.next().unwrap().to_owned();
            let expected: BTreeMap<_, _> = names.iter().cloned().zip(cells.map(ToOwned::to_owned)).collect();
            assert_eq!(expected.len(), names.len(), "{method} has a cell per caller");
            Row { zones: zones_of(&method), method, expected }
        })
        .collect()
}

#[test]
fn every_method_has_a_row_and_every_row_a_method() {
    let methods: BTreeSet<String> = POOL
        .services()
        .flat_map(|s| {
            let name = s.full_name().trim_start_matches("exequatur.").to_owned();
            s.methods().map(|m| format!("{name}/{}", m.name())).collect::<Vec<_>>()
        })
        .collect();
    let rows: BTreeSet<String> = rows().into_iter().map(|r| r.method).collect();
    assert_eq!(methods, rows, "write the row of each method into tests/golden/caller-matrix.tsv, by hand");
}

struct Callers {
    plane: Plane,
    tls: BTreeMap<String, Tls>,
    token: String,
}

impl Callers {
    fn new() -> Self {
        exequatur_identity::install_crypto();
        let plane = Plane::start();
        let ready = plane.ready();
        let pki = plane.data().join("pki");
        let issue = |kind: &str, name: &str, tenant: &str| {
            let out = plane.folder().join(name);
            let out_text = out.to_str().unwrap();
            let issued = plane.cli(&["pki", "issue", kind, name, "--tenant", tenant, "--out", out_text]);
            assert_eq!(issued.code, 0, "{}", issued.stderr);
            out
        };
        let internal = issue("internal", "rostering", "demo");
        let other = issue("operator", "olga", "t-other");
        let foreign = plane.folder().join("foreign");
        let spec = LeafSpec {
            common_name: "governance".into(),
            ..LeafSpec::client("spiffe://other.example/zone/governance")
        };
        issue_leaf(&pki, &foreign, &spec).unwrap();

        let ca = ready.path("/ca");
        let of = |folder: &Path| tls(&folder.join("tls.crt"), &folder.join("tls.key"), &ca, "dev.exequatur");
        let mut tls = BTreeMap::new();
        for (column, zone) in [
            ("governance", "governance"),
            ("approval", "approval"),
            ("vault", "credential-vault"),
            ("connector", "connector"),
        ] {
            tls.insert(column.to_owned(), of(&pki.join("zones").join(zone)));
        }
        for (column, pointer) in [("operator", "/operator"), ("reviewer", "/reviewer")] {
            let path = |part: &str| ready.path(&format!("{pointer}/{part}"));
            tls.insert(column.to_owned(), self::tls(&path("cert"), &path("key"), &ca, "dev.exequatur"));
        }
        tls.insert("internal".to_owned(), of(&internal));
        tls.insert("op2".to_owned(), of(&other));
        tls.insert(
            "other-domain".to_owned(),
            self::tls(&foreign.join("tls.crt"), &foreign.join("tls.key"), &ca, "other.example"),
        );
        let anonymous = Tls::anonymous(&ca, "dev.exequatur").unwrap();
        tls.insert("token".to_owned(), anonymous.clone());
        tls.insert("none".to_owned(), anonymous);
        let (_, file) = plane.run_token(&["crm.read"]);
        let token = std::fs::read_to_string(file).unwrap();
        // Zones look at the trust bundle once a second.
        std::thread::sleep(Duration::from_millis(2500));
        Self { plane, tls, token }
    }

    fn channel(&self, column: &str, zone: &str) -> Channel {
        let expect: SpiffeId = format!("spiffe://dev.exequatur/zone/{zone}").parse().unwrap();
        channel(&self.tls[column], &self.plane.ready().endpoint(zone), expect)
    }

    async fn call(&self, column: &str, zone: &str, method: &str) -> Result<(), Status> {
        let path = format!("/exequatur.{method}");
        let (service, name) = method.split_once('/').unwrap();
        let service = POOL.get_service_by_name(&format!("exequatur.{service}")).unwrap();
        let descriptor = service.methods().find(|m| m.name() == name).unwrap();
        let mut message = DynamicMessage::new(descriptor.input());
        // A run token brings its tenant.
        if column != "token" && descriptor.input().get_field_by_name("tenant").is_some() {
            message.set_field_by_name("tenant", Value::String("demo".into()));
        }
        let mut client = tonic::client::Grpc::new(self.channel(column, zone));
        client.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
        let mut request = Request::new(message.encode_to_vec());
        request.set_timeout(Duration::from_secs(3));
        if column == "token" {
            request.metadata_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        }
        let path = path.parse().unwrap();
        let mut answers = client.server_streaming(request, path, Raw).await?.into_inner();
        // A stream that waits for events has let the caller through.
        match tokio::time::timeout(Duration::from_millis(300), answers.message()).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Ok(()),
        }
    }
}

fn tls(cert: &Path, key: &Path, ca: &Path, realm: &str) -> Tls {
    let files = TlsFiles { certificate: PathBuf::from(cert), key: PathBuf::from(key), ca: PathBuf::from(ca) };
    Tls::load(&files, realm).unwrap()
}

fn letter(result: &Result<(), Status>) -> &'static str {
    let Err(status) = result else { return "+" };
    let fault = Fault::from_status(status);
    // Only what the plane itself said carries its domain.
    let ours = tonic_types::StatusExt::get_error_details(status).error_info().is_some();
    match fault.reason() {
        Reason::CallerNotAllowed if ours => "-",
        Reason::TenantNotAllowed if ours => "T",
        Reason::Unauthenticated | Reason::TokenInvalid if ours => "U",
        _ if ours => "+",
        _ => "x",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_matrix_holds() {
    let callers = tokio::task::spawn_blocking(Callers::new).await.unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for row in rows() {
        for (column, expected) in &row.expected {
            for zone in &row.zones {
                // `*`: depends on whether the zone takes anonymous clients; never let through.
                let found = letter(&callers.call(column, zone, &row.method).await);
                let fits = match expected.as_str() {
                    "*" => matches!(found, "U" | "x"),
                    // Refused by TLS, or as a peer of no realm of ours.
                    "x" => matches!(found, "x" | "U" | "-"),
                    other => found == other,
                };
                checked += 1;
                if !fits {
                    wrong.push(format!(
                        "{} at {zone} as {column}: expected {expected}, got {found}",
                        row.method
                    ));
                }
            }
        }
    }
    assert!(checked > 400, "the matrix was walked");
    assert!(wrong.is_empty(), "{} of {checked} differ:\n{}", wrong.len(), wrong.join("\n"));
    tokio::task::spawn_blocking(move || drop(callers)).await.unwrap();
}

/// S42: health is for any peer and tells nothing; reflection is for operators; nothing for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection_keep_to_their_callers() {
    let callers = tokio::task::spawn_blocking(Callers::new).await.unwrap();
    for zone in ["governance", "approval", "credential-vault", "connector"] {
        for (column, health, reflection) in
            [("operator", "+", "+"), ("connector", "+", "-"), ("reviewer", "+", "-"), ("internal", "+", "-")]
        {
            let call = |path: &'static str| {
                let callers = &callers;
                async move {
                    let mut client = tonic::client::Grpc::new(callers.channel(column, zone));
                    client.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
                    let mut request = Request::new(Vec::new());
                    request.set_timeout(Duration::from_secs(3));
                    client.server_streaming(request, path.parse().unwrap(), Raw).await.map(drop)
                }
            };
            assert_eq!(letter(&call("/grpc.health.v1.Health/Check").await), health, "{zone} {column}");
            let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
            assert_eq!(letter(&call(path).await), reflection, "{zone} {column}");
        }
        let mut client = tonic::client::Grpc::new(callers.channel("none", zone));
        let nobody = match client.ready().await {
            Err(error) => Err(Status::unavailable(error.to_string())),
            Ok(()) => {
                let path = "/grpc.health.v1.Health/Check".parse().unwrap();
                client.server_streaming(Request::new(Vec::new()), path, Raw).await.map(drop)
            }
        };
        assert!(matches!(letter(&nobody), "U" | "x"), "{zone}: {nobody:?}");
    }
    tokio::task::spawn_blocking(move || drop(callers)).await.unwrap();
}
