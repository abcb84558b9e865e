//! The log on real files: chain, cut, swap, append-only, full disk, outbox order.
#![allow(clippy::unwrap_used, reason = "tests may stop at once")]

use std::sync::Arc;
use std::sync::Mutex;

use exequatur_fault::{Fault, Reason};
use exequatur_proto::ledger::v1::Refusal;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::trust::v1::Purpose;
use exequatur_statement::SigningKey;
use exequatur_store::Store;
use tokio::sync::{Notify, watch};

use crate::{Ledger, leaf, outbox, root, schema};

const ZONE: &str = "spiffe://test.exequatur/zone/approval";

async fn open(folder: &tempfile::TempDir) -> (Store, Ledger) {
    let store = Store::open(&folder.path().join("zone.db"), &sqlx::migrate::Migrator::DEFAULT).await.unwrap();
    schema(&store).await.unwrap();
    let key = SigningKey::generate(ZONE, Purpose::Ledger, "approval-ledger-1").unwrap();
    (store, Ledger::new(ZONE.into(), Arc::new(key)))
}

fn body(reason: &str) -> Body {
    Body::Refusal(Refusal { reason: reason.into(), ..Refusal::default() })
}

async fn append(store: &Store, ledger: &Ledger, tenant: &str, count: usize) {
    for n in 0..count {
        let mut tx = store.begin().await.unwrap();
        ledger.append(&mut tx, tenant, body(&n.to_string())).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_chain_is_whole_and_a_dropped_transaction_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ledger) = open(&folder).await;
    append(&store, &ledger, "t-green", 5).await;
    {
        let mut tx = store.begin().await.unwrap();
        ledger.append(&mut tx, "t-green", body("dropped")).await.unwrap();
    }
    append(&store, &ledger, "t-blue", 2).await;
    assert_eq!(ledger.size(&store, "t-green").await.unwrap(), 5);
    ledger.verify_own(&store).await.unwrap();
    let first = ledger.entry(&store, "t-blue", 0).await.unwrap();
    assert!(first.is_some() && ledger.entry(&store, "t-blue", 2).await.unwrap().is_none());
}

#[tokio::test]
async fn entries_can_be_neither_changed_nor_deleted_and_a_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ledger) = open(&folder).await;
    append(&store, &ledger, "t-green", 50).await;
    for statement in
        ["UPDATE log SET leaf = x'00'", "DELETE FROM log WHERE sequence > 46", "DELETE FROM log_head"]
    {
        let mut tx = store.begin().await.unwrap();
        assert!(sqlx::query(statement).execute(&mut *tx).await.is_err(), "{statement}");
    }
    // Somebody with the file in hand is not stopped by a trigger, but found at the next start.
    let mut tx = store.begin().await.unwrap();
    for statement in ["DROP TRIGGER log_no_delete", "DELETE FROM log WHERE sequence > 46"] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }
    tx.commit().await.unwrap();
    let fault = ledger.verify_own(&store).await.unwrap_err();
    assert_eq!(fault.reason(), Reason::LedgerGap);
    assert_eq!(fault.metadata().get("record").unwrap(), "47");
}

#[tokio::test]
async fn a_full_disk_fails_the_append_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ledger) = open(&folder).await;
    append(&store, &ledger, "t-green", 3).await;
    let mut tx = store.begin().await.unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *tx).await.unwrap();
    let limit = format!("PRAGMA max_page_count = {}", pages + 1);
    sqlx::query(sqlx::AssertSqlSafe(limit)).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    let mut failed = None;
    for n in 0..200 {
        let mut tx = store.begin().await.unwrap();
        let appended = ledger.append(&mut tx, "t-green", body(&"x".repeat(500))).await;
        let result = match appended {
            Ok(_) => tx.commit().await,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = result {
            failed = Some((n, fault));
            break;
        }
    }
    let (written, fault) = failed.unwrap();
    assert_eq!(fault.reason(), Reason::StorageFailed);
    assert!(fault.is_retryable());
    assert_eq!(ledger.size(&store, "t-green").await.unwrap(), 3 + written);
    ledger.verify_own(&store).await.unwrap();
    // Space comes back: work goes on without repair.
    let mut tx = store.begin().await.unwrap();
    sqlx::query("PRAGMA max_page_count = 1000000").execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    append(&store, &ledger, "t-green", 1).await;
    ledger.verify_own(&store).await.unwrap();
}

#[test]
fn the_tree_hash_is_rfc_6962s() {
    let hex = |d: exequatur_canonical::Digest| d.to_string();
    assert_eq!(
        hex(root(std::iter::empty())),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    // The example trees of certificate-transparency's reference tests: leaves "", 00, 10, 2021, ...
    let leaves: Vec<Vec<u8>> =
        [&[][..], &[0], &[0x10], &[0x20, 0x21], &[0x30, 0x31], &[0x40, 0x41, 0x42, 0x43]]
            .iter()
            .map(|l| leaf(l).to_vec())
            .collect();
    let of = |n: usize| hex(root(leaves.iter().take(n).map(Vec::as_slice)));
    assert_eq!(of(1), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    assert_eq!(of(2), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
    assert_eq!(of(3), "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77");
    assert_eq!(of(4), "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7");
}

#[tokio::test]
async fn the_outbox_keeps_order_per_key_and_forgets_only_what_was_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(&folder).await;
    let mut tx = store.begin().await.unwrap();
    for (key, payload) in [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")] {
        outbox::push(&mut tx, "k", key, payload.as_bytes()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (stop, stopped) = watch::channel(false);
    let log = Arc::clone(&seen);
    let running =
        tokio::spawn(outbox::run(store.clone(), Arc::new(Notify::new()), stopped, move |message| {
            let log = Arc::clone(&log);
            async move {
                let mut log = log.lock().unwrap();
                let text = format!("{}{}", message.key, String::from_utf8(message.payload).unwrap());
                let first = !log.contains(&text);
                log.push(text);
                // Everything of `a` fails once.
                if message.key == "a" && first {
                    Err(Fault::new(Reason::Unavailable, "not now"))
                } else {
                    Ok(())
                }
            }
        }));
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    stop.send_replace(true);
    running.await.unwrap();
    let of =
        |key: &str| seen.lock().unwrap().iter().filter(|t| t.starts_with(key)).cloned().collect::<Vec<_>>();
    assert_eq!(of("a"), ["a1", "a1", "a2", "a2"]);
    assert_eq!(of("b"), ["b1", "b2"]);
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM outbox").fetch_one(store.reader()).await.unwrap();
    assert_eq!(left, 0);
}
