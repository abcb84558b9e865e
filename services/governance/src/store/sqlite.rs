//! The store contract on SQLite. Knows SQL and nothing else.

use std::sync::LazyLock;

use async_trait::async_trait;
use exequatur_fault::Fault;
use exequatur_lifecycle::Machine as _;
use exequatur_store::{Migrator, Tx, fault, migrations};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::rows::{self, signed, text, unsigned};
use super::{ActionRow, CallKey, GovernanceStore, PlanRow, RunRow, Seen, ToolRow};

/// The zone's own tables.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations(&[
        (1, "governance", include_str!("../../migrations/0001_governance.sql")),
        (2, "journal", include_str!("../../migrations/0002_journal.sql")),
    ])
});

/// [`GovernanceStore`] on SQLite.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sqlite;

async fn filled(tx: &mut Tx, found: Option<SqliteRow>) -> Result<Option<PlanRow>, Fault> {
    let Some(row) = found else { return Ok(None) };
    let plan: String = row.try_get("plan").map_err(fault)?;
    let actions = sqlx::query("SELECT * FROM action WHERE plan = ? ORDER BY position")
        .bind(plan)
        .fetch_all(&mut **tx)
        .await
        .map_err(fault)?;
    rows::plan(&row, actions.iter().map(rows::action).collect::<Result<_, _>>()?).map(Some)
}

async fn put_action(tx: &mut Tx, plan: &str, action: &ActionRow) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO action (plan, position, tool, action, definition, digest, effect_digest, wire_digest, verdict,
            state, rule, reason, message, instead, filled, attempt, asked, retry_at, ready_at, on_hold,
            previous_abort, receipt, result, journal)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (plan, position) DO UPDATE SET state = excluded.state, reason = excluded.reason,
            message = excluded.message, attempt = excluded.attempt, asked = excluded.asked,
            retry_at = excluded.retry_at, ready_at = excluded.ready_at, on_hold = excluded.on_hold,
            previous_abort = excluded.previous_abort, receipt = excluded.receipt, result = excluded.result,
            journal = excluded.journal",
    )
    .bind(plan)
    .bind(action.index)
    .bind(&action.tool)
    .bind(&action.action)
    .bind(&action.definition)
    .bind(&action.digest)
    .bind(&action.effect_digest)
    .bind(&action.wire_digest)
    .bind(&action.verdict)
    .bind(action.state.as_str())
    .bind(&action.rule)
    .bind(&action.reason)
    .bind(&action.message)
    .bind(&action.instead)
    .bind(text(&action.filled))
    .bind(action.attempt)
    .bind(action.asked)
    .bind(action.retry_at.0)
    .bind(action.ready_at.0)
    .bind(action.on_hold)
    .bind(&action.previous_abort)
    .bind(&action.receipt)
    .bind(&action.result)
    .bind(&action.journal)
    .execute(&mut **tx)
    .await
    .map(drop)
    .map_err(fault)
}

#[async_trait]
impl GovernanceStore for Sqlite {
    async fn run(&self, tx: &mut Tx, tenant: &str, run: &str) -> Result<Option<RunRow>, Fault> {
        let row = sqlx::query("SELECT * FROM run WHERE run = ? AND tenant = ?").bind(run).bind(tenant);
        row.fetch_optional(&mut **tx).await.map_err(fault)?.as_ref().map(rows::run).transpose()
    }

    async fn put_run(&self, tx: &mut Tx, run: &RunRow) -> Result<(), Fault> {
        sqlx::query(
            "INSERT INTO run (run, tenant, agent, owner, starter, scopes, state, started_at, expires_at, token_ttl, parent)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET state = excluded.state",
        )
        .bind(&run.run)
        .bind(&run.tenant)
        .bind(&run.agent)
        .bind(&run.owner)
        .bind(&run.starter)
        .bind(text(&run.scopes))
        .bind(run.state.as_str())
        .bind(run.started_at.0)
        .bind(run.expires_at.0)
        .bind(run.token_ttl)
        .bind(&run.parent)
        .execute(&mut **tx)
        .await
        .map(drop)
        .map_err(fault)
    }

