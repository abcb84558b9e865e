//! The clock's mark over restarts: a store that was made and never used is no sign of a jump, and a mark of
//! long ago is.
#![allow(clippy::unwrap_used, reason = "tests may stop at once")]

use std::path::Path;
use std::time::Duration;

use exequatur_clock::UnixMillis;
use exequatur_fault::Reason;
use exequatur_store::{Store, migrations};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn open(folder: &Path) -> Store {
    let schema = migrations(&[(1, "t", "CREATE TABLE t (x INTEGER)")]);
    Store::open(&folder.join("zone.db"), &schema).await.unwrap()
}

async fn insert(store: &Store) -> UnixMillis {
    let mut tx = store.begin().await.unwrap();
    sqlx::query("INSERT INTO t VALUES (1)").execute(&mut *tx).await.unwrap();
    let now = tx.now();
    tx.commit().await.unwrap();
    now
}

#[tokio::test]
async fn a_start_before_the_first_write_is_no_jump() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.begin_untimed().await.unwrap().commit().await.unwrap();
    let store = open(folder.path()).await;
    assert!(store.clock().now().is_ok());
    let at = insert(&store).await;
    // Nor does such a write set the mark back.
    store.begin_untimed().await.unwrap().commit().await.unwrap();
    drop(store);
    assert!(open(folder.path()).await.clock().now().unwrap() >= at);
}

#[tokio::test]
async fn a_start_long_after_the_last_write_waits_for_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let now = store.clock().now().unwrap();
    let long_ago = UnixMillis(now.0 - i64::try_from((DAY * 2).as_millis()).unwrap());
    store.begin_at(long_ago).await.unwrap().commit().await.unwrap();
    drop(store);
    let store = open(folder.path()).await;
    assert_eq!(store.begin().await.err().unwrap().reason(), Reason::ClockUntrusted);
    let _ = store.clock().acknowledge();
    insert(&store).await;
}
