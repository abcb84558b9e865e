//! Approval's use cases over a real database and real signatures. The other zones' words are signed
//! with their real keys; only the wire between is left out.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exequatur_approval::app::{App, Zones};
use exequatur_approval::store::{MIGRATIONS, Sqlite};
use exequatur_canonical::{FrozenAction, FrozenPlan, PlanHeader, Timestamp, freeze_action, freeze_plan};
use exequatur_clock::{Clock, ManualClock, UnixMillis};
use exequatur_fault::Fault;
use exequatur_ledger::Ledger;
use exequatur_pki::{Kind, Pki};
use exequatur_prepare::{Definition, Prepared, prepare};
use exequatur_proto::approval::v1::decide_request::Answer;
use exequatur_proto::approval::v1::{
    Approval, Approve, DecideRequest, ItemState, OpenAction, OpenApprovalRequest, Reject, ReserveRequest,
    ShownAction, WithdrawApprovalRequest,
};
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::ledger::v1::{LogEntry, Refusal, log_entry};
use exequatur_proto::statement::v1::{DecisionKind, Envelope, Header, Outcome, OutcomeKind, Warrant};
use exequatur_service::{Caller, CallerKind, Tenants};
use exequatur_statement::{SigningKey, Statement as _, Trust, sign, sign_bytes};
use exequatur_store::Store;
use prost::Message as _;

pub const REALM: &str = "dev.exequatur";
pub const TENANT: &str = "t-green";
pub const WINDOW: Duration = Duration::from_secs(60);
pub const WAIT: Duration = Duration::from_secs(3600);

const SEND: &str = "
tool: sms.send
summary: Send a text
effect: write
reversible: true
risk: medium
input_schema:
  properties:
    to: {type: string}
    text: {type: string}
  required: [to, text]
