//! The catalog on SQLite. Knows SQL and nothing else.

use std::sync::LazyLock;

use async_trait::async_trait;
use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_proto::credential::v1::Reuse;
use exequatur_store::{Migrator, Tx, fault, migrations};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{Backend, CatalogStore, Entry, Lease, Pin, Reseal};

/// The zone's own tables.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations(&[
        (1, "catalog", include_str!("../../migrations/0001_catalog.sql")),
        (2, "vault", include_str!("../../migrations/0002_vault.sql")),
        (3, "reuse", include_str!("../../migrations/0003_reuse.sql")),
        (4, "reseal", include_str!("../../migrations/0004_reseal.sql")),
    ])
});

/// [`CatalogStore`] on SQLite.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sqlite;

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

async fn pins(tx: &mut Tx, tenant: &str, credential: &str) -> Result<Vec<Pin>, Fault> {
    let rows: Vec<(String, Vec<u8>, String, i32)> = sqlx::query_as(
        "SELECT tool, tool_digest, destination, attestation FROM pin WHERE tenant = ? AND credential = ? ORDER BY tool",
    )
    .bind(tenant)
    .bind(credential)
    .fetch_all(&mut **tx)
    .await
    .map_err(fault)?;
    Ok(rows
        .into_iter()
        .map(|(tool, tool_digest, destination, attestation)| Pin {
            tool,
            tool_digest,
            destination,
            attestation,
        })
        .collect())
}

fn lease(row: &SqliteRow) -> Result<Lease, Fault> {
    Ok(Lease {
        lease: row.try_get("lease").map_err(fault)?,
        tenant: row.try_get("tenant").map_err(fault)?,
        credential: row.try_get("credential").map_err(fault)?,
        version: unsigned(row.try_get("version").map_err(fault)?),
        plan_digest: row.try_get("plan_digest").map_err(fault)?,
        index: row.try_get("position").map_err(fault)?,
        attempt: row.try_get("attempt").map_err(fault)?,
        expires_at: UnixMillis(row.try_get("expires_at").map_err(fault)?),
        returned: row.try_get("returned").map_err(fault)?,
        vault_lease: row.try_get("vault_lease").map_err(fault)?,
        run: row.try_get("run").map_err(fault)?,
        reuse: Reuse::try_from(row.try_get::<i32, _>("reuse").map_err(fault)?).unwrap_or_default(),
        kept: row.try_get("kept").map_err(fault)?,
        reuse_of: row.try_get("reuse_of").map_err(fault)?,
    })
}

#[async_trait]
impl CatalogStore for Sqlite {
    async fn entry(&self, tx: &mut Tx, tenant: &str, credential: &str) -> Result<Option<Entry>, Fault> {
        let row: Option<(i64, i64)> = sqlx::query_as(
            "SELECT version, updated_at FROM credential
             WHERE tenant = ? AND credential = ?",
        )
        .bind(tenant)
        .bind(credential)
        .fetch_optional(&mut **tx)
        .await
        .map_err(fault)?;
        let Some((version, updated_at)) = row else { return Ok(None) };
        Ok(Some(Entry {
            credential: credential.to_owned(),
            version: unsigned(version),
            updated_at: UnixMillis(updated_at),
            pins: pins(tx, tenant, credential).await?,
            newest: self.value(tx, tenant, credential, unsigned(version)).await?,
        }))
    }

    async fn entries(&self, tx: &mut Tx, tenant: &str, after: &str, limit: u32) -> Result<Vec<Entry>, Fault> {
        let names: Vec<String> = sqlx::query_scalar(
            "SELECT credential FROM credential WHERE tenant = ? AND credential > ? ORDER BY credential LIMIT ?",
        )
        .bind(tenant)
        .bind(after)
        .bind(limit)
        .fetch_all(&mut **tx)
        .await
        .map_err(fault)?;
        let mut entries = Vec::new();
        for name in names {
            entries.extend(self.entry(tx, tenant, &name).await?);
        }
        Ok(entries)
    }

