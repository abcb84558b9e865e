//! What a PKI folder holds, what is issued into others, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use exequatur_identity::{Tls, TlsFiles};
use exequatur_pki::{Kind, Pki};
use exequatur_proto::trust::v1::{Purpose, Role};
use exequatur_statement::{PublicRoot, SigningKey, Trust};

const REALM: &str = "test.example";

fn all() -> Vec<String> {
    vec!["*".to_owned()]
}

fn trust(folder: &Path) -> Trust {
    Trust::load(&folder.join("bundle.json"), &folder.join("root.pub")).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_new_pki_holds_each_key_once_and_the_bundle_speaks_for_all() {
    let folder = tempfile::tempdir().unwrap();
    Pki::init(folder.path(), REALM).unwrap();
    let trust = trust(folder.path());
    assert_eq!((trust.realm().as_str(), trust.is_development()), (REALM, true));
    assert_eq!(trust.bundle().version, 1);
    assert_eq!(uuid::Uuid::parse_str(&trust.journal()).unwrap().get_version_num(), 7);

    let mut expected: Vec<String> = [
        "governance/run-token",
        "governance/warrant",
        "governance/ledger",
        "approval/decision",
        "approval/reservation",
        "approval/ledger",
        "credential-vault/ledger",
        "connector/outcome",
        "connector/ledger",
        "connector/seal",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.sort();
    let mut found = Vec::new();
    for path in files(&folder.path().join("zones")).iter().filter(|p| p.parent().unwrap().ends_with("keys")) {
        let zone = path.parent().unwrap().parent().unwrap().file_name().unwrap().to_str().unwrap();
        let purpose = path.file_stem().unwrap().to_str().unwrap();
        found.push(format!("{zone}/{purpose}"));
        if purpose == "seal" {
            let key = exequatur_seal::OpeningKey::load(path).unwrap();
            let holder = format!("spiffe://{REALM}/zone/connector");
            let public = trust.key(&holder, Purpose::Seal, Some(key.kid())).unwrap();
            assert_eq!(public.key, key.public());
        } else {
            let key = SigningKey::load(path).unwrap();
            assert_eq!(key.holder(), format!("spiffe://{REALM}/zone/{zone}"));
            let public = trust.key(key.holder(), key.purpose(), Some(key.kid())).unwrap();
            assert_eq!(public.key, key.public(), "{}", path.display());
        }
    }
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(trust.bundle().keys.len(), expected.len(), "and nothing more");
}

#[test]
fn what_is_private_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::init(folder.path(), REALM).unwrap();
    pki.issue(Kind::Operator, "olga", &all(), &folder.path().join("olga")).unwrap();
    let mut private = 0;
    for path in files(folder.path()) {
        if path.extension().is_some_and(|e| e == "key") {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
            private += 1;
        }
        assert!(path.extension().is_none_or(|e| e != "tmp"), "{} is left over", path.display());
    }
    // Root, CA, four TLS keys, ten zone keys, olga's TLS and definition keys.
    assert_eq!(private, 2 + 4 + 10 + 2);
}

#[test]
fn each_kind_gets_what_it_needs_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::init(folder.path(), REALM).unwrap();
    let out = |name: &str| folder.path().join(name);
    let tenants = vec!["t-blue".to_owned(), "t-green".to_owned()];

    let olga = pki.issue(Kind::Operator, "olga", &tenants, &out("olga")).unwrap();
    let rostering = pki.issue(Kind::Internal, "rostering", &all(), &out("rostering")).unwrap();
    let version = trust(folder.path()).bundle().version;
    let rita = pki.issue(Kind::Reviewer, "rita", &[], &out("rita")).unwrap();
    let trust = trust(folder.path());
    assert_eq!(trust.bundle().version, version, "a reviewer changes no bundle");
    assert_eq!(version, 3);

    let principal = trust.principal(&olga).unwrap();
    assert_eq!((principal.role(), &principal.tenants), (Role::Operator, &tenants));
    assert_eq!(trust.principal(&rostering).unwrap().role(), Role::InternalService);
    assert_eq!(trust.principal(&rita), None);
    let key = SigningKey::load(&out("olga").join("definition.key")).unwrap();
    assert_eq!((key.holder(), key.purpose()), (olga.as_str(), Purpose::Definition));
    assert_eq!(trust.key(&olga, Purpose::Definition, None).unwrap().key, key.public());
    for (name, id) in [("olga", &olga), ("rostering", &rostering), ("rita", &rita)] {
        let files = TlsFiles {
            certificate: out(name).join("tls.crt"),
            key: out(name).join("tls.key"),
            ca: folder.path().join("ca.crt"),
        };
        assert_eq!(Tls::load(&files, REALM).unwrap().own_id().unwrap().to_string(), *id);
        assert_eq!(out(name).join("definition.key").exists(), name == "olga");
    }
}