http: {method: POST, url: \"http://127.0.0.1:9001\", path: /sms, json: {to: {$arg: to}, text: {$arg: text}}}
";

/// The zone and the keys of the others.
pub struct Bench {
    pub app: Arc<App>,
    pub store: Store,
    pub ledger: Ledger,
    pub time: ManualClock,
    pub pki: tempfile::TempDir,
    pub definition: Definition,
    pub signed_definition: Envelope,
}

/// A plan with all that governance would hand over.
pub struct Plan {
    pub frozen: FrozenPlan,
    pub actions: Vec<FrozenAction>,
    pub prepared: Vec<Prepared>,
    pub request: OpenApprovalRequest,
}

fn zone(name: &str) -> String {
    format!("spiffe://{REALM}/zone/{name}")
}

pub fn person(name: &str) -> String {
    format!("spiffe://{REALM}/person/{name}")
}

fn system() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

pub fn caller(kind: CallerKind, name: &str, tenants: Tenants) -> Caller {
    Caller { kind, id: person(name), tenants, run: None, certificate_digest: Some([7; 32]) }
}

pub fn reviewer(name: &str) -> Caller {
    caller(CallerKind::Reviewer, name, Tenants::Only(vec![TENANT.to_owned()]))
}

pub fn operator() -> Caller {
    caller(CallerKind::Operator, "olga", Tenants::All)
}

impl Bench {
    /// A zone in which `rita` reviews.
    pub async fn start() -> Self {
        let bench = Self::without_reviewer().await;
        bench.app.put_reviewer(&operator(), TENANT, &person("rita")).await.unwrap();
        bench
    }

    pub async fn without_reviewer() -> Self {
        let pki = tempfile::tempdir().unwrap();
        let made = Pki::init(pki.path(), REALM).unwrap();
        made.issue(Kind::Operator, "olga", &["*".to_owned()], &pki.path().join("olga")).unwrap();
        made.issue(Kind::Operator, "bert", &["t-blue".to_owned()], &pki.path().join("bert")).unwrap();
        let trust = Trust::load(&pki.path().join("bundle.json"), &pki.path().join("root.pub")).unwrap();
        let (clock, time) = Clock::manual(UnixMillis(system()));
        let store = Store::open_with(&pki.path().join("zone.db"), &MIGRATIONS, |_| clock).await.unwrap();
        exequatur_ledger::schema(&store).await.unwrap();
        let ledger = Ledger::new(zone("approval"), key(pki.path(), "approval", "ledger"));
        let app = Arc::new(App::new(
            store.clone(),
            Arc::new(Sqlite::new(store.clone())),
            ledger.clone(),
            trust,
            key(pki.path(), "approval", "decision"),
            key(pki.path(), "approval", "reservation"),
            Zones::of(REALM),
        ));
        let definition = exequatur_definition_file::read(SEND).unwrap();
        let signed_definition = sign_definition(pki.path(), "olga", &definition);
        Self { app, store, ledger, time, pki, definition, signed_definition }
    }

    pub fn now(&self) -> UnixMillis {
        self.store.clock().now().unwrap()
    }

    /// Signs the demo's definition as another operator.
    pub fn definition_by(&self, operator: &str) -> Envelope {
        sign_definition(self.pki.path(), operator, &self.definition)
    }

    pub fn key(&self, zone: &str, purpose: &str) -> Arc<SigningKey> {
        key(self.pki.path(), zone, purpose)
    }

    pub fn plan(&self, texts: &[&str], change: impl FnOnce(&mut PlanHeader)) -> Plan {
        let digest = self.definition.digest();
        let actions: Vec<_> = texts
            .iter()
            .map(|text| {
                let arguments = format!("{{\"to\":\"+15550100\",\"text\":\"{text}\"}}");
                freeze_action("sms.send", arguments.as_bytes(), "because", Some(digest.as_bytes())).unwrap()
            })
            .collect();
        let prepared: Vec<_> = actions.iter().map(|a| prepare(&self.definition, a).unwrap()).collect();
        let mut header = PlanHeader {
            tenant: TENANT.to_owned(),
            run: "run-1".to_owned(),
            agent: "mailer".to_owned(),
            plan: uuid::Uuid::now_v7().to_string(),
            proposed_at: Timestamp { seconds: self.now().0 / 1000, nanos: 0 },
            context: "a test".to_owned(),
            action_digests: actions.iter().map(FrozenAction::digest).collect(),
            realm: REALM.to_owned(),
            owner: person("olga"),
            ..PlanHeader::default()
        };
        change(&mut header);
        let frozen = freeze_plan(header).unwrap();
        let request = OpenApprovalRequest {
            header: frozen.bytes().to_vec(),
            actions: (0..)
                .zip(&actions)
                .zip(&prepared)
                .map(|((index, action), prepared)| OpenAction {
                    index,
                    action: action.bytes().to_vec(),
                    definition: Some(self.signed_definition.clone()),
                    wire_digest: prepared.wire_digest().to_vec(),
                    held: true,
                    rule: "sends".to_owned(),
                    state: "AWAITING_APPROVAL".to_owned(),
                })
                .collect(),
            rule_set_digest: vec![9; 32],
            expires_at: Some(self.now().saturating_add(WAIT).to_proto()),
            window_s: WINDOW.as_secs(),
            quorum: 1,
        };
        Plan { frozen, actions, prepared, request }
    }

    /// Opened, and its id.
    pub async fn opened(&self, texts: &[&str]) -> (Plan, String) {
        self.opened_with(texts, |_| ()).await
    }

    pub async fn opened_with(&self, texts: &[&str], change: impl FnOnce(&mut PlanHeader)) -> (Plan, String) {
        let plan = self.plan(texts, change);
        let opened = self.app.open(&plan.request).await.unwrap();
        (plan, opened.approval)
    }

    /// Opened with one action, and approved by `rita`.
    pub async fn approved(&self) -> Plan {
        let (plan, approval) = self.opened(&["Hello"]).await;
        self.app.decide(&reviewer("rita"), &plan.yes(&approval, &[])).await.unwrap();
        plan
    }

    pub fn warrant(&self, plan: &Plan, index: u32, attempt: u32) -> Envelope {
        self.warrant_with(plan, index, attempt, |_| ())
    }

    pub fn warrant_with(
        &self,
        plan: &Plan,
        index: u32,
        attempt: u32,
        change: impl FnOnce(&mut Warrant),
    ) -> Envelope {
        let at = usize::try_from(index).unwrap();
        let ends = self.now().saturating_add(Duration::from_secs(15)).to_proto();
        let mut warrant = Warrant {
            header: Some(self.header("governance", "connector", Duration::from_secs(15))),
            plan_digest: plan.frozen.digest().to_vec(),
            index,
            action_digest: plan.actions[at].digest().to_vec(),
            tool_digest: self.definition.digest().to_vec(),
            wire_digest: plan.prepared[at].wire_digest().to_vec(),
            decision_kind: DecisionKind::Person.into(),
            attempt,
            start_by: Some(ends),
            rule_set_digest: vec![9; 32],
            run: "run-1".to_owned(),
            ..Warrant::default()
        };
        change(&mut warrant);
        sign(&self.key("governance", "warrant"), &warrant).unwrap()
    }

    pub fn outcome(&self, plan: &Plan, index: u32, attempt: u32, kind: OutcomeKind) -> Envelope {
        self.outcome_with(plan, index, attempt, kind, |_| ())
    }

    pub fn outcome_with(
        &self,
        plan: &Plan,
        index: u32,
        attempt: u32,
        kind: OutcomeKind,
        change: impl FnOnce(&mut Outcome),
    ) -> Envelope {
        let at = usize::try_from(index).unwrap();
        let mut outcome = Outcome {
            header: Some(self.header("connector", "governance", WAIT)),
            plan_digest: plan.frozen.digest().to_vec(),
            index,
            action_digest: plan.actions[at].digest().to_vec(),
            wire_digest: plan.prepared[at].wire_digest().to_vec(),
            attempt,
            kind: kind.into(),
            ..Outcome::default()
        };
        change(&mut outcome);
        sign(&self.key("connector", "outcome"), &outcome).unwrap()
    }

    fn header(&self, issuer: &str, audience: &str, life: Duration) -> Header {
        Header {
            issuer: zone(issuer),
            audience: zone(audience),
            tenant: TENANT.to_owned(),
            id: uuid::Uuid::now_v7().to_string(),
            issued_at: Some(self.now().to_proto()),
            expires_at: Some(self.now().saturating_add(life).to_proto()),
        }
    }

    pub async fn reserve(&self, plan: &Plan, attempt: u32) -> Result<Envelope, Fault> {
        let previous_abort = (attempt > 1).then(|| self.outcome(plan, 0, attempt - 1, OutcomeKind::Aborted));
        let request =
            ReserveRequest { warrant: Some(self.warrant(plan, 0, attempt)), attempt, previous_abort };
        self.app.reserve(&request).await
    }

    pub async fn withdraw(&self, plan: &Plan, reason: &str) -> (ItemState, String) {
        let request = WithdrawApprovalRequest {
            tenant: TENANT.to_owned(),
            plan_digest: plan.frozen.digest().to_vec(),
            indexes: vec![0],
            reason: reason.to_owned(),
        };
        let items = self.app.withdraw(&request).await.unwrap();
        (items[0].state(), items[0].reason.clone())
    }

    /// The first item's state, as the last event tells it.
    pub async fn state(&self, approval: &Approval) -> ItemState {
        approval.actions[0].state()
    }

    /// The states of all items, as a reviewer sees them.
    pub async fn states(&self, approval: &str) -> Vec<ItemState> {
        let seen = self.app.get(&reviewer("rita"), approval).await.unwrap();
        seen.actions.iter().map(exequatur_proto::approval::v1::ApprovalAction::state).collect()
    }

    /// Changes the database behind the zone's back.
    pub async fn sql(&self, statement: &'static str) -> u64 {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.pki.path().join("zone.db"));
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        let changed = sqlx::query(statement).execute(&pool).await.unwrap().rows_affected();
        pool.close().await;
        changed
    }

    /// Bodies of a log.
    pub async fn log(&self, tenant: &str) -> Vec<log_entry::Body> {
        let mut bodies = Vec::new();
        let mut next = 0;
        while let Some(envelope) = self.ledger.entry(&self.store, tenant, next).await.unwrap() {
            bodies.push(LogEntry::decode(envelope.payload.as_slice()).unwrap().body.unwrap());
            next += 1;
        }
        bodies
    }

    /// `from event to` of every transition in the log.
    pub async fn transitions(&self) -> Vec<String> {
        let told = |body: log_entry::Body| match body {
            log_entry::Body::Transition(t) => Some(format!("{} {} {}", t.from, t.event, t.to)),
            _ => None,
        };
        self.log(TENANT).await.into_iter().filter_map(told).collect()
    }

    pub async fn refusals(&self, tenant: &str) -> Vec<Refusal> {
        let told = |body: log_entry::Body| match body {
            log_entry::Body::Refusal(refusal) => Some(refusal),
            _ => None,
        };
        self.log(tenant).await.into_iter().filter_map(told).collect()
    }
}

impl Plan {
    /// What a reviewer's client computes from the bytes that it showed.
    pub fn shown(&self) -> Vec<ShownAction> {
        (0..)
            .zip(&self.actions)
            .zip(&self.prepared)
            .map(|((index, action), prepared)| ShownAction {
                index,
                action_digest: action.digest().to_vec(),
                wire_digest: prepared.wire_digest().to_vec(),
            })
            .collect()
    }

    fn answer(&self, approval: &str, answer: Answer) -> DecideRequest {
        DecideRequest {
            approval: approval.to_owned(),
            plan_digest: self.frozen.digest().to_vec(),
            shown: self.shown(),
            answer: Some(answer),
        }
    }

    pub fn yes(&self, approval: &str, indexes: &[u32]) -> DecideRequest {
        self.answer(approval, Answer::Approve(Approve { indexes: indexes.to_vec() }))
    }

    pub fn no(&self, approval: &str, reason: &str) -> DecideRequest {
        self.answer(approval, Answer::Reject(Reject { reason: reason.to_owned() }))
    }
}

fn key(pki: &Path, zone: &str, name: &str) -> Arc<SigningKey> {
    Arc::new(
        SigningKey::load(&pki.join("zones").join(zone).join("keys").join(format!("{name}.key"))).unwrap(),
    )
}

fn sign_definition(pki: &Path, operator: &str, definition: &Definition) -> Envelope {
    let key = SigningKey::load(&pki.join(operator).join("definition.key")).unwrap();
    sign_bytes(&key, ToolDefinition::TYPE, definition.bytes().to_vec())
}

/// The reason of a refusal.
pub fn reason<T: std::fmt::Debug>(result: Result<T, Fault>) -> &'static str {
    result.unwrap_err().reason_str()
}
