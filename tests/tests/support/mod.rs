//! A plane of real processes of which the test has taken zones over: it reads their files, presents
//! their certificates and signs with their keys. Governance's own process is held back meanwhile.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use exequatur_canonical::{FrozenPlan, freeze_action, freeze_plan, verify_action, verify_plan};
use exequatur_clock::UnixMillis;
use exequatur_execution_client::execution_service_client::ExecutionServiceClient;
use exequatur_fault::Fault;
use exequatur_identity::{SpiffeId, Tls, TlsFiles, channel};
use exequatur_lease_client::lease_service_client::LeaseServiceClient;
use exequatur_prepare::{Definition, prepare};
use exequatur_proto::approval::v1::ReserveRequest;
use exequatur_proto::credential::v1::{LeaseRequest, LeaseResponse};
use exequatur_proto::execution::v1::ExecuteRequest;
use exequatur_proto::execution::v1::execute_response::Event;
use exequatur_proto::ledger::v1::LogEntry;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::{DecisionKind, Envelope, Header, Outcome, Warrant};
use exequatur_reservation_client::reservation_service_client::ReservationServiceClient;
use exequatur_statement::{Expect, SigningKey, Statement, Trust, sign_bytes};
use exequatur_testkit::Plane;
use nix::sys::signal::Signal;
use prost::Message as _;
use serde_json::{Value as Json, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions as _, Row as _};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

const REALM: &str = "dev.exequatur";

/// SPIFFE ID of a zone.
pub fn id(zone: &str) -> String {
    format!("spiffe://{REALM}/zone/{zone}")
}

/// All that governance says about one action, each part open to change before it is signed.
#[derive(Clone)]
pub struct Order {
    pub header: Vec<u8>,
    pub action: Vec<u8>,
    pub definition: Envelope,
    pub decision: Option<Envelope>,
    pub warrant: Warrant,
    /// Zone and name of the key that signs the warrant.
    pub signer: (&'static str, &'static str),
}

impl Order {
    pub fn plan(&self) -> FrozenPlan {
        verify_plan(&self.header).unwrap()
    }

    /// Other arguments for the same tool; nothing else is changed.
    pub fn alter_action(&mut self, arguments: &Json) {
        let action = verify_action(&self.action).unwrap().action().clone();
        let pin = action.tool_digest.map(|digest| digest.to_vec());
        let text = arguments.to_string();
        let other = freeze_action(&action.tool, text.as_bytes(), &action.rationale, pin.as_deref()).unwrap();
        self.action = other.bytes().to_vec();
    }

    /// A header of the same run that lists the action.
    pub fn rewrite_header(&mut self) {
        let mut header = self.plan().header().clone();
        header.action_digests = vec![verify_action(&self.action).unwrap().digest()];
        self.header = freeze_plan(header).unwrap().bytes().to_vec();
    }

    /// A fresh warrant whose every digest is that of the bytes.
    pub fn fit_warrant(&mut self, kind: DecisionKind, journal: String) {
        let (plan, action) = (self.plan(), verify_action(&self.action).unwrap());
        let definition = Definition::verify(&self.definition.payload).unwrap();
        let now = now();
        let start_by = now.saturating_add(Duration::from_secs(15));
        self.warrant = Warrant {
            header: Some(Header {
                issuer: id("governance"),
                audience: id("connector"),
                tenant: plan.header().tenant.clone(),
                id: uuid::Uuid::now_v7().to_string(),
                issued_at: Some(now.to_proto()),
                expires_at: Some(now.saturating_add(Duration::from_secs(55)).to_proto()),
            }),
            plan_digest: plan.digest().to_vec(),
            index: 0,
            action_digest: action.digest().to_vec(),
            tool_digest: definition.digest().to_vec(),
            wire_digest: prepare(&definition, &action).unwrap().wire_digest().to_vec(),
            credentials: definition.credentials().iter().map(|c| c.credential.clone()).collect(),
            decision_kind: kind.into(),
            attempt: 1,
            start_by: Some(start_by.to_proto()),
            journal,
            rule_set_digest: vec![7; 32],
            run: plan.header().run.clone(),
            previous_abort: Vec::new(),
        };
    }
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixMillis(i64::try_from(since.as_millis()).unwrap())
}

