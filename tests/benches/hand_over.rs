//! What a credential adds to an action, by hand-over and reuse, against the calls that it cannot do without:
//! the bare calls of Vault, one hop between zones and one durable commit, all measured in this run.
//!
//! One connection acts as governance and has the connector execute reads of the demo's CRM that differ in
//! their credential only. Modes and floors are interleaved; a figure is the median over rounds of medians.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a benchmark may stop at once, and prints"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use exequatur_proto::statement::v1::{Envelope, OutcomeKind};
use exequatur_store::{Store, migrations};
use exequatur_vault::setup::Operator;
use exequatur_vault::{Client, Paths, SecretPath, Token, engine, scoped_policy};
use serde_json::json;
use support::{Order, Taken};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const SCOPED_POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/vault/policies/scoped-kv2.hcl");
/// Word, and how the credential is put; `None`: the action has none.
const MODES: [(&str, Option<&[&str]>); 5] = [
    ("none", None),
    ("wrapped", Some(&["--hand-over", "wrapped"])),
    ("scoped", Some(&["--hand-over", "scoped"])),
    ("per-run", Some(&["--hand-over", "wrapped", "--kv-version", "1", "--reuse", "per-run"])),
    ("until-expiry", Some(&["--hand-over", "wrapped", "--kv-version", "1", "--reuse", "until-expiry"])),
];
const GOAL: f64 = 1.5;
/// Between two measured calls.
const QUIET: Duration = Duration::from_millis(20);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

struct Bench {
    taken: Taken,
    run: Order,
    connector: Channel,
    health: Channel,
    asker: Client,
    opener: Client,
    store: Store,
    definitions: BTreeMap<&'static str, Envelope>,
    _folder: tempfile::TempDir,
}

fn path_of(credential: &str) -> SecretPath {
    Paths::default().of(engine("kv2").unwrap(), "demo", credential).unwrap()
}

