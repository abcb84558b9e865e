//! The log's own tables. What is appended is never updated and never deleted, by trigger.

use exequatur_fault::Fault;
use exequatur_store::{Store, fault};

const STATEMENTS: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS log (
        tenant TEXT NOT NULL, sequence INTEGER NOT NULL, leaf BLOB NOT NULL, envelope BLOB NOT NULL,
        PRIMARY KEY (tenant, sequence)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS log_head (
        tenant TEXT PRIMARY KEY, size INTEGER NOT NULL, leaf BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS log_body (
        tenant TEXT NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (tenant, kind, digest))",
    "CREATE TABLE IF NOT EXISTS outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, payload BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS outbox_key ON outbox (key, number)",
    "CREATE TRIGGER IF NOT EXISTS log_no_update BEFORE UPDATE ON log
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS log_no_delete BEFORE DELETE ON log
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS log_head_grows BEFORE UPDATE ON log_head WHEN NEW.size <> OLD.size + 1
        BEGIN SELECT RAISE(ABORT, 'a head grows by one'); END",
    "CREATE TRIGGER IF NOT EXISTS log_head_no_delete BEFORE DELETE ON log_head
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER IF NOT EXISTS log_body_no_update BEFORE UPDATE ON log_body
        BEGIN SELECT RAISE(ABORT, 'bodies do not change'); END",
];

/// Creates the tables where they are missing; every zone calls it once after it opened its store.
///
/// # Errors
/// `STORAGE_FAILED`.
pub async fn schema(store: &Store) -> Result<(), Fault> {
    // At whatever time: an untrusted clock must not keep a zone from starting, only from deciding.
    let mut tx = store.begin_untimed().await?;
    for statement in STATEMENTS {
        sqlx::query(*statement).execute(&mut *tx).await.map_err(fault)?;
    }
    tx.commit().await
}
