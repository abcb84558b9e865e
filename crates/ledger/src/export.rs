//! Reading a tenant's log for an export: one snapshot, in pages, ended by a signed head.

use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_proto::ledger::v1::{Body, Head};
use exequatur_proto::statement::v1::Envelope;
use exequatur_statement::sign;
use exequatur_store::{Store, fault};
use prost::Message as _;

use crate::{Ledger, gap, tree};

impl Ledger {
    /// Number of entries of a tenant's log now.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn size(&self, store: &Store, tenant: &str) -> Result<u64, Fault> {
        let size: Option<i64> = sqlx::query_scalar("SELECT size FROM log_head WHERE tenant = ?")
            .bind(tenant)
            .fetch_optional(store.reader())
            .await
            .map_err(fault)?;
        u64::try_from(size.unwrap_or_default()).map_err(|_| gap("the head is malformed"))
    }

    /// At most `limit` entries from `from` on.
    ///
    /// # Errors
    /// `STORAGE_FAILED` or `LEDGER_GAP`.
    pub async fn entries(
        &self,
        store: &Store,
        tenant: &str,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Envelope>, Fault> {
        let rows: Vec<Vec<u8>> = sqlx::query_scalar(
            "SELECT envelope FROM log WHERE tenant = ? AND sequence >= ? ORDER BY sequence LIMIT ?",
        )
        .bind(tenant)
        .bind(i64::try_from(from).unwrap_or(i64::MAX))
        .bind(limit)
        .fetch_all(store.reader())
        .await
        .map_err(fault)?;
        rows.iter()
            .map(|bytes| Envelope::decode(bytes.as_slice()).map_err(|_| gap("an entry cannot be read")))
            .collect()
    }

    /// At most `limit` bodies after a row; gives the last row's number with each.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn bodies(
        &self,
        store: &Store,
        tenant: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Body)>, Fault> {
        let rows: Vec<(i64, String, Vec<u8>, Vec<u8>)> = sqlx::query_as(
            "SELECT rowid, kind, digest, bytes FROM log_body WHERE tenant = ? AND rowid > ? ORDER BY rowid LIMIT ?",
        )
        .bind(tenant)
        .bind(after)
        .bind(limit)
        .fetch_all(store.reader())
        .await
        .map_err(fault)?;
        Ok(rows.into_iter().map(|(row, kind, digest, bytes)| (row, Body { kind, digest, bytes })).collect())
    }

    /// The signed head over the first `size` entries.
    ///
    /// # Errors
    /// `STORAGE_FAILED` or `LEDGER_GAP`.
    pub async fn head(
        &self,
        store: &Store,
        tenant: &str,
        size: u64,
        now: UnixMillis,
    ) -> Result<Envelope, Fault> {
        let leaves: Vec<Vec<u8>> =
            sqlx::query_scalar("SELECT leaf FROM log WHERE tenant = ? AND sequence < ? ORDER BY sequence")
                .bind(tenant)
                .bind(i64::try_from(size).unwrap_or(i64::MAX))
                .fetch_all(store.reader())
                .await
                .map_err(fault)?;
        if u64::try_from(leaves.len()) != Ok(size) {
            return Err(gap("the log was cut"));
        }
        let head = Head {
            zone: self.zone.clone(),
            tenant: tenant.to_owned(),
            size,
            root: tree::root(leaves.iter().map(Vec::as_slice)).to_vec(),
            signed_at: Some(now.to_proto()),
        };
        sign(&self.key, &head).map_err(Fault::internal)
    }
}