impl Bench {
    fn start() -> Self {
        let taken = Taken::start_with(&["--vault", "openbao"]);
        let (plane, folder) = (&taken.plane, tempfile::tempdir().unwrap());
        let ready = plane.ready();
        let config = |extra: serde_json::Value| {
            let mut all = json!({
                "address": ready.text("/vault/address"), "ca": ready.text("/vault/ca"), "timeout_ms": 20000,
            });
            all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let _inside = taken.runtime.enter();
        let root = std::fs::read_to_string(ready.text("/vault/root_token_file")).unwrap();
        let operator = Operator::new(config(json!({})), Some(Token::new(root).unwrap())).unwrap();
        let call = |arguments: &[&str]| assert_eq!(plane.cli(arguments).code, 0, "{arguments:?}");
        let text = std::fs::read_to_string(plane.data().join("tenant/crm.read.yaml")).unwrap();
        // The CRM answers 401 to all of them alike, so that they differ in how they got their token only.
        let text = format!("{text}statuses: {{401: succeeded}}\n");
        let token = json!({"data": {"value": "unknown-to-the-provider"}});
        for (mode, put) in MODES {
            let (tool, credential) = (format!("bench.{mode}"), format!("bench-{mode}"));
            // The place of the credential stays, so that requests differ in nothing else.
            let own = text.replace("crm.read", &tool).replace("crm-token", &credential);
            let own = if put.is_some() { own } else { without_credentials(&own) };
            let file = folder.path().join(format!("{tool}.yaml"));
            std::fs::write(&file, own).unwrap();
            call(&["tool", "apply", file.to_str().unwrap()]);
            if let Some(put) = put {
                let at = format!("secret/data/demo/{credential}");
                taken.runtime.block_on(operator.write(&at, &token)).unwrap();
                let policy = scoped_policy("demo", &credential).unwrap();
                let values = [("TENANT", "demo"), ("CREDENTIAL", credential.as_str())];
                let file = Path::new(SCOPED_POLICY);
                taken.runtime.block_on(operator.policy(&policy, file, &values)).unwrap();
                call(&[["credential", "put", &credential, "--vault", "kv2"].as_slice(), put].concat());
            }
        }
        let plan = taken.sms("+15550199");
        taken.hold(&[&plan]);
        let role = "auth/approle/role/credential-vault/role-id";
        let role_id = taken.runtime.block_on(operator.read(role)).unwrap()["data"]["role_id"].clone();
        let secret_id = plane.data().join("vault/secret-id");
        let auth = json!({"auth": {"method": "approle", "role_id": role_id, "secret_id_file": secret_id}});
        let opener = json!({"local_address": "127.0.0.2"});
        let schema = migrations(&[(1, "bench", "CREATE TABLE bench (id INTEGER PRIMARY KEY, body BLOB)")]);
        let store = taken.runtime.block_on(Store::open(&folder.path().join("floor.db"), &schema)).unwrap();
        Self {
            run: taken.order(&plan),
            connector: taken.channel("governance", "connector"),
            health: taken.channel("connector", "credential-vault"),
            asker: Client::new(config(auth)).unwrap(),
            opener: Client::new(config(opener)).unwrap(),
            store,
            definitions: MODES.iter().map(|m| (m.0, taken.definition(&format!("bench.{}", m.0)))).collect(),
            _folder: folder,
            taken,
        }
    }

    /// Milliseconds of one action.
    fn action(&self, mode: &str) -> f64 {
        let order = self.taken.read_with(&self.definitions[mode], &self.run);
        let request = self.taken.execute_request(&order);
        let (outcome, ms) = self.timed(self.taken.execute_on(self.connector.clone(), request));
        let outcome = outcome.unwrap();
        assert_eq!((outcome.kind(), outcome.provider_status), (OutcomeKind::Succeeded, 401), "{mode}");
        ms
    }

    fn hop(&self) -> f64 {
        let mut client = HealthClient::new(self.health.clone());
        self.timed(async move { client.check(HealthCheckRequest::default()).await.unwrap() }).1
    }

    fn commit(&self) -> f64 {
        let write = async {
            let mut tx = self.store.begin().await.unwrap();
            sqlx::query("INSERT INTO bench (body) VALUES (?)")
                .bind(vec![7_u8; 512])
                .execute(&mut *tx)
                .await
                .unwrap();
            tx.commit().await.unwrap();
        };
        self.timed(write).1
    }

    fn wrap(&self) -> f64 {
        let path = path_of("bench-wrapped");
        let calls = async {
            let wrapped = self.asker.read_wrapped(&path, None, 30).await.unwrap();
            self.opener.unwrap(&wrapped.token, &path, "value").await.unwrap()
        };
        self.timed(calls).1
    }

    fn scope(&self) -> f64 {
        let (path, policy) = (path_of("bench-scoped"), scoped_policy("demo", "bench-scoped").unwrap());
        let calls = async {
            let minted = self.asker.mint_scoped("exequatur-scoped", &policy, 40).await.unwrap();
            self.opener.read_with(&minted.token, &path, None, "value").await.unwrap()
        };
        self.timed(calls).1
    }

    fn timed<T>(&self, work: impl Future<Output = T>) -> (T, f64) {
        self.taken.runtime.block_on(async {
            // What the call before left to be done in the background is done.
            tokio::time::sleep(QUIET).await;
            let start = Instant::now();
            let result = work.await;
            (result, start.elapsed().as_secs_f64() * 1e3)
        })
    }

    /// Requests in Vault's audit log so far.
    fn vault_calls(&self) -> usize {
        let log = std::fs::read_to_string(self.taken.plane.ready().text("/vault/audit_log")).unwrap();
        log.lines()
            .filter(|line| line.contains("\"type\":\"request\"") && !line.contains("renew-self"))
            .count()
    }
}

fn without_credentials(text: &str) -> String {
    let (before, rest) = text.split_once("credentials:").unwrap();
    let (_, after) = rest.split_once("timeout:").unwrap();
    format!("{before}timeout:{after}")
}

fn main() {
    let (rounds, actions) = (setting("ROUNDS", 7), setting("ACTIONS", 20));
    let bench = Bench::start();
    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    // A round to warm up, and to open what the reuse modes keep open.
    for round in 0..=rounds {
        let mut samples: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for _ in 0..actions {
            for (mode, _) in MODES {
                samples.entry(mode).or_default().push(bench.action(mode));
            }
            for (floor, ms) in [
                ("hop", bench.hop()),
                ("commit", bench.commit()),
                ("vault: wrap, look up, unwrap", bench.wrap()),
                ("vault: mint, read", bench.scope()),
            ] {
                samples.entry(floor).or_default().push(ms);
            }
        }
        if round > 0 {
            for (name, of) in samples {
                figures.entry(name).or_default().push(median(of));
            }
        }
    }
    let before = bench.vault_calls();
    for mode in ["per-run", "until-expiry"] {
        for _ in 0..actions {
            bench.action(mode);
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    let calls = bench.vault_calls() - before;

    let figure = |name: &str| median(figures[name].clone());
    println!("{rounds} rounds of {actions} actions; milliseconds, medians");
    for name in figures.keys() {
        println!("  {name:<30} {:8.3}", figure(name));
    }
    let step = figure("hop") + figure("commit");
    println!("{:<14} {:>9} {:>9} {:>6}  goal", "mode", "added", "floor", "ratio");
    let mut reached = calls == 0;
    for (mode, vault) in [
        ("wrapped", figure("vault: wrap, look up, unwrap")),
        ("scoped", figure("vault: mint, read")),
        ("per-run", 0.0),
        ("until-expiry", 0.0),
    ] {
        let rounds = figures[mode].iter().zip(&figures["none"]);
        let added = median(rounds.map(|(with, without)| with - without).collect());
        let (floor, ratio) = (vault + step, added / (vault + step));
        println!("{mode:<14} {added:>9.3} {floor:>9.3} {ratio:>6.2}  {GOAL}");
        reached &= ratio <= GOAL;
    }
    println!("calls of Vault for {} repeated actions with reuse: {calls}", 2 * actions);
    println!("{}", if reached { "every goal is reached" } else { "NOT every goal is reached" });
}
