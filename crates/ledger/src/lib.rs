//! A zone's append-only log: entries signed and chained in the caller's transaction, bodies beside
//! it, heads, and the outbox for what must go out after a transaction. Owns its tables; knows no zone.

mod export;
pub mod outbox;
mod schema;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use exequatur_canonical::Digest;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::ledger::v1::{LogEntry, log_entry};
use exequatur_proto::statement::v1::Envelope;
use exequatur_statement::{SigningKey, sign};
use exequatur_store::{Store, Tx, fault};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

pub use schema::schema;
pub use tree::root;

/// The tenant of what belongs to none.
pub const REALM: &str = "_realm";

/// Where an appended entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRef {
    /// From 0, without gaps, per tenant.
    pub sequence: u64,
    /// The RFC 6962 leaf hash.
    pub digest: Digest,
}

/// The log of one zone; clones share its key.
#[derive(Clone, Debug)]
pub struct Ledger {
    zone: String,
    key: Arc<SigningKey>,
}

impl Ledger {
    /// The log of the zone with this SPIFFE ID, signed by its `ledger` key.
    #[must_use]
    pub const fn new(zone: String, key: Arc<SigningKey>) -> Self {
        Self { zone, key }
    }

    /// SPIFFE ID of the zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Appends an entry to a tenant's chain inside the caller's transaction: it is durable exactly
    /// when the caller's change is, and not there when the transaction is dropped.
    ///
    /// # Errors
    /// `STORAGE_FAILED` or `LEDGER_GAP`; the caller must not commit then.
    pub async fn append(&self, tx: &mut Tx, tenant: &str, body: log_entry::Body) -> Result<EntryRef, Fault> {
        let head: Option<(i64, Vec<u8>)> = sqlx::query_as("SELECT size, leaf FROM log_head WHERE tenant = ?")
            .bind(tenant)
            .fetch_optional(&mut **tx)
            .await
            .map_err(fault)?;
        let (size, previous) = head.unwrap_or_default();
        let sequence = u64::try_from(size).map_err(|_| gap("the head is malformed"))?;
        let entry = LogEntry {
            zone: self.zone.clone(),
            tenant: tenant.to_owned(),
            sequence,
            previous,
            recorded_at: Some(tx.now().to_proto()),
            body: Some(body),
        };
        let envelope = sign(&self.key, &entry).map_err(Fault::internal)?.encode_to_vec();
        let digest = leaf(&envelope);
        sqlx::query("INSERT INTO log (tenant, sequence, leaf, envelope) VALUES (?, ?, ?, ?)")
            .bind(tenant)
            .bind(size)
            .bind(digest.as_bytes().as_slice())
            .bind(envelope)
            .execute(&mut **tx)
            .await
            .map_err(fault)?;
        sqlx::query(
            "INSERT INTO log_head (tenant, size, leaf) VALUES (?, ?, ?)
             ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, leaf = excluded.leaf",
        )
        .bind(tenant)
        .bind(size.saturating_add(1))
        .bind(digest.as_bytes().as_slice())
        .execute(&mut **tx)
        .await
        .map_err(fault)?;
        Ok(EntryRef { sequence, digest })
    }

    /// Keeps bytes beside the log, addressed by their digest; a repeat changes nothing.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn put_body(
        &self,
        tx: &mut Tx,
        tenant: &str,
        kind: &str,
        digest: &[u8],
        bytes: &[u8],
    ) -> Result<(), Fault> {
        sqlx::query("INSERT OR IGNORE INTO log_body (tenant, kind, digest, bytes) VALUES (?, ?, ?, ?)")
            .bind(tenant)
            .bind(kind)
            .bind(digest)
            .bind(bytes)
            .execute(&mut **tx)
            .await
            .map(drop)
            .map_err(fault)
    }

    /// The envelope of one entry.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn entry(&self, store: &Store, tenant: &str, sequence: u64) -> Result<Option<Envelope>, Fault> {
        let row: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT envelope FROM log WHERE tenant = ? AND sequence = ?")
                .bind(tenant)
                .bind(i64::try_from(sequence).unwrap_or(i64::MAX))
                .fetch_optional(store.reader())
                .await
                .map_err(fault)?;
        row.map(|bytes| Envelope::decode(bytes.as_slice()).map_err(|_| gap("an entry cannot be read")))
            .transpose()
    }

    /// Walks the zone's own chains: no gap, no cut below the head, no swapped entry. Called at start.
    ///
    /// # Errors
    /// `LEDGER_GAP` with tenant and record; the zone must not append over it.
    pub async fn verify_own(&self, store: &Store) -> Result<(), Fault> {
        let heads: Vec<(String, i64, Vec<u8>)> = sqlx::query_as("SELECT tenant, size, leaf FROM log_head")
            .fetch_all(store.reader())
            .await
            .map_err(fault)?;
        let orphans: i64 =
            sqlx::query_scalar("SELECT count(*) FROM log WHERE tenant NOT IN (SELECT tenant FROM log_head)")
                .fetch_one(store.reader())
                .await
                .map_err(fault)?;
        if orphans > 0 {
            return Err(gap("entries without a head"));
        }
        for (tenant, size, leaf) in heads {
            self.verify_chain(store, &tenant, size, &leaf).await?;
        }
        Ok(())
    }

    async fn verify_chain(&self, store: &Store, tenant: &str, size: i64, head: &[u8]) -> Result<(), Fault> {
        const PAGE: i64 = 512;
        let at =
            |sequence: i64, what: &str| gap(what).with("tenant", tenant).with("record", sequence.to_string());
        let mut next = 0;
        let mut previous = Vec::new();
        loop {
            let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = sqlx::query_as(
                "SELECT sequence, leaf, envelope FROM log WHERE tenant = ? AND sequence >= ? ORDER BY sequence LIMIT ?",
            )
            .bind(tenant)
            .bind(next)
            .bind(PAGE)
            .fetch_all(store.reader())
            .await
            .map_err(fault)?;
            if rows.is_empty() {
                break;
            }
            for (sequence, stored, envelope) in rows {
                let entry = Envelope::decode(envelope.as_slice())
                    .ok()
                    .and_then(|e| LogEntry::decode(e.payload.as_slice()).ok())
                    .ok_or_else(|| at(sequence, "an entry cannot be read"))?;
                let whole = sequence == next
                    && entry.sequence == u64::try_from(next).unwrap_or(u64::MAX)
                    && entry.tenant == tenant
                    && entry.zone == self.zone
                    && entry.previous == previous
                    && leaf(&envelope).as_bytes().as_slice() == stored;
                if !whole {
                    return Err(at(next, "an entry is missing or was changed"));
                }
                previous = stored;
                next += 1;
            }
        }
        if next == size && previous == head { Ok(()) } else { Err(at(next, "the log was cut")) }
    }
}

fn gap(what: &str) -> Fault {
    Fault::new(
        Reason::LedgerGap,
        format!("{what}: the log of this zone is not whole; restore it, nothing is appended over a gap"),
    )
}

/// RFC 6962 section 2.1: the hash of a leaf.
pub(crate) fn leaf(bytes: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update([0]);
    hash.update(bytes);
    Digest::new(hash.finalize().into())
}
