//! What every implementation of [`JournalStore`](super::JournalStore) must do.

use exequatur_clock::UnixMillis;
use exequatur_lifecycle::Journal;
use exequatur_store::Store;

use super::{JournalStore, Key, MIGRATIONS, Row, Sqlite, Subject};

fn row(index: u32) -> Row {
    Row {
        key: Key { tenant: "t-green".into(), plan_digest: vec![7; 32], index },
        run: "r-1".into(),
        tool: "sms.send".into(),
        attempt: 1,
        state: Journal::Prepared,
        action_digest: vec![1; 32],
        wire_digest: vec![2; 32],
        warrant: "w-1".into(),
        warrant_digest: vec![3; 32],
        held: true,
        reads: false,
        process: "p-1".into(),
        start_by: UnixMillis(5),
        settle_at: UnixMillis(0),
        leases: vec!["l-1".into(), "l-2".into()],
        vault_leases: vec![String::new(), "database/creds/a/1".into()],
        outcome: None,
        result: None,
    }
}

async fn behaves(store: &Store, journal: &dyn JournalStore) {
    let mut tx = store.begin().await.unwrap();
    assert_eq!(journal.id(&mut tx, "j-1").await.unwrap(), "j-1");
    assert_eq!(journal.id(&mut tx, "j-2").await.unwrap(), "j-1", "an id is adopted once");

    let first = row(0);
    assert!(journal.open(&mut tx, &first, None).await.unwrap());
    assert!(!journal.open(&mut tx, &first, None).await.unwrap(), "a row is opened once");
    assert_eq!(journal.get(&mut tx, &first.key).await.unwrap().unwrap(), first);

    // PREPARED → DISPATCHED and PREPARED → ABORTED exclude each other.
    let dispatched = Row { state: Journal::Dispatched, settle_at: UnixMillis(9), ..first.clone() };
    assert!(journal.advance(&mut tx, &dispatched, Journal::Prepared).await.unwrap());
    let aborted = Row { state: Journal::Aborted, ..first.clone() };
    assert!(!journal.advance(&mut tx, &aborted, Journal::Prepared).await.unwrap());
    assert_eq!(journal.get(&mut tx, &first.key).await.unwrap().unwrap(), dispatched);
    assert_eq!(journal.unfinished(&mut tx).await.unwrap(), std::slice::from_ref(&dispatched));

    // Only the attempt before, aborted, opens the next one.
    let other = row(1);
    assert!(journal.open(&mut tx, &other, None).await.unwrap());
    let second = Row { attempt: 2, ..other.clone() };
    assert!(!journal.open(&mut tx, &second, Some((1, Journal::Aborted))).await.unwrap());
    let ended = Row { state: Journal::Aborted, outcome: Some(vec![9]), ..other.clone() };
    assert!(journal.advance(&mut tx, &ended, Journal::Prepared).await.unwrap());
    assert!(journal.open(&mut tx, &second, Some((1, Journal::Aborted))).await.unwrap());
    assert!(!journal.open(&mut tx, &second, Some((1, Journal::Aborted))).await.unwrap());
    assert!(
        journal.open(&mut tx, &Row { attempt: 6, ..second }, Some((2, Journal::Prepared))).await.is_err()
    );

    let tenant = |name: &str| name.to_owned();
    journal.cancel(&mut tx, &tenant("t-green"), &Subject::Run("r-1".into())).await.unwrap();
    journal.cancel(&mut tx, &tenant("t-green"), &Subject::Run("r-1".into())).await.unwrap();
    let run = [Subject::Plan(vec![7; 32]), Subject::Run("r-1".into())];
    assert!(journal.is_cancelled(&mut tx, "t-green", &run).await.unwrap());
    assert!(!journal.is_cancelled(&mut tx, "t-blue", &run).await.unwrap(), "no query crosses a tenant");
    assert!(!journal.is_cancelled(&mut tx, "t-green", &[Subject::Run("r-2".into())]).await.unwrap());
    assert_eq!(journal.of_tenant(&mut tx, "t-green").await.unwrap().len(), 2);
    assert!(journal.of_tenant(&mut tx, "t-blue").await.unwrap().is_empty());
}

#[tokio::test]
async fn sqlite_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("zone.db"), &MIGRATIONS).await.unwrap();
    behaves(&store, &Sqlite).await;
}
