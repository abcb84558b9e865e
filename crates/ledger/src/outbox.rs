//! What must go out after a transaction: at least once, in order per key, across restarts.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exequatur_fault::Fault;
use exequatur_store::{Store, Tx, fault};
use tokio::sync::{Notify, watch};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);
const PAGE: u32 = 64;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Grows.
    pub number: i64,
    /// What it is; the zone's own word.
    pub kind: String,
    /// Messages of one key go out in order.
    pub key: String,
    /// What goes out.
    pub payload: Vec<u8>,
}

/// Puts a message into the outbox of the caller's transaction; wake the runner after the commit.
///
/// # Errors
/// `STORAGE_FAILED`.
pub async fn push(tx: &mut Tx, kind: &str, key: &str, payload: &[u8]) -> Result<(), Fault> {
    sqlx::query("INSERT INTO outbox (kind, key, payload) VALUES (?, ?, ?)")
        .bind(kind)
        .bind(key)
        .bind(payload)
        .execute(&mut **tx)
        .await
        .map(drop)
        .map_err(fault)
}

/// Delivers until told to stop. A message is forgotten only after `deliver` said `Ok`; after an
/// error its key waits, with growing pauses, and other keys go on.
pub async fn run<F, R>(store: Store, wake: Arc<Notify>, mut shutdown: watch::Receiver<bool>, deliver: F)
where
    F: Fn(Message) -> R,
    R: Future<Output = Result<(), Fault>>,
{
    let mut waiting: HashMap<String, (Instant, Duration)> = HashMap::new();
    loop {
        match round(&store, &mut waiting, &deliver).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the outbox cannot be read"),
        }
        let pause = waiting
            .values()
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
            .min()
            .unwrap_or(LAST_RETRY)
            .max(Duration::from_millis(10));
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
            _ = shutdown.wait_for(|stop| *stop) => return,
        }
    }
}

/// One pass over the oldest message of each key; whether anything went out.
async fn round<F, R>(
    store: &Store,
    waiting: &mut HashMap<String, (Instant, Duration)>,
    deliver: &F,
) -> Result<bool, Fault>
where
    F: Fn(Message) -> R,
    R: Future<Output = Result<(), Fault>>,
{
    let mut progress = false;
    let mut after = 0;
    let mut seen = HashSet::new();
    loop {
        let page = page(store, after).await?;
        let Some(last) = page.last() else { return Ok(progress) };
        after = last.number;
        for message in page {
            let due = waiting.get(&message.key).is_none_or(|(at, _)| *at <= Instant::now());
            if !seen.insert(message.key.clone()) || !due {
                continue;
            }
            let (number, key, kind) = (message.number, message.key.clone(), message.kind.clone());
            match deliver(message).await {
                Ok(()) => {
                    forget(store, number).await?;
                    waiting.remove(&key);
                    progress = true;
                }
                Err(error) => {
                    let pause = waiting.get(&key).map_or(FIRST_RETRY, |(_, p)| (*p * 2).min(LAST_RETRY));
                    tracing::info!(%kind, reason = error.reason_str(), "not delivered yet");
                    waiting.insert(key, (Instant::now() + pause, pause));
                }
            }
        }
    }
}

async fn page(store: &Store, after: i64) -> Result<Vec<Message>, Fault> {
    let rows: Vec<(i64, String, String, Vec<u8>)> = sqlx::query_as(
        "SELECT number, kind, key, payload FROM outbox WHERE number > ? ORDER BY number LIMIT ?",
    )
    .bind(after)
    .bind(PAGE)
    .fetch_all(store.reader())
    .await
    .map_err(fault)?;
    Ok(rows.into_iter().map(|(number, kind, key, payload)| Message { number, kind, key, payload }).collect())
}

async fn forget(store: &Store, number: i64) -> Result<(), Fault> {
    let mut tx = store.begin().await?;
    sqlx::query("DELETE FROM outbox WHERE number = ?").bind(number).execute(&mut *tx).await.map_err(fault)?;
    tx.commit().await
}
