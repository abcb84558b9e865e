//! Attack rows S17, S21 and S22 as bytes on the wire, through a running plane with a run token: what two
//! readers could read differently is refused with its path, and what means the same has the same digest.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may stop at once")]

use std::time::Duration;

use bytes::{Buf, BufMut};
use exequatur_fault::{Fault, Reason};
use exequatur_identity::{Tls, TlsFiles, channel};
use exequatur_proto::plan::v1::{Action, ProposePlanResponse};
use exequatur_testkit::Plane;
use prost::Message as _;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};

const REALM: &str = "dev.exequatur";
const PROPOSE: &str = "/exequatur.plan.v1.PlanService/ProposePlan";
const DECIDE: &str = "/exequatur.approval.v1.InboxService/Decide";

/// Bytes in, bytes out: nothing is put right on the way.
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

struct Wire {
    plane: Plane,
    agent: Tls,
    reviewer: Tls,
    token: String,
}

impl Wire {
    fn start() -> Self {
        exequatur_identity::install_crypto();
        let plane = Plane::start();
        let ready = plane.ready();
        let ca = ready.path("/ca");
        let files = TlsFiles {
            certificate: ready.path("/reviewer/cert"),
            key: ready.path("/reviewer/key"),
            ca: ca.clone(),
        };
        let (_, file) = plane.run_token(&["crm.read", "data.store", "files.delete"]);
        Self {
            agent: Tls::anonymous(&ca, REALM).unwrap(),
            reviewer: Tls::load(&files, REALM).unwrap(),
            token: std::fs::read_to_string(file).unwrap(),
            plane,
        }
    }

    async fn call(
        &self,
        tls: &Tls,
        zone: &str,
        path: &'static str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Status> {
        let expect = format!("spiffe://{REALM}/zone/{zone}").parse().unwrap();
        let mut client = tonic::client::Grpc::new(channel(tls, &self.plane.ready().endpoint(zone), expect));
        client.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
        let mut request = Request::new(body);
        request.set_timeout(Duration::from_secs(20));
        if tls.own_id().is_none() {
            request.metadata_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        }
        client.unary(request, path.parse().unwrap(), Raw).await.map(tonic::Response::into_inner)
    }

    async fn propose(&self, body: Vec<u8>) -> Result<Action, Status> {
        let answer = self.call(&self.agent, "governance", PROPOSE, body).await?;
        let plan = ProposePlanResponse::decode(answer.as_slice()).unwrap().plan.unwrap();
        Ok(plan.actions.into_iter().next().unwrap())
    }

    /// Refused as a request that is none, at this path; and no plan came of it.
    async fn refused(&self, body: Vec<u8>, path: &str) {
        let before = self.plans();
        let status = self.propose(body).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{path}: {status:?}");
        let fault = Fault::from_status(&status);
        assert_eq!(fault.reason(), Reason::InvalidRequest, "{path}");
        assert_eq!(fault.metadata().get("field").map(String::as_str), Some(path), "{fault}");
        assert_eq!(self.plans(), before, "{path}: nothing was recorded");
    }

    /// Plans on governance's own record.
    fn plans(&self) -> u64 {
        let file = self.plane.folder().join("evidence.jsonl");
        assert_eq!(self.plane.cli(&["ledger", "export", "--out", file.to_str().unwrap()]).code, 0);
        let text = std::fs::read_to_string(file).unwrap();
        text.lines()
            .filter(|l| l.contains("\"kind\":\"plan_header\"") && l.contains("\"governance\""))
            .count() as u64
    }
}

/// A length-delimited field.
fn field(tag: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut out);
    out
}

fn flag(tag: u32) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bool::encode(tag, &true, &mut out);
    out
}

/// `ProposePlanRequest` of these calls, as parts in wire order; duplicates are allowed.
fn parts(key: &str, call: &[u8]) -> [Vec<u8>; 4] {
    [field(1, b"wire"), field(2, key.as_bytes()), flag(5), field(6, call)]
}

fn call(tool: &str, arguments: &str) -> Vec<u8> {
    [field(1, tool.as_bytes()), field(2, arguments.as_bytes()), field(3, b"because")].concat()
}

fn digests(action: &Action) -> [&[u8]; 4] {
    [&action.digest, &action.effect_digest, &action.wire_digest, &action.frozen]
}

