//! Certificates, keys and CAs are replaced while the process runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{Realm, call, call_as, call_with, eventually, serve, zone};
use exequatur_identity::channel;
use exequatur_pki::{LeafSpec, issue_leaf};

/// Longer than between two looks at the files.
const LOOK: Duration = Duration::from_millis(1_600);

fn copy(from: &Path, to: &Path, names: &[&str]) {
    for name in names {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[tokio::test]
async fn a_new_connection_takes_the_new_certificate_and_the_old_one_lives_on() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), false).await;
    let approval = realm.zone_tls("approval");
    let kept = channel(&approval, &served.address, zone("governance"));
    call(kept.clone()).await.unwrap();
    let before = served.last().certificate_digest;

    let folder = realm.zone_folder("approval");
    issue_leaf(realm.path(), &folder, &LeafSpec::zone(&zone("approval").to_string())).unwrap();
    eventually("the client presents its new certificate", || async {
        call_as(&approval, &served, &zone("governance")).await.unwrap();
        served.last().certificate_digest != before
    })
    .await;
    call(kept).await.unwrap();
    assert_eq!(served.last().certificate_digest, before, "the old connection is what it was");
}

#[tokio::test]
async fn after_the_ca_changed_the_old_one_opens_nothing() {
    let (realm, next) = (Realm::new(), Realm::new());
    // The server's own copies; the realm's CA stays for its old clients.
    let own = realm.path().join("server");
    fs::create_dir(&own).unwrap();
    copy(&realm.zone_folder("governance"), &own, &["tls.crt", "tls.key"]);
    copy(realm.path(), &own, &["ca.crt"]);
    let mut files = realm.files(&own);
    files.ca = own.join("ca.crt");
    let tls = exequatur_identity::Tls::load(&files, common::REALM).unwrap();
    let served = serve(&tls, false).await;

    let old = realm.zone_tls("approval");
    let kept = channel(&old, &served.address, zone("governance"));
    call(kept.clone()).await.unwrap();
    let new = next.zone_tls("approval");
    assert!(call_as(&new, &served, &zone("governance")).await.is_err());

    copy(&next.zone_folder("governance"), &own, &["tls.crt", "tls.key"]);
    copy(next.path(), &own, &["ca.crt"]);
    eventually("the server takes the new CA", || async {
        call_as(&new, &served, &zone("governance")).await.is_ok()
    })
    .await;
    let count = served.ids().len();
    assert!(call_as(&old, &served, &zone("governance")).await.is_err());
    // Also one that would trust the new server: its own chain is of the old CA.
    assert!(call_with(&next, Some(&realm.zone_folder("approval")), &served).await.is_err());
    assert_eq!(served.ids().len(), count, "no old certificate reached a handler");
    // A connection from before lives until its age ends it; the server above sets that age.
    call(kept).await.unwrap();
}

#[tokio::test]
async fn files_that_do_not_fit_leave_the_last_ones_in_force_and_good_ones_follow() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), false).await;
    let folder = realm.zone_folder("approval");
    let approval = realm.zone_tls("approval");
    let as_approval = async || {
        call_as(&approval, &served, &zone("governance")).await.unwrap();
        assert_eq!(served.last().id, zone("approval"));
        served.last().certificate_digest
    };
    let first = as_approval().await;

    let next = realm.leaf("next", &LeafSpec::zone(&zone("approval").to_string()));
    // A certificate whose key has not come yet.
    copy(&next, &folder, &["tls.crt"]);
    tokio::time::sleep(LOOK).await;
    assert_eq!(as_approval().await, first);
    // The identity of another zone.
    copy(&realm.zone_folder("connector"), &folder, &["tls.crt", "tls.key"]);
    tokio::time::sleep(LOOK).await;
    assert_eq!(as_approval().await, first);
    // Nothing at all.
    fs::remove_file(folder.join("tls.key")).unwrap();
    fs::write(folder.join("tls.crt"), "").unwrap();
    tokio::time::sleep(LOOK).await;
    assert_eq!(as_approval().await, first);
    // At last both.
    copy(&next, &folder, &["tls.crt", "tls.key"]);
    eventually("the good pair takes hold", || async { as_approval().await != first }).await;
}
