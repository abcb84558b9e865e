//! What every implementation of [`CatalogStore`](super::CatalogStore) must do.

use exequatur_clock::UnixMillis;
use exequatur_proto::credential::v1::Reuse;
use exequatur_store::Store;

use super::{Backend, CatalogStore, Lease, MIGRATIONS, Pin, Reseal, Sqlite};

fn pin(tool: &str, digest: u8) -> Pin {
    Pin {
        tool: tool.into(),
        tool_digest: vec![digest; 32],
        destination: "api.example.org:443".into(),
        attestation: 1,
    }
}

fn lease(id: &str, attempt: u32) -> Lease {
    Lease {
        lease: id.into(),
        tenant: "t-green".into(),
        credential: "sms".into(),
        version: 1,
        plan_digest: vec![7; 32],
        index: 0,
        attempt,
        expires_at: UnixMillis(9),
        returned: false,
        vault_lease: String::new(),
        run: "run-1".into(),
        reuse: Reuse::PerRun,
        kept: false,
        reuse_of: String::new(),
    }
}

async fn behaves(store: &Store, catalog: &dyn CatalogStore) {
    let mut tx = store.begin().await.unwrap();
    // Versions grow by one.
    assert!(!catalog.put(&mut tx, "t-green", "sms", 2, Backend::Sealed, b"x").await.unwrap());
    assert!(catalog.put(&mut tx, "t-green", "sms", 1, Backend::Sealed, b"one").await.unwrap());
    assert!(!catalog.put(&mut tx, "t-green", "sms", 1, Backend::Sealed, b"again").await.unwrap());
    assert!(catalog.put(&mut tx, "t-green", "sms", 2, Backend::Sealed, b"two").await.unwrap());
    assert_eq!(catalog.value(&mut tx, "t-green", "sms", 2).await.unwrap().unwrap().1, b"two");
    assert!(catalog.value(&mut tx, "t-green", "sms", 1).await.unwrap().is_none());
    assert!(catalog.value(&mut tx, "t-blue", "sms", 2).await.unwrap().is_none(), "no query crosses a tenant");

    // Leave to reseal is for one version, and is over with the resealing.
    let leave = |kid: &str| Reseal { version: 2, kid: kid.into(), expires_at: UnixMillis(7) };
    assert!(catalog.reseal_leave(&mut tx, "t-green", "sms").await.unwrap().is_none());
    catalog.allow_reseal(&mut tx, "t-green", "sms", &leave("seal-2")).await.unwrap();
    catalog.allow_reseal(&mut tx, "t-green", "sms", &leave("seal-3")).await.unwrap();
    assert!(catalog.reseal_leave(&mut tx, "t-blue", "sms").await.unwrap().is_none());
    assert_eq!(catalog.reseal_leave(&mut tx, "t-green", "sms").await.unwrap(), Some(leave("seal-3")));
    assert!(catalog.reseal(&mut tx, "t-green", "sms", 2, b"two again").await.unwrap());
    assert_eq!(catalog.value(&mut tx, "t-green", "sms", 2).await.unwrap().unwrap().1, b"two again");
    assert!(catalog.reseal_leave(&mut tx, "t-green", "sms").await.unwrap().is_none());
    assert!(!catalog.reseal(&mut tx, "t-green", "sms", 1, b"old").await.unwrap());

    // A new digest replaces the pin; a pin without a value is shown with version 0.
    catalog.pin(&mut tx, "t-green", "sms.send", &[("sms".into(), pin("sms.send", 1))]).await.unwrap();
    catalog.pin(&mut tx, "t-green", "sms.send", &[("other".into(), pin("sms.send", 2))]).await.unwrap();
    assert!(catalog.entry(&mut tx, "t-green", "sms").await.unwrap().unwrap().pins.is_empty());
    let other = catalog.entry(&mut tx, "t-green", "other").await.unwrap().unwrap();
    assert_eq!((other.version, other.pins.as_slice()), (0, &[pin("sms.send", 2)][..]));
    let names: Vec<_> = catalog
        .entries(&mut tx, "t-green", "", 10)
        .await
        .unwrap()
        .into_iter()
        .map(|e| e.credential)
        .collect();
    assert_eq!(names, ["other", "sms"]);
    assert_eq!(catalog.entries(&mut tx, "t-green", "other", 10).await.unwrap().len(), 1);

    // One lease per attempt and credential, for ever.
    assert!(catalog.lease(&mut tx, &lease("l-1", 1)).await.unwrap());
    assert!(!catalog.lease(&mut tx, &lease("l-2", 1)).await.unwrap());
    assert!(catalog.lease(&mut tx, &lease("l-3", 2)).await.unwrap());
    assert!(catalog.give_back(&mut tx, "t-blue", "l-1", "").await.unwrap().is_none());
    assert_eq!(
        catalog.give_back(&mut tx, "t-green", "l-1", "database/creds/x/1").await.unwrap().unwrap().attempt,
        1
    );

    assert!(catalog.give_back(&mut tx, "t-green", "l-1", "database/creds/x/1").await.unwrap().is_none());
    assert!(!catalog.lease(&mut tx, &lease("l-4", 1)).await.unwrap(), "a returned lease is spent too");

    // What is kept is kept once, remembers its lease at Vault, and is overdue like any other.
    let id = "l-3";
    assert_eq!(catalog.find_lease(&mut tx, "t-green", id).await.unwrap().unwrap(), lease(id, 2));
    assert!(catalog.find_lease(&mut tx, "t-blue", id).await.unwrap().is_none());
    assert!(!catalog.keep(&mut tx, "t-blue", id, "x").await.unwrap());
    assert!(catalog.keep(&mut tx, "t-green", id, "database/creds/x/3").await.unwrap());
    assert!(!catalog.keep(&mut tx, "t-green", id, "other").await.unwrap());
    let overdue = catalog.overdue(&mut tx, 10).await.unwrap();
    assert_eq!(overdue.iter().map(|l| (l.lease.as_str(), l.kept)).collect::<Vec<_>>(), [(id, true)]);
    let ended = catalog.give_back(&mut tx, "t-green", id, "").await.unwrap().unwrap();
    assert_eq!(ended.vault_lease, "database/creds/x/3");
    assert!(!catalog.keep(&mut tx, "t-green", "l-1", "x").await.unwrap(), "a returned lease stays returned");

    assert!(catalog.remove(&mut tx, "t-green", "sms").await.unwrap());
    assert!(!catalog.remove(&mut tx, "t-green", "sms").await.unwrap());
    assert!(catalog.entry(&mut tx, "t-green", "sms").await.unwrap().is_none());
}

#[tokio::test]
async fn sqlite_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("zone.db"), &MIGRATIONS).await.unwrap();
    behaves(&store, &Sqlite).await;
}