/// A tool that takes any data, pinned to the demo's own provider.
fn store_any_data(plane: &Plane) {
    let read = std::fs::read_to_string(plane.data().join("tenant/crm.read.yaml")).unwrap();
    let url = read.lines().find(|l| l.trim_start().starts_with("url:")).unwrap();
    let text = format!(
        "tool: data.store\nsummary: Stores data\neffect: write\nreversible: true\nrisk: low\n\
         attestation: auto\ninput_schema: {{properties: {{data: {{}}}}, required: [data]}}\nhttp:\n  method: POST\n\
         {url}\n  path: /data\n  json: {{$arg: \"\"}}\n\
         credentials:\n  - {{name: crm-token, as: bearer, attestation: auto}}\n"
    );
    let file = plane.folder().join("data.store.yaml");
    std::fs::write(&file, text).unwrap();
    let applied = plane.cli(&["tool", "apply", file.to_str().unwrap()]);
    assert_eq!(applied.code, 0, "{} {}", applied.stdout, applied.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_meaning_or_none() {
    let wire = tokio::task::spawn_blocking(Wire::start).await.unwrap();
    store_any_data(&wire.plane);
    order(&wire).await;
    unknown(&wire).await;
    repeated(&wire).await;
    keys(&wire).await;
    tokio::task::spawn_blocking(move || drop(wire)).await.unwrap();
}

/// S21: the order of fields and of members changes no digest; another value does.
async fn order(wire: &Wire) {
    let first = call("data.store", r#"{"data":{"a":1,"b":{"x":true,"y":null}}}"#);
    let one = wire.propose(parts("order-1", &first).concat()).await.unwrap();
    assert!(!one.digest.is_empty() && !one.frozen.is_empty());
    let [tool, arguments, rationale] = [
        field(1, b"data.store"),
        field(2, r#"{"data":{"b":{"y":null,"x":true},"a":1}}"#.as_bytes()),
        field(3, b"because"),
    ];
    let mut reversed = parts("order-2", &[rationale, arguments, tool].concat());
    reversed.reverse();
    let two = wire.propose(reversed.concat()).await.unwrap();
    assert_eq!(digests(&one), digests(&two));
    let other = call("data.store", r#"{"data":{"a":1,"b":{"x":true,"y":false}}}"#);
    let three = wire.propose(parts("order-3", &other).concat()).await.unwrap();
    assert_ne!(one.digest, three.digest);
    assert_ne!(one.wire_digest, three.wire_digest);
}

/// S21: a field that nobody published is refused, wherever it stands.
async fn unknown(wire: &Wire) {
    let harmless = call("crm.read", r#"{"id":"117"}"#);
    for (key, body, path) in [
        ("u-1", [parts("u-1", &harmless).concat(), field(9999, b"x")].concat(), "9999"),
        ("u-2", [field(9999, b"x"), parts("u-2", &harmless).concat()].concat(), "9999"),
        ("u-3", parts("u-3", &[harmless.clone(), field(9999, b"x")].concat()).concat(), "actions.9999"),
    ] {
        wire.refused(body, path).await;
        // The same without it is taken under the same key: nothing was kept of the refused one.
        let taken = wire.propose(parts(key, &harmless).concat()).await.unwrap();
        assert_eq!(taken.tool, "crm.read");
    }
}

/// S22: no component sees the first and another the second.
async fn repeated(wire: &Wire) {
    let harmless = call("crm.read", r#"{"id":"117"}"#);
    let twice = [field(1, b"crm.read"), field(1, b"files.delete"), field(2, br#"{"path":"/x"}"#)].concat();
    wire.refused(parts("r-1", &twice).concat(), "actions.tool").await;
    let twice = [harmless.clone(), field(2, br#"{"id":"118"}"#)].concat();
    wire.refused(parts("r-2", &twice).concat(), "actions.arguments_json").await;
    // Twice the same is twice.
    let twice = [harmless.clone(), field(1, b"crm.read")].concat();
    wire.refused(parts("r-3", &twice).concat(), "actions.tool").await;
    wire.refused([parts("r-4", &harmless).concat(), field(2, b"r-5")].concat(), "idempotency_key").await;
    wire.refused([parts("r-4", &harmless).concat(), flag(5)].concat(), "allow_duplicate").await;
    let taken = wire.propose(parts("r-4", &harmless).concat()).await.unwrap();
    assert_eq!(taken.tool, "crm.read");

    // A oneof: yes and no at once is neither.
    let head = [field(1, b"no-such-approval"), field(2, &[7; 32])].concat();
    let reject = field(5, &field(1, b"no"));
    for (name, both) in [
        ("yes, no", [head.clone(), field(4, b""), reject.clone()].concat()),
        ("no, yes", [head.clone(), reject.clone(), field(4, b"")].concat()),
        ("yes, yes", [head.clone(), field(4, b""), field(4, b"")].concat()),
    ] {
        let status = wire.call(&wire.reviewer, "approval", DECIDE, both).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{name}: {status:?}");
        let fault = Fault::from_status(&status);
        let path = fault.metadata().get("field").cloned().unwrap_or_default();
        assert!(["approve", "reject"].contains(&path.as_str()), "{name}: {fault}");
    }
    // One answer alone is read, and reaches the question which approval it means.
    let alone = [head, field(4, b"")].concat();
    let status = wire.call(&wire.reviewer, "approval", DECIDE, alone).await.unwrap_err();
    let path = Fault::from_status(&status).metadata().get("field").cloned().unwrap_or_default();
    assert!(!["approve", "reject"].contains(&path.as_str()), "{status:?}");
}

/// S17: names ascend by their UTF-8 bytes, where UTF-16 would have them the other way round.
async fn keys(wire: &Wire) {
    let (private, deseret) = ("\u{e000}", "\u{10400}");
    let both = |first: &str, second: &str| {
        call("data.store", &format!("{{\"data\":{{\"{first}\":\"v\",\"{second}\":\"v\"}}}}"))
    };
    let one = wire.propose(parts("k-1", &both(private, deseret)).concat()).await.unwrap();
    let two = wire.propose(parts("k-2", &both(deseret, private)).concat()).await.unwrap();
    let escaped = wire.propose(parts("k-3", &both("\\ud801\\udc00", "\\ue000")).concat()).await.unwrap();
    assert_eq!(digests(&one), digests(&two));
    assert_eq!(digests(&one), digests(&escaped));
    let at = |name: &str| {
        let bytes = name.as_bytes();
        one.frozen.windows(bytes.len()).position(|w| w == bytes).unwrap()
    };
    assert!(at(private) < at(deseret), "EE 80 80 stands before F0 90 90 80");
    // One of the names alone is something else.
    let alone = call("data.store", &format!("{{\"data\":{{\"{private}\":\"v\"}}}}"));
    let alone = wire.propose(parts("k-4", &alone).concat()).await.unwrap();
    assert_ne!(one.digest, alone.digest);
}
