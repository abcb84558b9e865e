//! The store contract on SQLite. Knows SQL and nothing else.

use std::sync::LazyLock;

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::{Item, Machine as _};
use exequatur_proto::approval::v1::{ApprovalState, WatchApprovalsResponse};
use exequatur_store::{Migrator, Store, Tx, fault, migrations};
use prost::Message as _;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::row::{self, signed, unsigned};
use super::{ApprovalRow, ApprovalStore, Card, ItemRow, Page, ReviewerRow};

/// The zone's own tables.
pub static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| migrations(&[(1, "approval", include_str!("../../migrations/0001_approval.sql"))]));

/// [`ApprovalStore`] on SQLite.
#[derive(Clone)]
pub struct Sqlite {
    store: Store,
}

impl Sqlite {
    /// Over an opened and migrated store.
    #[must_use]
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    async fn reader(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>, Fault> {
        self.store.reader().acquire().await.map_err(fault)
    }
}

fn millis(at: Option<UnixMillis>) -> Option<i64> {
    at.map(|t| t.0)
}

async fn fill(connection: &mut SqliteConnection, found: Option<SqliteRow>) -> Result<Option<Card>, Fault> {
    let Some(found) = found else { return Ok(None) };
    let approval = row::approval(&found)?;
    let actions = sqlx::query("SELECT * FROM action WHERE approval = ? ORDER BY position")
        .bind(&approval.approval)
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
    let items = sqlx::query("SELECT * FROM item WHERE approval = ? ORDER BY position")
        .bind(&approval.approval)
        .fetch_all(&mut *connection)
        .await
        .map_err(fault)?;
    Ok(Some(Card {
        actions: actions.iter().map(row::action).collect::<Result<_, _>>()?,
        items: items.iter().map(row::item).collect::<Result<_, _>>()?,
        approval,
    }))
}

async fn by_id(connection: &mut SqliteConnection, approval: &str) -> Result<Option<Card>, Fault> {
    let found = sqlx::query("SELECT * FROM approval WHERE approval = ?")
        .bind(approval)
        .fetch_optional(&mut *connection)
        .await
        .map_err(fault)?;
    fill(connection, found).await
}

#[async_trait]
impl ApprovalStore for Sqlite {
    async fn insert(&self, tx: &mut Tx, card: &Card) -> Result<(), Fault> {
        let a = &card.approval;
        sqlx::query(
            "INSERT INTO approval (approval, tenant, plan_digest, agent, header, rule_set_digest, request_digest, \
             opened_at, expires_at, window_s, quorum, state, decision, window_ends_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&a.approval)
        .bind(&a.tenant)
        .bind(&a.plan_digest)
        .bind(&a.agent)
        .bind(&a.header)
        .bind(&a.rule_set_digest)
        .bind(&a.request_digest)
        .bind(a.opened_at.0)
        .bind(millis(a.expires_at))
        .bind(signed(a.window_s)?)
        .bind(a.quorum)
        .bind(i32::from(a.state))
        .bind(&a.decision)
        .bind(millis(a.window_ends_at))
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        for action in &card.actions {
            sqlx::query(
                "INSERT INTO action (approval, position, action, definition, wire_digest, tool, held, rule) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(&a.approval)
            .bind(action.index)
            .bind(&action.action)
            .bind(&action.definition)
            .bind(&action.wire_digest)
            .bind(&action.tool)
            .bind(action.held)
            .bind(&action.rule)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        }
        for item in &card.items {
            sqlx::query(
                "INSERT INTO item (approval, position, tenant, agent, tool, state, reason, attempt, closed, \
                 reservation, withdrawal, approved_at, ends_at, opened_entry, last_entry) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(&a.approval)
            .bind(item.index)
            .bind(&a.tenant)
            .bind(&a.agent)
            .bind(&item.tool)
            .bind(item.state.as_str())
            .bind(&item.reason)
            .bind(item.attempt)
            .bind(item.closed)
            .bind(&item.reservation)
            .bind(&item.withdrawal)
            .bind(millis(item.approved_at))
            .bind(millis(item.ends_at))
            .bind(signed(item.opened_entry)?)
            .bind(signed(item.last_entry)?)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        }
        Ok(())
    }

    async fn by_plan(&self, tx: &mut Tx, tenant: &str, plan_digest: &[u8]) -> Result<Option<Card>, Fault> {
        let found = sqlx::query("SELECT * FROM approval WHERE tenant = ? AND plan_digest = ?")
            .bind(tenant)
            .bind(plan_digest)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)?;
        fill(tx, found).await
    }

    async fn by_id(&self, tx: &mut Tx, approval: &str) -> Result<Option<Card>, Fault> {
        by_id(tx, approval).await
    }

    async fn change_item(
        &self,
        tx: &mut Tx,
        approval: &str,
        from: Item,
        item: &ItemRow,
    ) -> Result<bool, Fault> {
        let done = sqlx::query(
            "UPDATE item SET state = ?, reason = ?, attempt = ?, closed = ?, reservation = ?, withdrawal = ?, \
             approved_at = ?, ends_at = ?, last_entry = ? WHERE approval = ? AND position = ? AND state = ?",
        )
        .bind(item.state.as_str())
        .bind(&item.reason)
        .bind(item.attempt)
        .bind(item.closed)
        .bind(&item.reservation)
        .bind(&item.withdrawal)
        .bind(millis(item.approved_at))
        .bind(millis(item.ends_at))
        .bind(signed(item.last_entry)?)
        .bind(approval)
        .bind(item.index)
        .bind(from.as_str())
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn update(&self, tx: &mut Tx, approval: &ApprovalRow) -> Result<(), Fault> {
        sqlx::query("UPDATE approval SET state = ?, decision = ?, window_ends_at = ? WHERE approval = ?")
            .bind(i32::from(approval.state))
            .bind(&approval.decision)
            .bind(millis(approval.window_ends_at))
            .bind(&approval.approval)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        Ok(())
    }

    async fn push_event(&self, tx: &mut Tx, event: &WatchApprovalsResponse) -> Result<u64, Fault> {
        let done = sqlx::query("INSERT INTO event (body) VALUES (?)")
            .bind(event.encode_to_vec())
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        unsigned(done.last_insert_rowid())
    }

    async fn due(&self, now: UnixMillis, limit: u32) -> Result<Vec<String>, Fault> {
        let rows = sqlx::query(
            "SELECT approval FROM approval WHERE state = ?1 AND expires_at IS NOT NULL AND expires_at <= ?2 \
             UNION SELECT approval FROM item WHERE state = 'APPROVED' AND ends_at <= ?2 LIMIT ?3",
        )
        .bind(i32::from(ApprovalState::Pending))
        .bind(now.0)
        .bind(limit)
        .fetch_all(self.store.reader())
        .await
        .map_err(fault)?;
        rows.iter().map(|row| row.try_get(0).map_err(fault)).collect()
    }

    async fn events_after(&self, sequence: u64, limit: u32) -> Result<Vec<WatchApprovalsResponse>, Fault> {
        let rows =
            sqlx::query("SELECT sequence, body FROM event WHERE sequence > ? ORDER BY sequence LIMIT ?")
                .bind(i64::try_from(sequence).unwrap_or(i64::MAX))
                .bind(limit)
                .fetch_all(self.store.reader())
                .await
                .map_err(fault)?;
        let read = |row: &SqliteRow| {
            let body: Vec<u8> = row.try_get("body").map_err(fault)?;
            let mut event = WatchApprovalsResponse::decode(body.as_slice()).map_err(Fault::internal)?;
            event.sequence = unsigned(row.try_get("sequence").map_err(fault)?)?;
            Ok(event)
        };
        rows.iter().map(read).collect()
    }

    async fn card(&self, approval: &str) -> Result<Option<Card>, Fault> {
        by_id(&mut *self.reader().await?, approval).await
    }

    async fn page(&self, page: &Page) -> Result<Vec<Card>, Fault> {
        let mut connection = self.reader().await?;
        let mut cards = Vec::new();
        // Every tenant in a query of its own keeps the index in use and no query crosses tenants.
        for tenant in &page.tenants {
            let rows = sqlx::query(
                "SELECT approval FROM approval WHERE tenant = ?1 AND (?2 IS NULL OR state = ?2) \
                 AND (?3 IS NULL OR approval < ?3) ORDER BY approval DESC LIMIT ?4",
            )
            .bind(tenant)
            .bind(page.state.map(i32::from))
            .bind(&page.before)
            .bind(page.limit)
            .fetch_all(&mut *connection)
            .await
            .map_err(fault)?;
            for row in &rows {
                cards.push(row.try_get::<String, _>(0).map_err(fault)?);
            }
        }
        cards.sort_unstable_by(|a, b| b.cmp(a));
        cards.truncate(usize::try_from(page.limit).unwrap_or(usize::MAX));
        let mut filled = Vec::with_capacity(cards.len());
        for approval in cards {
            filled.extend(by_id(&mut connection, &approval).await?);
        }
        Ok(filled)
    }

    async fn last_approved(
        &self,
        tenant: &str,
        agent: &str,
        tool: &str,
        except: &str,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let row = sqlx::query(
            "SELECT action.action FROM item JOIN action USING (approval, position) \
             WHERE item.tenant = ? AND item.agent = ? AND item.tool = ? AND item.approved_at IS NOT NULL \
             AND item.approval <> ? ORDER BY item.approved_at DESC LIMIT 1",
        )
        .bind(tenant)
        .bind(agent)
        .bind(tool)
        .bind(except)
        .fetch_optional(self.store.reader())
        .await
        .map_err(fault)?;
        row.map(|row| row.try_get(0).map_err(fault)).transpose()
    }

    async fn put_reviewer(
        &self,
        tx: &mut Tx,
        tenant: &str,
        person: &str,
        at: UnixMillis,
    ) -> Result<bool, Fault> {
        let done = sqlx::query(
            "INSERT INTO reviewer (tenant, person, enrolled_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(tenant)
        .bind(person)
        .bind(at.0)
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn remove_reviewer(&self, tx: &mut Tx, tenant: &str, person: &str) -> Result<bool, Fault> {
        let done = sqlx::query("DELETE FROM reviewer WHERE tenant = ? AND person = ?")
            .bind(tenant)
            .bind(person)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn is_reviewer(&self, tx: &mut Tx, tenant: &str, person: &str) -> Result<bool, Fault> {
        let row = sqlx::query("SELECT 1 FROM reviewer WHERE tenant = ? AND person = ?")
            .bind(tenant)
            .bind(person)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)?;
        Ok(row.is_some())
    }

    async fn reviewers(&self, tenant: &str) -> Result<Vec<ReviewerRow>, Fault> {
        let rows = sqlx::query("SELECT person, enrolled_at FROM reviewer WHERE tenant = ? ORDER BY person")
            .bind(tenant)
            .fetch_all(self.store.reader())
            .await
            .map_err(fault)?;
        let read = |row: &SqliteRow| {
            Ok(ReviewerRow {
                person: row.try_get("person").map_err(fault)?,
                enrolled_at: UnixMillis(row.try_get("enrolled_at").map_err(fault)?),
            })
        };
        rows.iter().map(read).collect()
    }

    async fn reviewer_tenants(&self, person: &str) -> Result<Vec<String>, Fault> {
        let rows = sqlx::query("SELECT tenant FROM reviewer WHERE person = ? ORDER BY tenant")
            .bind(person)
            .fetch_all(self.store.reader())
            .await
            .map_err(fault)?;
        rows.iter().map(|row| row.try_get(0).map_err(fault)).collect()
    }

    async fn unattended_tenants(&self) -> Result<Vec<String>, Fault> {
        let rows = sqlx::query(
            "SELECT DISTINCT tenant FROM approval WHERE state = ? AND tenant NOT IN (SELECT tenant FROM reviewer) \
             ORDER BY tenant",
        )
        .bind(i32::from(ApprovalState::Pending))
        .fetch_all(self.store.reader())
        .await
        .map_err(fault)?;
        rows.iter().map(|row| row.try_get(0).map_err(fault)).collect()
    }

    async fn any_reviewer(&self) -> Result<bool, Fault> {
        let row = sqlx::query("SELECT 1 FROM reviewer LIMIT 1")
            .fetch_optional(self.store.reader())
            .await
            .map_err(fault)?;
        Ok(row.is_some())
    }
}
