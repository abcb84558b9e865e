//! A real PostgreSQL server: what is refused before anything runs, what is rolled back, what nobody knows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use exequatur_dev_servers::{Postgres, ServerTls};
use exequatur_egress::postgres::{Answer, Open, destination, open};
use exequatur_egress::{Egress, Guard, Sent};
use exequatur_fault::{Fault, Reason};
use exequatur_proto::definition::v1::{PostgresParameter, PostgresRequest, PostgresSecurity};
use exequatur_secret::Secret;
use serde_json::{Value as Json, json};

const PASSWORD: &str = "throw-away";
const LIMIT: Duration = Duration::from_secs(5);

struct World {
    server: Postgres,
    root: tempfile::TempDir,
}

/// Shared by the tests that run at the same time; the last one stops the server.
fn world() -> Arc<World> {
    static SHARED: Mutex<Weak<World>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(World::new());
        *shared = Arc::downgrade(&fresh);
        fresh
    })
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let tls = ServerTls::make(root.path()).unwrap();
        let server = Postgres::start(PASSWORD, Some(&tls)).unwrap();
        let schema = "CREATE TABLE customer (id int PRIMARY KEY, name text, score numeric, seen timestamptz);
         CREATE TABLE child (id int REFERENCES customer (id) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO customer SELECT n, 'name ' || n, 1.5, now() FROM generate_series(1, 200) n;";
        server.sql(schema).unwrap();
        Self { server, root }
    }

    fn request(&self, statement: &str, values: &[Option<&str>]) -> PostgresRequest {
        PostgresRequest {
            host: "127.0.0.1".to_owned(),
            port: self.server.port().into(),
            security: PostgresSecurity::Tls.into(),
            database: "postgres".to_owned(),
            statement: statement.to_owned(),
            parameters: values
                .iter()
                .map(|v| PostgresParameter { null: v.is_none(), text: v.unwrap_or_default().to_owned() })
                .collect(),
            read_only: true,
            max_rows: 100,
            statement_timeout_ms: 1000,
        }
    }

    async fn opened(&self, request: &PostgresRequest, password: &str) -> Result<Open, Fault> {
        let address = format!("127.0.0.1:{}", request.port).parse().unwrap();
        let egress = Egress::new(Guard::new(vec![address]), &[self.root.path().join("ca.crt")]).unwrap();
        let link = egress.connect(&destination(request)?, LIMIT).await?;
        let secret = Secret::new(password.as_bytes().to_vec());
        open(link, request, Some(("postgres", &secret)), LIMIT).await
    }

    async fn sent(&self, request: &PostgresRequest) -> Sent<Answer> {
        self.opened(request, PASSWORD).await.unwrap().send(LIMIT, 16 * 1024).await
    }

    async fn result(&self, request: &PostgresRequest) -> Json {
        match self.sent(request).await {
            Sent::Answered(Answer::Committed(bytes)) => serde_json::from_slice(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn rolled_back(&self, request: &PostgresRequest) -> String {
        match self.sent(request).await {
            Sent::Answered(Answer::RolledBack(sqlstate)) => sqlstate,
            other => panic!("{other:?}"),
        }
    }

    fn count(&self, of: &str) -> String {
        self.server.sql(&format!("SELECT count(*) FROM {of}")).unwrap()
    }
}

#[tokio::test]
async fn a_result_is_typed_rows() {
    let world = world();
    let statement = "SELECT id, name, score::text, id > 1 AS big FROM customer WHERE id = $1 OR name = $2";
    let rows = world.result(&world.request(statement, &[Some("1"), None])).await;
    let wanted = json!({"row_count": 1, "rows": [{"id": 1, "name": "name 1", "score": "1.5", "big": false}]});
    assert_eq!(rows, wanted);
    let hostile =
        world.result(&world.request(statement, &[Some("7"), Some("x'; DROP TABLE customer; --")])).await;
    assert_eq!(hostile["rows"][0]["id"], 7);
    assert_eq!(world.count("customer WHERE id <= 200"), "200");
}

#[tokio::test]
async fn what_cannot_run_is_refused_before_it_does() {
    let world = world();
    let reason = |fault: Fault| (fault.reason(), fault.is_retryable());
    let never = (Reason::ProviderRefused, false);
    let right = world.request("SELECT id FROM customer WHERE id = $1", &[Some("1")]);
    assert_eq!(reason(world.opened(&right, "wrong").await.err().unwrap()), never);
    let cases = [
        world.request("SELECT id FROM customer WHERE id = $1", &[]),
        world.request("SELECT nothing FROM customer", &[]),
        world.request("SELECT 1; SELECT 2", &[]),
        world.request("SELECT seen FROM customer", &[]),
        PostgresRequest { database: "elsewhere".to_owned(), ..right.clone() },
    ];
    for case in cases {
        assert_eq!(reason(world.opened(&case, PASSWORD).await.err().unwrap()), never, "{}", case.statement);
    }
    let fault = world.opened(&world.request("SELECT seen FROM customer", &[]), PASSWORD).await.err().unwrap();
    assert_eq!(fault.metadata().get("type").map(String::as_str), Some("timestamptz"));
}

#[tokio::test]
async fn without_commit_nothing_is_done() {
    let world = world();
    // Read only is the server's business, not a reading of the statement.
    let write = world.request("INSERT INTO customer (id, name) VALUES ($1, $2)", &[Some("900"), Some("x")]);
    assert_eq!(world.rolled_back(&write).await, "25006");
    let bad = world.request("SELECT id FROM customer WHERE id = $1", &[Some("no number")]);
    assert_eq!(world.rolled_back(&bad).await, "22P02");
    assert_eq!(world.rolled_back(&world.request("SELECT 1 FROM pg_sleep(30)", &[])).await, "57014");
    let many = world.sent(&world.request("SELECT id FROM customer", &[])).await;
    assert!(matches!(many, Sent::Answered(Answer::TooLarge)), "{many:?}");
    let wide = world.sent(&world.request("SELECT repeat('x', 20000) AS x", &[])).await;
    assert!(matches!(wide, Sent::Answered(Answer::TooLarge)), "{wide:?}");
    // Checked only at COMMIT.
    let late = world.request("INSERT INTO child (id) VALUES ($1)", &[Some("901")]);
    let late = PostgresRequest { read_only: false, ..late };
    assert_eq!(world.rolled_back(&late).await, "23503");
    assert_eq!(
        (world.count("customer WHERE id >= 900"), world.count("child WHERE id = 901")),
        ("0".into(), "0".into())
    );
    let right = PostgresRequest { read_only: false, ..write };
    let right = PostgresRequest {
        parameters: vec![
            PostgresParameter { null: false, text: "800".to_owned() },
            PostgresParameter { null: true, text: String::new() },
        ],
        ..right
    };
    assert_eq!(world.result(&right).await, json!({"row_count": 1, "rows": []}));
    assert_eq!(world.count("customer WHERE id = 800 AND name IS NULL"), "1");
}

#[tokio::test]
async fn a_session_that_ends_is_told_apart() {
    let world = world();
    let slow = world.request("SELECT 1 FROM pg_sleep(0.8)", &[]);
    let session = world.opened(&slow, PASSWORD).await.unwrap();
    let run = tokio::spawn(session.send(LIMIT, 1024));
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT 1 FROM pg_sleep(0.8)%' AND pid <> pg_backend_pid()";
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.server.sql(kill).unwrap(), "t");
    let ended = run.await.unwrap();
    assert!(matches!(ended, Sent::Answered(Answer::RolledBack(_))), "{ended:?}");
    // Gone before the statement was sent.
    let session = world.opened(&world.request("SELECT 2", &[]), PASSWORD).await.unwrap();
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'exequatur' AND state = 'idle in transaction'";
    assert!(world.server.sql(kill).unwrap().contains('t'));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ended = session.send(LIMIT, 1024).await;
    assert!(matches!(ended, Sent::NotSent(_) | Sent::Answered(Answer::RolledBack(_))), "{ended:?}");
}

#[tokio::test]
async fn an_unverified_server_gets_nothing() {
    let world = world();
    let address = format!("127.0.0.1:{}", world.server.port()).parse().unwrap();
    let egress = Egress::new(Guard::new(vec![address]), &[]).unwrap();
    let right = world.request("SELECT 1", &[]);
    let link = egress.connect(&destination(&right).unwrap(), LIMIT).await.unwrap();
    let secret = Secret::new(PASSWORD.as_bytes().to_vec());
    let fault = open(link, &right, Some(("postgres", &secret)), LIMIT).await.err().unwrap();
    assert_eq!(fault.reason(), Reason::DestinationUnreachable);
}