#[test]
fn names_tenants_and_realms_are_refused_at_issue_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::init(folder.path(), REALM).unwrap();
    let before = fs::read(folder.path().join("bundle.json")).unwrap();
    let out = folder.path().join("out");
    for name in ["", "deploy,root", "deploy root", "root ", "Root", "../x", "a/b", "x\ny", "-x", "é"] {
        for kind in [Kind::Operator, Kind::Reviewer, Kind::Internal] {
            assert!(pki.issue(kind, name, &all(), &out).is_err(), "{name:?}");
        }
    }
    let lists: [&[&str]; 8] =
        [&[], &[""], &["a,b"], &["a b"], &["t-green\nt-blue"], &["*", "a"], &["a", "*"], &["A"]];
    for list in lists {
        let list: Vec<String> = list.iter().map(|t| (*t).to_owned()).collect();
        for kind in [Kind::Operator, Kind::Internal] {
            assert!(pki.issue(kind, "olga", &list, &out).is_err(), "{list:?}");
        }
    }
    assert!(!out.exists(), "nothing is made");
    assert_eq!(fs::read(folder.path().join("bundle.json")).unwrap(), before);
    let long = "a".repeat(256);
    for realm in ["", "Dev", "a/b", "a:1", "a b", long.as_str()] {
        let other = tempfile::tempdir().unwrap();
        assert!(Pki::init(other.path(), realm).is_err(), "{realm:?}");
        assert_eq!(files(other.path()).len(), 0, "{realm:?}");
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::init(folder.path(), REALM).unwrap();
    let root = PublicRoot::load(&folder.path().join("root.pub")).unwrap();
    assert!(Pki::init(folder.path(), REALM).is_err());
    assert_eq!(PublicRoot::load(&folder.path().join("root.pub")).unwrap(), root);
    let out = folder.path().join("olga");
    pki.issue(Kind::Operator, "olga", &all(), &out).unwrap();
    assert!(pki.issue(Kind::Operator, "omar", &all(), &out).is_err());
    let id = format!("spiffe://{REALM}/person/omar");
    assert_eq!(trust(folder.path()).principal(&id), None);
    assert!(Pki::open(&out).is_err(), "a folder without a PKI");
}

#[test]
fn changes_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    Pki::init(folder.path(), REALM).unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let path = folder.path();
            scope.spawn(move || {
                let name = format!("o{n}");
                // Opened anew, as another process would.
                Pki::open(path).unwrap().issue(Kind::Operator, &name, &all(), &path.join(&name)).unwrap();
            });
        }
    });
    let bundle = trust(folder.path()).bundle();
    assert_eq!((bundle.version, bundle.principals.len()), (9, 8));
    assert_eq!(bundle.keys.iter().filter(|k| k.purpose() == Purpose::Definition).count(), 8);
}

#[test]
fn a_bundle_that_somebody_touched_is_not_signed_again() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::init(folder.path(), REALM).unwrap();
    let stranger = tempfile::tempdir().unwrap();
    Pki::init(stranger.path(), REALM).unwrap();
    fs::copy(stranger.path().join("bundle.json"), folder.path().join("bundle.json")).unwrap();
    assert!(pki.new_journal().is_err());
    assert!(pki.issue(Kind::Internal, "x", &all(), &folder.path().join("x")).is_err());
}