    async fn runs(&self, tx: &mut Tx, tenant: &str, before: &str, limit: u32) -> Result<Vec<RunRow>, Fault> {
        // UUIDv7 sorts by time.
        let rows = sqlx::query(
            "SELECT * FROM run WHERE tenant = ?1 AND (?2 = '' OR run < ?2) ORDER BY run DESC LIMIT ?3",
        )
        .bind(tenant)
        .bind(before)
        .bind(limit)
        .fetch_all(&mut **tx)
        .await
        .map_err(fault)?;
        rows.iter().map(rows::run).collect()
    }

    async fn children(&self, tx: &mut Tx, tenant: &str, run: &str) -> Result<Vec<RunRow>, Fault> {
        let rows = sqlx::query("SELECT * FROM run WHERE parent = ? AND tenant = ? AND parent <> ''")
            .bind(run)
            .bind(tenant)
            .fetch_all(&mut **tx)
            .await
            .map_err(fault)?;
        rows.iter().map(rows::run).collect()
    }

    async fn tool(&self, tx: &mut Tx, tenant: &str, tool: &str) -> Result<Option<ToolRow>, Fault> {
        let row: Option<(String, Vec<u8>, Vec<u8>)> =
            sqlx::query_as("SELECT tool, digest, definition FROM tool WHERE tenant = ? AND tool = ?")
                .bind(tenant)
                .bind(tool)
                .fetch_optional(&mut **tx)
                .await
                .map_err(fault)?;
        Ok(row.map(|(tool, digest, definition)| ToolRow { tool, digest, definition }))
    }

    async fn tools(&self, tx: &mut Tx, tenant: &str, after: &str, limit: u32) -> Result<Vec<ToolRow>, Fault> {
        let rows: Vec<(String, Vec<u8>, Vec<u8>)> = sqlx::query_as(
            "SELECT tool, digest, definition FROM tool WHERE tenant = ? AND tool > ? ORDER BY tool LIMIT ?",
        )
        .bind(tenant)
        .bind(after)
        .bind(limit)
        .fetch_all(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(rows.into_iter().map(|(tool, digest, definition)| ToolRow { tool, digest, definition }).collect())
    }

    async fn put_tool(&self, tx: &mut Tx, tenant: &str, tool: &ToolRow) -> Result<bool, Fault> {
        if self.tool(tx, tenant, &tool.tool).await?.is_some_and(|found| found.digest == tool.digest) {
            return Ok(false);
        }
        sqlx::query(
            "INSERT INTO tool (tenant, tool, digest, definition) VALUES (?, ?, ?, ?)
             ON CONFLICT (tenant, tool) DO UPDATE SET digest = excluded.digest, definition = excluded.definition",
        )
        .bind(tenant)
        .bind(&tool.tool)
        .bind(&tool.digest)
        .bind(&tool.definition)
        .execute(&mut **tx)
        .await
        .map(|_| true)
        .map_err(fault)
    }

    async fn rule_set(&self, tx: &mut Tx, tenant: &str) -> Result<Option<(Vec<u8>, Vec<u8>)>, Fault> {
        sqlx::query_as("SELECT digest, bytes FROM rule_set WHERE tenant = ?")
            .bind(tenant)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)
    }

    async fn put_rule_set(
        &self,
        tx: &mut Tx,
        tenant: &str,
        digest: &[u8],
        bytes: &[u8],
    ) -> Result<bool, Fault> {
        if self.rule_set(tx, tenant).await?.is_some_and(|(found, _)| found == digest) {
            return Ok(false);
        }
        sqlx::query(
            "INSERT INTO rule_set (tenant, digest, bytes) VALUES (?, ?, ?)
             ON CONFLICT (tenant) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes",
        )
        .bind(tenant)
        .bind(digest)
        .bind(bytes)
        .execute(&mut **tx)
        .await
        .map(|_| true)
        .map_err(fault)
    }