    async fn put(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
        backend: Backend,
        value: &[u8],
    ) -> Result<bool, Fault> {
        let newest = self.entry(tx, tenant, credential).await?.map_or(0, |entry| entry.version);
        if newest.checked_add(1) != Some(version) {
            return Ok(false);
        }
        let now = tx.now().0;
        sqlx::query(
            "INSERT INTO credential (tenant, credential, version, updated_at) VALUES (?, ?, ?, ?)
             ON CONFLICT (tenant, credential) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at",
        )
        .bind(tenant)
        .bind(credential)
        .bind(signed(version))
        .bind(now)
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        // Only the newest version is ever handed over: older ciphertext has no use and is not kept.
        sqlx::query("DELETE FROM sealed_value WHERE tenant = ? AND credential = ?")
            .bind(tenant)
            .bind(credential)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        sqlx::query(
            "INSERT INTO sealed_value (tenant, credential, version, value, backend) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(tenant)
        .bind(credential)
        .bind(signed(version))
        .bind(value)
        .bind(backend.as_str())
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(true)
    }

    async fn value(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
    ) -> Result<Option<(Backend, Vec<u8>)>, Fault> {
        let row: Option<(String, Vec<u8>)> = sqlx::query_as(
            "SELECT backend, value FROM sealed_value WHERE tenant = ? AND credential = ? AND version = ?",
        )
        .bind(tenant)
        .bind(credential)
        .bind(signed(version))
        .fetch_optional(&mut **tx)
        .await
        .map_err(fault)?;
        let Some((backend, value)) = row else { return Ok(None) };
        let backend =
            Backend::parse(&backend).ok_or_else(|| Fault::internal("a version is of no known backend"))?;
        Ok(Some((backend, value)))
    }

    async fn allow_reseal(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        leave: &Reseal,
    ) -> Result<(), Fault> {
        sqlx::query(
            "INSERT OR REPLACE INTO reseal (tenant, credential, version, kid, expires_at) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(tenant)
        .bind(credential)
        .bind(signed(leave.version))
        .bind(&leave.kid)
        .bind(leave.expires_at.0)
        .execute(&mut **tx)
        .await
        .map(drop)
        .map_err(fault)
    }

    async fn reseal_leave(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
    ) -> Result<Option<Reseal>, Fault> {
        let row: Option<(i64, String, i64)> =
            sqlx::query_as("SELECT version, kid, expires_at FROM reseal WHERE tenant = ? AND credential = ?")
                .bind(tenant)
                .bind(credential)
                .fetch_optional(&mut **tx)
                .await
                .map_err(fault)?;
        Ok(row.map(|(version, kid, expires_at)| Reseal {
            version: unsigned(version),
            kid,
            expires_at: UnixMillis(expires_at),
        }))
    }

    async fn reseal(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
        value: &[u8],
    ) -> Result<bool, Fault> {
        let done = sqlx::query(
            "UPDATE sealed_value SET value = ?
             WHERE tenant = ? AND credential = ? AND version = ? AND backend = 'sealed'",
        )
        .bind(value)
        .bind(tenant)
        .bind(credential)
        .bind(signed(version))
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        sqlx::query("DELETE FROM reseal WHERE tenant = ? AND credential = ?")
            .bind(tenant)
            .bind(credential)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn remove(&self, tx: &mut Tx, tenant: &str, credential: &str) -> Result<bool, Fault> {
        let mut found = 0;
        for statement in [
            "DELETE FROM reseal WHERE tenant = ? AND credential = ?",
            "DELETE FROM sealed_value WHERE tenant = ? AND credential = ?",
            "DELETE FROM pin WHERE tenant = ? AND credential = ?",
            "DELETE FROM credential WHERE tenant = ? AND credential = ?",
        ] {
            let done = sqlx::query(statement)
                .bind(tenant)
                .bind(credential)
                .execute(&mut **tx)
                .await
                .map_err(fault)?;
            found = done.rows_affected();
        }
        Ok(found > 0)
    }

    async fn pin(&self, tx: &mut Tx, tenant: &str, tool: &str, pins: &[(String, Pin)]) -> Result<(), Fault> {
        sqlx::query("DELETE FROM pin WHERE tenant = ? AND tool = ?")
            .bind(tenant)
            .bind(tool)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        let now = tx.now().0;
        for (credential, pin) in pins {
            sqlx::query(
                "INSERT INTO credential (tenant, credential, version, updated_at) VALUES (?, ?, 0, ?) ON CONFLICT DO NOTHING",
            )
            .bind(tenant)
            .bind(credential)
            .bind(now)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
            sqlx::query(
                "INSERT INTO pin (tenant, credential, tool, tool_digest, destination, attestation) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(tenant)
            .bind(credential)
            .bind(&pin.tool)
            .bind(&pin.tool_digest)
            .bind(&pin.destination)
            .bind(pin.attestation)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        }
        Ok(())
    }

    async fn lease(&self, tx: &mut Tx, lease: &Lease) -> Result<bool, Fault> {
        let done = sqlx::query(
            "INSERT INTO lease (lease, tenant, credential, version, plan_digest, position, attempt, expires_at,
                returned, vault_lease, run, reuse, kept, reuse_of)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(&lease.lease)
        .bind(&lease.tenant)
        .bind(&lease.credential)
        .bind(signed(lease.version))
        .bind(&lease.plan_digest)
        .bind(lease.index)
        .bind(lease.attempt)
        .bind(lease.expires_at.0)
        .bind(lease.returned)
        .bind(&lease.vault_lease)
        .bind(&lease.run)
        .bind(i32::from(lease.reuse))
        .bind(lease.kept)
        .bind(&lease.reuse_of)
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn give_back(
        &self,
        tx: &mut Tx,
        tenant: &str,
        id: &str,
        vault_lease: &str,
    ) -> Result<Option<Lease>, Fault> {
        sqlx::query(
            "UPDATE lease SET returned = 1, vault_lease = coalesce(nullif(?, ''), vault_lease)
             WHERE lease = ? AND tenant = ? AND returned = 0 RETURNING *",
        )
        .bind(vault_lease)
        .bind(id)
        .bind(tenant)
        .fetch_optional(&mut **tx)
        .await
        .map_err(fault)?
        .as_ref()
        .map(lease)
        .transpose()
    }

    async fn find_lease(&self, tx: &mut Tx, tenant: &str, id: &str) -> Result<Option<Lease>, Fault> {
        sqlx::query("SELECT * FROM lease WHERE lease = ? AND tenant = ?")
            .bind(id)
            .bind(tenant)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)?
            .as_ref()
            .map(lease)
            .transpose()
    }

    async fn keep(&self, tx: &mut Tx, tenant: &str, id: &str, vault_lease: &str) -> Result<bool, Fault> {
        let done = sqlx::query(
            "UPDATE lease SET kept = 1, vault_lease = ? WHERE lease = ? AND tenant = ? AND returned = 0
             AND kept = 0",
        )
        .bind(vault_lease)
        .bind(id)
        .bind(tenant)
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(done.rows_affected() == 1)
    }

    async fn overdue(&self, tx: &mut Tx, limit: u32) -> Result<Vec<Lease>, Fault> {
        let now = tx.now().0;
        sqlx::query("SELECT * FROM lease WHERE returned = 0 AND expires_at < ? ORDER BY expires_at LIMIT ?")
            .bind(now)
            .bind(limit)
            .fetch_all(&mut **tx)
            .await
            .map_err(fault)?
            .iter()
            .map(lease)
            .collect()
    }
}