/// The plane and what was taken of it.
pub struct Taken {
    pub plane: Plane,
    pub trust: Trust,
    token: PathBuf,
    pub runtime: Runtime,
}

impl Taken {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further arguments of `dev`.
    pub fn start_with(more: &[&str]) -> Self {
        exequatur_identity::install_crypto();
        let plane = Plane::start_with(more);
        let ready = plane.ready();
        let trust = Trust::load(&ready.path("/bundle"), &ready.path("/root_key")).unwrap();
        let (_, token) = plane.run_token(&["crm.read", "sms.send"]);
        Self { plane, trust, token, runtime: Runtime::new().unwrap() }
    }

    /// Proposes a text message and gives its plan, which waits for a person.
    pub fn sms(&self, to: &str) -> String {
        let plan = json!({"context": "c", "idempotency_key": to, "actions":
            [{"tool": "sms.send", "arguments": {"to": to, "body": "Hello"}, "rationale": "r"}]});
        let answer = self.plane.propose(&self.token, &plan, &[]);
        let id =
            answer.json["plan"].as_str().unwrap_or_else(|| panic!("{} {}", answer.stdout, answer.stderr));
        id.to_owned()
    }

    /// Holds governance's process back, then a person approves the plans.
    pub fn hold(&self, plans: &[&str]) {
        let approvals: Vec<_> = plans.iter().map(|plan| self.plane.approval_of(plan)).collect();
        self.plane.signal("governance", Signal::SIGSTOP);
        for approval in approvals {
            let decided = self.plane.cli(&["inbox", "approve", &approval]);
            assert_eq!(decided.code, 0, "{} {}", decided.stdout, decided.stderr);
        }
    }

    /// Governance's own process goes on.
    pub fn let_go(&self) {
        self.plane.signal("governance", Signal::SIGCONT);
    }

    pub fn until(&self, plan: &str, states: &[&str]) -> Json {
        self.plane.until(&self.token, plan, 0, states)["actions"][0].clone()
    }

    /// Text messages to a number that the provider saw.
    pub fn sent(&self, to: &str) -> usize {
        use base64::Engine as _;
        let of = self.plane.providers().of("sms");
        let body = |request: &Json| {
            let raw = request["body_b64"].as_str().unwrap_or_default();
            String::from_utf8(base64::engine::general_purpose::STANDARD.decode(raw).unwrap()).unwrap()
        };
        of.iter().filter(|request| body(request).contains(to.trim_start_matches('+'))).count()
    }

    /// The true order for the one action of a plan, from the disks of governance and approval.
    pub fn order(&self, plan: &str) -> Order {
        let sql =
            "SELECT p.header, a.action, a.definition FROM plan p JOIN action a USING (plan) WHERE plan = ?";
        let row = self.rows("governance", sql, plan).pop().unwrap();
        let header: Vec<u8> = row.get(0);
        let digest = verify_plan(&header).unwrap().digest().to_string();
        let sql = "SELECT decision FROM approval WHERE lower(hex(plan_digest)) = ?";
        let decision: Option<Vec<u8>> = self.rows("approval", sql, &digest).pop().unwrap().get(0);
        self.fresh(Order {
            header,
            action: row.get(1),
            definition: Envelope::decode(row.get::<Vec<u8>, _>(2).as_slice()).unwrap(),
            decision: decision.map(|bytes| Envelope::decode(bytes.as_slice()).unwrap()),
            warrant: Warrant::default(),
            signer: ("governance", "warrant"),
        })
    }

    /// The same order with a fresh warrant.
    pub fn fresh(&self, mut order: Order) -> Order {
        let kind = if order.decision.is_some() { DecisionKind::Person } else { DecisionKind::Rule };
        order.fit_warrant(kind, self.trust.journal());
        order
    }

