//! credential-vault's use cases over a real database and real signatures. The other zones' words are
//! signed with their real keys; only the wire between is left out.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exequatur_canonical::{FrozenAction, FrozenPlan, PlanHeader, Timestamp, freeze_action, freeze_plan};
use exequatur_clock::{Clock, ManualClock, UnixMillis};
use exequatur_credential_vault::app::App;
use exequatur_credential_vault::store::{CatalogStore, MIGRATIONS, Sqlite};
use exequatur_fault::Fault;
use exequatur_ledger::Ledger;
use exequatur_pki::{Kind, Pki};
use exequatur_prepare::{Definition, Prepared, prepare};
use exequatur_proto::credential::v1::{LeaseRequest, SealContext, SealedValue};
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::ledger::v1::{LogEntry, log_entry};
use exequatur_proto::statement::v1::{DecisionKind, Envelope, Header, Reservation, Warrant};
use exequatur_proto::trust::v1::Purpose;
use exequatur_statement::{SigningKey, Statement as _, Trust, sign, sign_bytes};
use exequatur_store::Store;
use prost::Message as _;

pub const REALM: &str = "dev.exequatur";
pub const TENANT: &str = "t-green";
pub const OLGA: &str = "spiffe://dev.exequatur/person/olga";
pub const SECRET: &[u8] = b"k9$Zq/7+pLw==";

pub const SEND: &str = "
tool: sms.send
summary: Send a text
effect: write
reversible: true
risk: medium
input_schema:
  properties:
    to: {type: string}
  required: [to]