    async fn seen(&self, tx: &mut Tx, call: CallKey<'_>) -> Result<Seen, Fault> {
        let row: Option<(Vec<u8>, String)> = sqlx::query_as(
            "SELECT body, result FROM idempotency WHERE tenant = ? AND caller = ? AND method = ? AND key = ?",
        )
        .bind(call.tenant)
        .bind(call.caller)
        .bind(call.method)
        .bind(call.key)
        .fetch_optional(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(match row {
            None => Seen::New,
            Some((body, result)) if body == call.body => Seen::Same(result),
            Some(_) => Seen::Other,
        })
    }

    async fn remember(&self, tx: &mut Tx, call: CallKey<'_>, result: &str) -> Result<(), Fault> {
        sqlx::query(
            "INSERT INTO idempotency (tenant, caller, method, key, body, result) VALUES (?, ?, ?, ?, ?, ?)",
        )
        .bind(call.tenant)
        .bind(call.caller)
        .bind(call.method)
        .bind(call.key)
        .bind(call.body)
        .bind(result)
        .execute(&mut **tx)
        .await
        .map(drop)
        .map_err(fault)
    }

    async fn plan(&self, tx: &mut Tx, tenant: &str, plan: &str) -> Result<Option<PlanRow>, Fault> {
        let row = sqlx::query("SELECT * FROM plan WHERE plan = ? AND tenant = ?").bind(plan).bind(tenant);
        let row = row.fetch_optional(&mut **tx).await.map_err(fault)?;
        filled(tx, row).await
    }

    async fn plan_by_digest(&self, tx: &mut Tx, digest: &[u8]) -> Result<Option<PlanRow>, Fault> {
        let row = sqlx::query("SELECT * FROM plan WHERE digest = ?").bind(digest);
        let row = row.fetch_optional(&mut **tx).await.map_err(fault)?;
        filled(tx, row).await
    }

    async fn put_plan(&self, tx: &mut Tx, plan: &PlanRow) -> Result<(), Fault> {
        sqlx::query(
            "INSERT INTO plan (plan, tenant, run, digest, header, effects, entry, sequence, open, approval, decision)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (plan) DO UPDATE SET sequence = excluded.sequence, open = excluded.open,
                approval = excluded.approval, decision = excluded.decision",
        )
        .bind(&plan.plan)
        .bind(&plan.tenant)
        .bind(&plan.run)
        .bind(&plan.digest)
        .bind(&plan.header)
        .bind(&plan.effects)
        .bind(signed(plan.entry))
        .bind(signed(plan.sequence))
        .bind(plan.is_open())
        .bind(&plan.approval)
        .bind(&plan.decision)
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        for action in &plan.actions {
            put_action(tx, &plan.plan, action).await?;
        }
        Ok(())
    }

    async fn open_plans(&self, tx: &mut Tx, run: Option<&str>) -> Result<Vec<(String, String)>, Fault> {
        sqlx::query_as(
            "SELECT tenant, plan FROM plan WHERE open = 1 AND (?1 IS NULL OR run = ?1) ORDER BY plan",
        )
        .bind(run)
        .fetch_all(&mut **tx)
        .await
        .map_err(fault)
    }

    async fn cursor(&self, tx: &mut Tx) -> Result<u64, Fault> {
        let at: Option<i64> =
            sqlx::query_scalar("SELECT at FROM cursor").fetch_optional(&mut **tx).await.map_err(fault)?;
        Ok(unsigned(at.unwrap_or_default()))
    }

    async fn set_cursor(&self, tx: &mut Tx, at: u64) -> Result<(), Fault> {
        sqlx::query(
            "INSERT INTO cursor (one, at) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET at = excluded.at",
        )
        .bind(signed(at))
        .execute(&mut **tx)
        .await
        .map(drop)
        .map_err(fault)
    }
}