    /// A read that nobody proposed, in the run of another order; its tool needs no person.
    pub fn read_contact(&self, run: &Order) -> Order {
        self.read_with(&self.definition("crm.read"), run)
    }

    /// A tool's definition in force.
    pub fn definition(&self, tool: &str) -> Envelope {
        let sql = "SELECT definition FROM tool WHERE tool = ?";
        let stored: Vec<u8> = self.rows("governance", sql, tool)[0].get(0);
        Envelope::decode(stored.as_slice()).unwrap()
    }

    /// The same by a tool like `crm.read`.
    pub fn read_with(&self, definition: &Envelope, run: &Order) -> Order {
        let definition = definition.clone();
        let known = Definition::verify(&definition.payload).unwrap();
        let digest = known.digest();
        let action = freeze_action(known.tool(), br#"{"id":"117"}"#, "r", Some(digest.as_bytes())).unwrap();
        let mut header = run.plan().header().clone();
        header.plan = uuid::Uuid::now_v7().to_string();
        header.action_digests = vec![action.digest()];
        self.fresh(Order {
            header: freeze_plan(header).unwrap().bytes().to_vec(),
            action: action.bytes().to_vec(),
            definition,
            decision: None,
            ..run.clone()
        })
    }

    /// A key of a zone.
    pub fn key(&self, zone: &str, name: &str) -> SigningKey {
        let keys = self.plane.data().join("pki/zones").join(zone).join("keys");
        SigningKey::load(&keys.join(format!("{name}.key"))).unwrap()
    }

    /// Issues another operator and gives the key that signs their definitions.
    pub fn operator(&self, name: &str, tenant: &str) -> SigningKey {
        let out = self.plane.folder().join(name);
        let text = out.to_str().unwrap();
        let issued = self.plane.cli(&["pki", "issue", "operator", name, "--tenant", tenant, "--out", text]);
        assert_eq!(issued.code, 0, "{}", issued.stderr);
        SigningKey::load(&out.join("definition.key")).unwrap()
    }

    /// The warrant as it stands, signed by the order's key.
    pub fn warrant(&self, order: &Order) -> Envelope {
        sign_bytes(&self.key(order.signer.0, order.signer.1), Warrant::TYPE, order.warrant.encode_to_vec())
    }

    /// Asks the connector as governance.
    pub fn execute(&self, order: &Order) -> Result<Outcome, Fault> {
        let request = self.execute_request(order);
        let channel = self.runtime.block_on(async { self.channel("governance", "connector") });
        self.runtime.block_on(self.execute_on(channel, request))
    }

    /// What governance asks.
    pub fn execute_request(&self, order: &Order) -> ExecuteRequest {
        ExecuteRequest {
            header: order.header.clone(),
            index: order.warrant.index,
            action: order.action.clone(),
            definition: Some(order.definition.clone()),
            warrant: Some(self.warrant(order)),
            decision: order.decision.clone(),
        }
    }

    /// Asks over a connection that is there.
    pub async fn execute_on(&self, channel: Channel, request: ExecuteRequest) -> Result<Outcome, Fault> {
        let mut client = ExecutionServiceClient::new(channel);
        let mut answers = client.execute(request).await.map_err(|s| Fault::from_status(&s))?.into_inner();
        while let Some(answer) = answers.message().await.map_err(|s| Fault::from_status(&s))? {
            if let Some(Event::Finished(finished)) = answer.event {
                let connector = id("connector");
                let expect = Expect {
                    issuer: Some(&connector),
                    audience: None,
                    tenant: None,
                    now: now().0,
                    check_expiry: false,
                };
                return Ok(self.trust.verify(&finished.outcome.unwrap(), expect).unwrap().statement);
            }
        }
        panic!("the connector ended without an outcome")
    }

    /// Asks approval as the connector.
    pub fn reserve(&self, order: &Order) -> Result<Envelope, Fault> {
        let request = ReserveRequest {
            warrant: Some(self.warrant(order)),
            attempt: order.warrant.attempt,
            previous_abort: None,
        };
        self.runtime.block_on(async {
            let mut client = ReservationServiceClient::new(self.channel("connector", "approval"));
            let answer = client.reserve(request).await.map_err(|s| Fault::from_status(&s))?;
            Ok(answer.into_inner().reservation.unwrap())
        })
    }

    /// Asks credential-vault as a zone.
    pub fn lease(
        &self,
        zone: &str,
        order: &Order,
        reservation: Option<&Envelope>,
    ) -> Result<LeaseResponse, Fault> {
        let definition = Definition::verify(&order.definition.payload).unwrap();
        let request = LeaseRequest {
            credential: definition.credentials()[0].credential.clone(),
            header: order.header.clone(),
            index: order.warrant.index,
            action: order.action.clone(),
            definition: Some(order.definition.clone()),
            warrant: Some(self.warrant(order)),
            reservation: reservation.cloned(),
            held: Vec::new(),
        };
        self.runtime.block_on(async {
            let mut client = LeaseServiceClient::new(self.channel(zone, "credential-vault"));
            client.lease(request).await.map(tonic::Response::into_inner).map_err(|s| Fault::from_status(&s))
        })
    }

    /// A zone's connection to another, as that zone.
    pub fn channel(&self, from: &str, to: &str) -> Channel {
        let folder = self.plane.data().join("pki/zones").join(from);
        self.channel_with(folder.join("tls.crt"), folder.join("tls.key"), to)
    }

    /// The operator's connection to a zone.
    pub fn as_operator(&self, to: &str) -> Channel {
        let ready = self.plane.ready();
        self.channel_with(ready.path("/operator/cert"), ready.path("/operator/key"), to)
    }

    fn channel_with(&self, certificate: PathBuf, key: PathBuf, to: &str) -> Channel {
        let files = TlsFiles { certificate, key, ca: self.plane.ready().path("/ca") };
        let tls = Tls::load(&files, REALM).unwrap();
        channel(&tls, &self.plane.ready().endpoint(to), id(to).parse::<SpiffeId>().unwrap())
    }

    /// What a zone's own log says, of every tenant.
    pub fn log(&self, zone: &str) -> Vec<Body> {
        let rows = self.rows(zone, "SELECT envelope FROM log WHERE tenant <> ?", "");
        let body = |row: &SqliteRow| {
            let envelope = Envelope::decode(row.get::<Vec<u8>, _>(0).as_slice()).unwrap();
            LogEntry::decode(envelope.payload.as_slice()).unwrap().body.unwrap()
        };
        rows.iter().map(body).collect()
    }

    /// How many refusals of a caller for a reason a zone recorded.
    pub fn refusals(&self, zone: &str, caller: &str, reason: &str) -> usize {
        let fits = |body: &Body| match body {
            Body::Refusal(refusal) => refusal.caller == id(caller) && refusal.reason == reason,
            _ => false,
        };
        self.log(zone).iter().filter(|body| fits(body)).count()
    }

    /// Leases that credential-vault granted.
    pub fn granted(&self) -> usize {
        let fits = |body: &&Body| matches!(body, Body::Lease(lease) if lease.event == "granted");
        self.log("credential-vault").iter().filter(fits).count()
    }

    /// Attempts of a plan in the connector's journal.
    pub fn attempts(&self, order: &Order) -> Vec<i64> {
        let sql = "SELECT attempt FROM journal WHERE lower(hex(plan_digest)) = ?";
        self.rows("connector", sql, &order.plan().digest().to_string()).iter().map(|row| row.get(0)).collect()
    }

    fn rows(&self, zone: &str, sql: &'static str, key: &str) -> Vec<SqliteRow> {
        let file: &Path = &self.plane.data().join(zone).join("zone.db");
        let options = SqliteConnectOptions::new().filename(file).read_only(true);
        self.runtime.block_on(async {
            let mut connection = options.connect().await.unwrap();
            sqlx::query(sql).bind(key).fetch_all(&mut connection).await.unwrap()
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A process that is held back cannot stop cleanly.
        self.let_go();
    }
}