http: {method: POST, url: \"http://127.0.0.1:9001\", path: /sms, json: {to: {$arg: to}}}
credentials:
  - {name: sms-token, as: bearer}
";

pub const READ: &str = "
tool: crm.read
summary: Read one contact
effect: read
risk: low
attestation: auto
input_schema:
  properties:
    to: {type: string}
  required: [to]
http: {method: GET, url: \"http://127.0.0.1:9001\", path: \"/contacts/{to}\"}
credentials:
  - {name: crm-token, as: bearer, attestation: auto}
";

/// The zone and the keys of the others.
pub struct Bench {
    pub app: App,
    pub time: ManualClock,
    pub pki: tempfile::TempDir,
}

/// One action with all that goes with it.
pub struct Order {
    pub definition: Definition,
    pub signed: Envelope,
    pub plan: FrozenPlan,
    pub action: FrozenAction,
    pub prepared: Prepared,
    pub warrant: Warrant,
    pub reservation: Reservation,
}

fn zone(name: &str) -> String {
    format!("spiffe://{REALM}/zone/{name}")
}

fn key(pki: &Path, zone: &str, name: &str) -> SigningKey {
    SigningKey::load(&pki.join("zones").join(zone).join("keys").join(format!("{name}.key"))).unwrap()
}

fn system() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

impl Bench {
    /// A zone with both tools pinned and both credentials set.
    pub async fn start() -> Self {
        let bench = Self::empty().await;
        for tool in [SEND, READ] {
            let signed = bench.signed("olga", &exequatur_definition_file::read(tool).unwrap());
            bench.app.pin(OLGA, TENANT, Some(&signed)).await.unwrap();
        }
        for credential in ["sms-token", "crm-token"] {
            bench.put(credential, 1).await.unwrap();
        }
        bench
    }

    pub async fn empty() -> Self {
        let pki = tempfile::tempdir().unwrap();
        let made = Pki::init(pki.path(), REALM).unwrap();
        made.issue(Kind::Operator, "olga", &["*".to_owned()], &pki.path().join("olga")).unwrap();
        made.issue(Kind::Operator, "bert", &["t-blue".to_owned()], &pki.path().join("bert")).unwrap();
        made.issue(Kind::Operator, "omar", &[TENANT.to_owned()], &pki.path().join("omar")).unwrap();
        let trust = Trust::load(&pki.path().join("bundle.json"), &pki.path().join("root.pub")).unwrap();
        let (clock, time) = Clock::manual(UnixMillis(system()));
        let store = Store::open_with(&pki.path().join("zone.db"), &MIGRATIONS, |_| clock).await.unwrap();
        exequatur_ledger::schema(&store).await.unwrap();
        let catalog: Arc<dyn CatalogStore> = Arc::new(Sqlite);
        let ledger =
            Ledger::new(zone("credential-vault"), Arc::new(key(pki.path(), "credential-vault", "ledger")));
        let app = App { store, catalog, ledger, trust, vault: None, wake: Arc::default() };
        Self { app, time, pki }
    }

    pub fn now(&self) -> UnixMillis {
        self.app.store.clock().now().unwrap()
    }

    pub fn signed(&self, operator: &str, definition: &Definition) -> Envelope {
        let key = SigningKey::load(&self.pki.path().join(operator).join("definition.key")).unwrap();
        sign_bytes(&key, ToolDefinition::TYPE, definition.bytes().to_vec())
    }

    /// As the operator's CLI seals it: to the connector.
    pub fn sealed(&self, credential: &str, version: u64) -> SealedValue {
        let recipient = self.app.trust.key(&zone("connector"), Purpose::Seal, None).unwrap();
        let context = SealContext {
            realm: REALM.to_owned(),
            tenant: TENANT.to_owned(),
            credential: credential.to_owned(),
            version,
        };
        exequatur_seal::seal(&recipient, &context, SECRET).unwrap()
    }

    pub async fn put(&self, credential: &str, version: u64) -> Result<(), Fault> {
        let value = self.sealed(credential, version);
        self.app.put(OLGA, TENANT, credential, version, Some(&value), None).await
    }

    pub fn header(&self, issuer: &str, audience: &str) -> Header {
        Header {
            issuer: zone(issuer),
            audience: zone(audience),
            tenant: TENANT.to_owned(),
            id: uuid::Uuid::now_v7().to_string(),
            issued_at: Some(self.now().to_proto()),
            expires_at: Some(self.now().saturating_add(Duration::from_secs(15)).to_proto()),
        }
    }

    /// A fresh plan of one action of a tool, with a warrant and a reservation for attempt 1.
    pub fn order(&self, tool: &str) -> Order {
        let definition = exequatur_definition_file::read(tool).unwrap();
        let digest = definition.digest();
        let action =
            freeze_action(definition.tool(), b"{\"to\":\"15550100\"}", "because", Some(digest.as_bytes()))
                .unwrap();
        let prepared = prepare(&definition, &action).unwrap();
        let plan = freeze_plan(PlanHeader {
            tenant: TENANT.to_owned(),
            run: "run-1".to_owned(),
            agent: "mailer".to_owned(),
            plan: uuid::Uuid::now_v7().to_string(),
            proposed_at: Timestamp { seconds: self.now().0 / 1000, nanos: 0 },
            action_digests: vec![action.digest()],
            realm: REALM.to_owned(),
            owner: OLGA.to_owned(),
            ..PlanHeader::default()
        })
        .unwrap();
        let warrant = Warrant {
            header: Some(self.header("governance", "connector")),
            plan_digest: plan.digest().to_vec(),
            index: 0,
            action_digest: action.digest().to_vec(),
            tool_digest: digest.to_vec(),
            wire_digest: prepared.wire_digest().to_vec(),
            credentials: definition.credentials().iter().map(|c| c.credential.clone()).collect(),
            decision_kind: DecisionKind::Person.into(),
            attempt: 1,
            start_by: Some(self.now().saturating_add(Duration::from_secs(15)).to_proto()),
            run: "run-1".to_owned(),
            ..Warrant::default()
        };
        let reservation = Reservation {
            header: Some(self.header("approval", "credential-vault")),
            approval: uuid::Uuid::now_v7().to_string(),
            plan_digest: plan.digest().to_vec(),
            index: 0,
            action_digest: action.digest().to_vec(),
            wire_digest: prepared.wire_digest().to_vec(),
            warrant: warrant.header.as_ref().unwrap().id.clone(),
            attempt: 1,
        };
        let signed = self.signed("olga", &definition);
        Order { definition, signed, plan, action, prepared, warrant, reservation }
    }

    /// What the connector would send for an order.
    pub fn request(&self, order: &Order) -> LeaseRequest {
        LeaseRequest {
            held: Vec::new(),
            credential: order.definition.credentials()[0].credential.clone(),
            header: order.plan.bytes().to_vec(),
            index: 0,
            action: order.action.bytes().to_vec(),
            definition: Some(order.signed.clone()),
            warrant: Some(sign(&key(self.pki.path(), "governance", "warrant"), &order.warrant).unwrap()),
            reservation: Some(
                sign(&key(self.pki.path(), "approval", "reservation"), &order.reservation).unwrap(),
            ),
        }
    }

    /// Bodies of the tenant's log.
    pub async fn log(&self) -> Vec<log_entry::Body> {
        let mut bodies = Vec::new();
        let mut next = 0;
        while let Some(envelope) = self.app.ledger.entry(&self.app.store, TENANT, next).await.unwrap() {
            bodies.push(LogEntry::decode(envelope.payload.as_slice()).unwrap().body.unwrap());
            next += 1;
        }
        bodies
    }
}

/// The reason of a refusal.
pub fn reason<T: std::fmt::Debug>(result: Result<T, Fault>) -> &'static str {
    result.unwrap_err().reason_str()
}
