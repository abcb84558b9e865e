//! The journal on SQLite. Knows SQL and nothing else.

use std::sync::LazyLock;

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::{Journal, Machine as _};
use exequatur_store::{Migrator, Tx, fault, migrations};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};

use super::{JournalStore, Key, Row, Subject};

/// The zone's own tables.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations(&[
        (1, "journal", include_str!("../../migrations/0001_journal.sql")),
        (2, "warrant digest", include_str!("../../migrations/0002_warrant_digest.sql")),
        (3, "vault lease", include_str!("../../migrations/0003_vault_lease.sql")),
    ])
});

/// [`JournalStore`] on SQLite.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sqlite;

const SET: &str = "run = ?4, tool = ?5, attempt = ?6, state = ?7, action_digest = ?8, wire_digest = ?9, warrant = ?10,
    held = ?11, reads = ?12, process = ?13, start_by = ?14, settle_at = ?15, leases = ?16, outcome = ?17, result = ?18,
    warrant_digest = ?19, vault_leases = ?20";

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, SqliteArguments>;

fn bound<'q>(query: Query<'q>, row: &Row) -> Query<'q> {
    query
        .bind(row.key.tenant.clone())
        .bind(row.key.plan_digest.clone())
        .bind(row.key.index)
        .bind(row.run.clone())
        .bind(row.tool.clone())
        .bind(row.attempt)
        .bind(row.state.as_str())
        .bind(row.action_digest.clone())
        .bind(row.wire_digest.clone())
        .bind(row.warrant.clone())
        .bind(row.held)
        .bind(row.reads)
        .bind(row.process.clone())
        .bind(row.start_by.0)
        .bind(row.settle_at.0)
        .bind(row.leases.join(" "))
        .bind(row.outcome.clone())
        .bind(row.result.clone())
        .bind(row.warrant_digest.clone())
        .bind(row.vault_leases.join(" "))
}

fn read(found: &SqliteRow) -> Result<Row, Fault> {
    let state: String = found.try_get("state").map_err(fault)?;
    let leases: String = found.try_get("leases").map_err(fault)?;
    let vault_leases: String = found.try_get("vault_leases").map_err(fault)?;
    let leases: Vec<String> = leases.split(' ').filter(|l| !l.is_empty()).map(ToOwned::to_owned).collect();
    Ok(Row {
        key: Key {
            tenant: found.try_get("tenant").map_err(fault)?,
            plan_digest: found.try_get("plan_digest").map_err(fault)?,
            index: found.try_get("position").map_err(fault)?,
        },
        run: found.try_get("run").map_err(fault)?,
        tool: found.try_get("tool").map_err(fault)?,
        attempt: found.try_get("attempt").map_err(fault)?,
        state: Journal::parse(&state).ok_or_else(|| Fault::internal("a journal row is in no known state"))?,
        action_digest: found.try_get("action_digest").map_err(fault)?,
        wire_digest: found.try_get("wire_digest").map_err(fault)?,
        warrant: found.try_get("warrant").map_err(fault)?,
        warrant_digest: found.try_get("warrant_digest").map_err(fault)?,
        held: found.try_get("held").map_err(fault)?,
        reads: found.try_get("reads").map_err(fault)?,
        process: found.try_get("process").map_err(fault)?,
        start_by: UnixMillis(found.try_get("start_by").map_err(fault)?),
        settle_at: UnixMillis(found.try_get("settle_at").map_err(fault)?),
        vault_leases: vault_leases.split(' ').take(leases.len()).map(ToOwned::to_owned).collect(),
        leases,
        outcome: found.try_get("outcome").map_err(fault)?,
        result: found.try_get("result").map_err(fault)?,
    })
}

#[async_trait]
impl JournalStore for Sqlite {
    async fn id(&self, tx: &mut Tx, id: &str) -> Result<String, Fault> {
        let stored: Option<String> =
            sqlx::query_scalar("SELECT id FROM journal_id").fetch_optional(&mut **tx).await.map_err(fault)?;
        if let Some(stored) = stored {
            return Ok(stored);
        }
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM journal").fetch_one(&mut **tx).await.map_err(fault)?;
        if rows > 0 {
            return Ok(String::new());
        }
        sqlx::query("INSERT INTO journal_id (one, id) VALUES (1, ?)")
            .bind(id)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        Ok(id.to_owned())
    }

    async fn get(&self, tx: &mut Tx, key: &Key) -> Result<Option<Row>, Fault> {
        sqlx::query("SELECT * FROM journal WHERE tenant = ? AND plan_digest = ? AND position = ?")
            .bind(&key.tenant)
            .bind(&key.plan_digest)
            .bind(key.index)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)?
            .as_ref()
            .map(read)
            .transpose()
    }

    async fn open(&self, tx: &mut Tx, row: &Row, after: Option<(u32, Journal)>) -> Result<bool, Fault> {
        let query = match after {
            None => sqlx::query(
                "INSERT INTO journal (tenant, plan_digest, position, run, tool, attempt, state, action_digest,
                    wire_digest, warrant, held, reads, process, start_by, settle_at, leases, outcome, result,
                    warrant_digest, vault_leases)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
                 ON CONFLICT DO NOTHING",
            ),
            Some(_) => sqlx::query(sqlx::AssertSqlSafe(format!(
                "UPDATE journal SET {SET} WHERE tenant = ?1 AND plan_digest = ?2 AND position = ?3
                    AND attempt = ?21 AND state = ?22"
            ))),
        };
        let mut query = bound(query, row);
        if let Some((attempt, state)) = after {
            query = query.bind(attempt).bind(state.as_str());
        }
        Ok(query.execute(&mut **tx).await.map_err(fault)?.rows_affected() == 1)
    }

    async fn advance(&self, tx: &mut Tx, row: &Row, from: Journal) -> Result<bool, Fault> {
        self.open(tx, row, Some((row.attempt, from))).await
    }

    async fn unfinished(&self, tx: &mut Tx) -> Result<Vec<Row>, Fault> {
        sqlx::query("SELECT * FROM journal WHERE state IN ('PREPARED', 'DISPATCHED')")
            .fetch_all(&mut **tx)
            .await
            .map_err(fault)?
            .iter()
            .map(read)
            .collect()
    }

    async fn of_tenant(&self, tx: &mut Tx, tenant: &str) -> Result<Vec<Row>, Fault> {
        sqlx::query("SELECT * FROM journal WHERE tenant = ? AND state <> 'ABORTED'")
            .bind(tenant)
            .fetch_all(&mut **tx)
            .await
            .map_err(fault)?
            .iter()
            .map(read)
            .collect()
    }

    async fn cancel(&self, tx: &mut Tx, tenant: &str, subject: &Subject) -> Result<(), Fault> {
        let (kind, value) = subject.key();
        sqlx::query("INSERT OR IGNORE INTO cancellation (tenant, kind, value) VALUES (?, ?, ?)")
            .bind(tenant)
            .bind(kind)
            .bind(value)
            .execute(&mut **tx)
            .await
            .map(drop)
            .map_err(fault)
    }

    async fn is_cancelled(&self, tx: &mut Tx, tenant: &str, subjects: &[Subject]) -> Result<bool, Fault> {
        for (kind, value) in subjects.iter().map(Subject::key) {
            let found: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM cancellation WHERE tenant = ? AND kind = ? AND value = ?",
            )
            .bind(tenant)
            .bind(kind)
            .bind(value)
            .fetch_one(&mut **tx)
            .await
            .map_err(fault)?;
            if found > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
