//! Governance in one process over a real database and real signatures; only its two peers are
//! played, over gRPC, with their real keys.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exequatur_approval_client::approval_service_client::ApprovalServiceClient;
use exequatur_clock::{Clock, ManualClock, UnixMillis};
use exequatur_execution_client::execution_service_client::ExecutionServiceClient;
use exequatur_fault::Fault;
use exequatur_governance::app::{App, Minted, Proposal, Start, Zones};
use exequatur_governance::store::{MIGRATIONS, PlanRow, Sqlite};
use exequatur_ledger::{Ledger, outbox};
use exequatur_lifecycle::Action as State;
use exequatur_pki::{Kind, Pki};
use exequatur_proto::ledger::v1::{LogEntry, log_entry};
use exequatur_proto::plan::v1::{ProposePlanRequest, ToolCall};
use exequatur_proto::statement::v1::Envelope;
use exequatur_service::{Caller, CallerKind, RunClaims, Tenants};
use exequatur_statement::{SigningKey, Statement as _, Trust, sign_bytes};
use exequatur_store::Store;
use prost::Message as _;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};

mod peers;
pub use peers::{Approval, Connector, Play};

pub const REALM: &str = "dev.exequatur";
pub const TENANT: &str = "t-green";
pub const OPERATOR: &str = "spiffe://dev.exequatur/person/olga";

pub const READ: &str = "
tool: crm.read
summary: Read one contact
effect: read
reversible: true
risk: low
attestation: auto
input_schema:
  properties:
    id: {type: [string, integer]}
    limit: {type: integer, default: 10}
  required: [id]
