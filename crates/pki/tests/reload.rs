//! The trust bundle in force follows its file, and a bad one leaves it as it is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use exequatur_pki::{Kind, Pki};
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::trust::v1::{Purpose, TrustBundle};
use exequatur_statement::{Expect, SigningKey, Trust, seal_bundle, sign};
use tempfile::TempDir;

/// Longer than between two looks at the file.
const LOOK: Duration = Duration::from_millis(1_600);

struct Scene {
    folder: TempDir,
    pki: Pki,
    trust: Trust,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::init(folder.path(), "test.example").unwrap();
        let trust = Trust::load(&folder.path().join("bundle.json"), &folder.path().join("root.pub")).unwrap();
        Self { folder, pki, trust }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn root(&self) -> SigningKey {
        SigningKey::load(&self.path().join("root.key")).unwrap()
    }

    /// Puts a changed bundle in place, signed by `root`.
    fn put(&self, root: &SigningKey, change: impl Fn(&mut TrustBundle)) {
        let mut bundle = TrustBundle::clone(&self.trust.bundle());
        change(&mut bundle);
        self.write(&seal_bundle(root, &bundle).unwrap());
    }

    fn write(&self, text: &str) {
        let temporary = self.path().join("next");
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, self.path().join("bundle.json")).unwrap();
    }

    fn eventually(&self, what: &str, holds: impl Fn(&Trust) -> bool) {
        for _ in 0..60 {
            if holds(&self.trust) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("not within six seconds: {what}");
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[test]
fn an_operator_comes_and_a_revoked_key_goes_without_a_restart() {
    let scene = Scene::new();
    // Clones see it too: each part of a process holds one.
    let held = scene.trust.clone();
    let out = scene.path().join("olga");
    let olga = scene.pki.issue(Kind::Operator, "olga", &["*".to_owned()], &out).unwrap();
    scene.eventually("the operator is known", |t| t.principal(&olga).is_some());

    let key = SigningKey::load(&out.join("definition.key")).unwrap();
    let definition = ToolDefinition { tool: "crm.read".into(), ..ToolDefinition::default() };
    let envelope = sign(&key, &definition).unwrap();
    let holds = |trust: &Trust| {
        let expect =
            Expect { issuer: Some(&olga), audience: None, tenant: None, now: now(), check_expiry: true };
        trust.verify::<ToolDefinition>(&envelope, expect).is_ok()
    };
    assert!(holds(&held));
    scene.pki.revoke(key.kid()).unwrap();
    scene.eventually("the key is refused", |t| !holds(t));
    assert!(!holds(&held));
    assert!(held.key(&olga, Purpose::Definition, None).is_none());
    // Revoked stays revoked, also by a second word.
    let when = |t: &Trust| t.bundle().keys.iter().find(|k| k.kid == key.kid()).unwrap().revoked_at;
    let first = when(&held);
    std::thread::sleep(Duration::from_millis(1_100));
    scene.pki.revoke(key.kid()).unwrap();
    scene.eventually("the next bundle", |t| t.bundle().version == 4);
    assert_eq!(when(&held), first);
    assert!(scene.pki.revoke("nobody").is_err());

    let journal = scene.pki.new_journal().unwrap();
    scene.eventually("the journal's new id", |t| t.journal() == journal);
}

#[test]
fn no_bad_bundle_takes_the_place_of_a_good_one() {
    let scene = Scene::new();
    scene.pki.new_journal().unwrap();
    scene.eventually("version 2", |t| t.bundle().version == 2);
    // As in earnest: throw-away keys may not come in later.
    scene.put(&scene.root(), |b| {
        b.version = 3;
        b.development = false;
    });
    scene.eventually("version 3", |t| t.bundle().version == 3);
    let good = scene.trust.bundle();

    let stranger = SigningKey::generate("root", Purpose::Unspecified, "root").unwrap();
    let root = scene.root();
    let cases: [(&str, &dyn Fn()); 9] = [
        ("of another root", &|| scene.put(&stranger, |b| b.version = 9)),
        ("older", &|| scene.put(&root, |b| b.version = 2)),
        ("another of the same version", &|| scene.put(&root, |b| b.journal = "other".into())),
        ("for development", &|| scene.put(&root, |b| (b.version, b.development) = (9, true))),
        ("of another realm", &|| {
            scene.put(&root, |b| {
                b.version = 9;
                b.realm = "other.example".into();
                b.keys.clear();
            });
        }),
        ("no JSON", &|| scene.write("hello")),
        ("empty", &|| scene.write("")),
        ("half", &|| {
            let text = seal_bundle(&root, &good).unwrap();
            scene.write(text.split_at(text.len() / 2).0);
        }),
        ("gone", &|| fs::remove_file(scene.path().join("bundle.json")).unwrap()),
    ];
    for (what, put) in cases {
        put();
        std::thread::sleep(LOOK);
        assert_eq!(scene.trust.bundle(), good, "{what}");
    }
    // The counter-case: it still follows.
    scene.put(&root, |b| b.version = 4);
    scene.eventually("version 4", |t| t.bundle().version == 4);
}