http: {method: GET, url: \"http://127.0.0.1:9001\", path: \"/contacts/{id}\"}
";

pub const SEND: &str = "
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

pub const DELETE: &str = "
tool: files.delete
summary: Delete a file
effect: write
reversible: true
risk: high
input_schema:
  properties:
    path: {type: string}
  required: [path]
http: {method: DELETE, url: \"http://127.0.0.1:9001\", path: \"/files/{path}\"}
";

pub const RULES: &str = "
mode: enforce
default: deny
rules:
  - {id: reads, tool: crm.read, action: auto_approve}
  - {id: sends, tool: \"*.send\", action: require_human}
  - {id: nothing-deleted, tool: \"files.*\", action: deny}
";

/// The zone and everything around it.
pub struct Bench {
    pub app: Arc<App>,
    pub connector: Connector,
    pub approval: Approval,
    pub time: ManualClock,
    pub pki: Arc<tempfile::TempDir>,
    pub database: std::path::PathBuf,
    stop: watch::Sender<bool>,
    /// Runs the zone's background work; ended as a process is, at whatever it was doing.
    world: Option<Runtime>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.kill();
    }
}

fn key(pki: &Path, zone: &str, name: &str) -> Arc<SigningKey> {
    Arc::new(
        SigningKey::load(&pki.join("zones").join(zone).join("keys").join(format!("{name}.key"))).unwrap(),
    )
}

fn system() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

pub fn zones() -> Zones {
    let zone = |name: &str| format!("spiffe://{REALM}/zone/{name}");
    Zones {
        realm: REALM.to_owned(),
        own: zone("governance"),
        approval: zone("approval"),
        connector: zone("connector"),
    }
}

impl Bench {
    /// A fresh zone with the demo's tools and rules, and its background work under way.
    pub async fn start() -> Self {
        Self::serving(None).await
    }

    /// The same, serving these tenants only.
    pub async fn serving(tenants: Option<&[&str]>) -> Self {
        let tenants = tenants.map(|all| all.iter().map(|t| (*t).to_owned()).collect());
        let pki = Arc::new(tempfile::tempdir().unwrap());
        let made = Pki::init(pki.path(), REALM).unwrap();
        made.issue(Kind::Operator, "olga", &["*".to_owned()], &pki.path().join("olga")).unwrap();
        let connector = Connector::new(key(pki.path(), "connector", "outcome"));
        let approval = Approval::new(key(pki.path(), "approval", "decision"));
        let bench = Self::over(pki, connector, approval, system(), tenants).await;
        for tool in [READ, SEND, DELETE] {
            bench.apply_tool(tool).await;
        }
        bench.rules(RULES).await;
        bench
    }

    /// Ends the zone as a process ends.
    pub fn kill(&mut self) {
        if let Some(world) = self.world.take() {
            world.shutdown_background();
        }
        self.stop.send_replace(true);
    }

    /// The zone again, over the same database and the same peers.
    pub async fn restart(&mut self) {
        self.kill();
        let at = self.app.store.clock().now().unwrap().0;
        let tenants = self.app.tenants.clone();
        let (connector, approval) = (self.connector.clone(), self.approval.clone());
        *self = Self::over(Arc::clone(&self.pki), connector, approval, at, tenants).await;
    }

    async fn over(
        pki: Arc<tempfile::TempDir>,
        connector: Connector,
        approval: Approval,
        at: i64,
        tenants: Option<BTreeSet<String>>,
    ) -> Self {
        let trust = Trust::load(&pki.path().join("bundle.json"), &pki.path().join("root.pub")).unwrap();
        let (clock, time) = Clock::manual(UnixMillis(at));
        let database = pki.path().join("zone.db");
        let store = Store::open_with(&database, &MIGRATIONS, |_| clock).await.unwrap();
        exequatur_ledger::schema(&store).await.unwrap();
        let ledger = Ledger::new(zones().own, key(pki.path(), "governance", "ledger"));
        ledger.verify_own(&store).await.unwrap();
        let app = Arc::new(App {
            store: store.clone(),
            rows: Arc::new(Sqlite),
            ledger,
            trust,
            token_key: key(pki.path(), "governance", "run-token"),
            warrant_key: key(pki.path(), "governance", "warrant"),
            approval: ApprovalServiceClient::new(approval.serve().await),
            connector: ExecutionServiceClient::new(connector.serve().await),
            zones: zones(),
            tenants,
            outbox: Arc::new(Notify::new()),
            work: Arc::new(Notify::new()),
            changed: watch::Sender::new(()),
            busy: Mutex::new(HashSet::new()),
        });
        let (stop, stopped) = watch::channel(false);
        let deliver = Arc::clone(&app);
        let world =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        world.spawn(outbox::run(store, Arc::clone(&app.outbox), stopped.clone(), move |message| {
            let app = Arc::clone(&deliver);
            async move { app.deliver(message).await }
        }));
        world.spawn(Arc::clone(&app).follow_approvals(stopped.clone()));
        world.spawn(Arc::clone(&app).dispatch(stopped));
        Self { app, connector, approval, time, pki, database, stop, world: Some(world) }
    }

    pub fn definition(&self, yaml: &str) -> Envelope {
        let definition = exequatur_definition_file::read(yaml).unwrap();
        let key = SigningKey::load(&self.pki.path().join("olga/definition.key")).unwrap();
        sign_bytes(&key, exequatur_proto::definition::v1::ToolDefinition::TYPE, definition.bytes().to_vec())
    }

    pub async fn apply_tool(&self, yaml: &str) {
        self.app.apply_tool(OPERATOR, TENANT, Some(&self.definition(yaml))).await.unwrap();
    }

    pub async fn rules(&self, yaml: &str) {
        let set = exequatur_policy::file::read(yaml).unwrap();
        self.app.apply_rule_set(OPERATOR, TENANT, set.bytes()).await.unwrap();
    }

    /// A run with all demo tools in scope.
    pub async fn run(&self) -> Agent<'_> {
        self.run_with("k-run", &["crm.*", "sms.send", "files.*"]).await
    }

    pub async fn run_with(&self, key: &str, scopes: &[&str]) -> Agent<'_> {
        let minted = self.app.start_run(&operator(), start(key, scopes)).await.unwrap();
        Agent { bench: self, caller: agent(&minted), minted }
    }

    pub async fn sql(&self, statement: &'static str) -> u64 {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&self.database);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        let changed = sqlx::query(statement).execute(&pool).await.unwrap().rows_affected();
        pool.close().await;
        changed
    }

    /// Bodies of all entries of the tenant's log.
    pub async fn log(&self) -> Vec<log_entry::Body> {
        let mut bodies = Vec::new();
        let mut next = 0;
        while let Some(envelope) = self.app.ledger.entry(&self.app.store, TENANT, next).await.unwrap() {
            bodies.push(LogEntry::decode(envelope.payload.as_slice()).unwrap().body.unwrap());
            next += 1;
        }
        bodies
    }

    /// Waits until the plan's actions are in these states.
    pub async fn until(&self, plan: &str, states: &[State]) -> PlanRow {
        let mut seen = Vec::new();
        for _ in 0..200 {
            let now = self.app.plan(&operator(), TENANT, plan).await.unwrap();
            seen = now.actions.iter().map(|a| (a.state, a.reason.clone())).collect();
            if now.actions.iter().map(|a| a.state).eq(states.iter().copied()) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            // Pauses between questions pass with the zone's own clock.
            self.time.advance(Duration::from_millis(50));
        }
        panic!("the plan is {seen:?} and should be {states:?}");
    }
}

pub fn operator() -> Caller {
    Caller {
        kind: CallerKind::Operator,
        id: OPERATOR.to_owned(),
        tenants: Tenants::All,
        run: None,
        certificate_digest: Some([0; 32]),
    }
}

pub fn start(key: &str, scopes: &[&str]) -> Start {
    Start {
        tenant: TENANT.to_owned(),
        agent: "mailer".to_owned(),
        scopes: scopes.iter().map(|s| (*s).to_owned()).collect(),
        ttl: None,
        token_ttl: None,
        owner: String::new(),
        idempotency_key: key.to_owned(),
        body: exequatur_canonical::Digest::sha256(format!("{key}{scopes:?}").as_bytes()),
    }
}

pub fn agent(minted: &Minted) -> Caller {
    let run = &minted.run;
    Caller {
        kind: CallerKind::RunToken,
        id: format!("agent/{}", run.agent),
        tenants: Tenants::Only(vec![run.tenant.clone()]),
        run: Some(RunClaims {
            run: run.run.clone(),
            tenant: run.tenant.clone(),
            agent: run.agent.clone(),
            scopes: run.scopes.clone(),
            expires_at_s: minted.expires_at.0 / 1000,
            token: String::new(),
        }),
        certificate_digest: None,
    }
}

/// An agent with its run.
pub struct Agent<'a> {
    pub bench: &'a Bench,
    pub caller: Caller,
    pub minted: Minted,
}

impl Agent<'_> {
    pub async fn propose(&self, key: &str, calls: &[(&str, &str)]) -> Result<Proposal, Fault> {
        self.bench.app.propose(&self.caller, &request(key, calls)).await
    }

    pub async fn plan(&self, key: &str, calls: &[(&str, &str)]) -> PlanRow {
        self.propose(key, calls).await.unwrap().plan
    }
}

pub fn request(key: &str, calls: &[(&str, &str)]) -> ProposePlanRequest {
    ProposePlanRequest {
        idempotency_key: key.to_owned(),
        allow_partial: true,
        actions: calls
            .iter()
            .map(|(tool, arguments)| ToolCall {
                tool: (*tool).to_owned(),
                arguments_json: arguments.as_bytes().to_vec(),
                rationale: String::new(),
            })
            .collect(),
        ..ProposePlanRequest::default()
    }
}

pub type Outcomes = HashMap<(Vec<u8>, u32), Envelope>;
pub type Script = VecDeque<Play>;
