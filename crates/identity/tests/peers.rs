//! Who is let in, and by which name, over real mutual TLS.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod common;

use std::time::{Duration, Instant};

use common::{REALM, Realm, call_as, call_with, serve, zone};
use exequatur_identity::{SpiffeId, Tls, TlsFiles};
use exequatur_pki::{Kind, LeafSpec, Pki};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn both_sides_know_each_other_by_their_one_uri() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), false).await;
    for name in ["governance", "approval", "credential-vault", "connector"] {
        call_as(&realm.zone_tls(name), &served, &zone("governance")).await.unwrap();
        assert_eq!(served.last().id, zone(name));
    }
    let olga = realm.path().join("olga");
    Pki::open(realm.path()).unwrap().issue(Kind::Operator, "olga", &["*".to_owned()], &olga).unwrap();
    call_as(&realm.tls(&olga), &served, &zone("governance")).await.unwrap();
    assert_eq!(served.last().id.to_string(), format!("spiffe://{REALM}/person/olga"));
    // A foreign client with the same certificate is the same peer.
    let own = served.last().certificate_digest;
    call_with(&realm, Some(&olga), &served).await.unwrap();
    assert_eq!(served.last().certificate_digest, own);
}

#[tokio::test]
async fn a_client_without_a_good_chain_does_not_get_through_the_handshake() {
    let (realm, other) = (Realm::new(), Realm::new());
    let governance = zone("governance").to_string();
    let leaf = |name: &str, spec: LeafSpec| (name.to_owned(), Some(realm.leaf(name, &spec)));
    let cases = [
        ("wrong CA".to_owned(), Some(other.zone_folder("governance"))),
        leaf("expired", LeafSpec { days: -2, ..LeafSpec::client(&governance) }),
        leaf("may only serve", LeafSpec { client: false, ..LeafSpec::zone(&governance) }),
        ("no certificate".to_owned(), None),
    ];
    for anonymous in [false, true] {
        let served = serve(&realm.zone_tls("governance"), anonymous).await;
        for (name, folder) in &cases {
            let answer = call_with(&realm, folder.as_deref(), &served).await;
            if folder.is_none() && anonymous {
                answer.unwrap();
                assert_eq!(served.ids(), [None], "an anonymous client has no name");
            } else {
                assert!(answer.is_err(), "{name}, anonymous {anonymous}");
                assert_eq!(served.ids(), [] as [Option<String>; 0], "{name}");
            }
        }
        // The counter-case: the same server takes a good one.
        call_with(&realm, Some(&realm.zone_folder("approval")), &served).await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_of_our_ca_that_names_nobody_of_ours_is_refused() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), true).await;
    let governance = zone("governance").to_string();
    let spec = |uris: &[&str]| LeafSpec {
        uris: uris.iter().map(|u| (*u).to_owned()).collect(),
        // Nobody reads it.
        common_name: governance.clone(),
        ..LeafSpec::client("x")
    };
    let second = format!("{governance}2");
    let cases = [
        ("two URIs", spec(&[&governance, &second])),
        ("the same URI twice", spec(&[&governance, &governance])),
        ("no URI, the name in CN", spec(&[])),
        ("a web address", spec(&["https://test.example/zone/governance"])),
        ("two names in one", spec(&["spiffe://test.example/person/deploy,root"])),
        ("two names, with a blank", spec(&["spiffe://test.example/person/deploy root"])),
        ("a trailing blank", spec(&["spiffe://test.example/person/root "])),
        ("a line end", spec(&["spiffe://test.example/person/root\nroot"])),
        ("a way up", spec(&["spiffe://test.example/person/../zone/governance"])),
        ("a query", spec(&["spiffe://test.example/zone/governance?x"])),
        ("other case", spec(&["spiffe://test.example/zone/Governance"])),
        ("an unknown zone", spec(&["spiffe://test.example/zone/orchestrator"])),
        ("no use named", LeafSpec { client: false, server: false, ..LeafSpec::zone(&governance) }),
    ];
    for (name, spec) in cases {
        let folder = realm.leaf(name, &spec);
        let error = call_with(&realm, Some(&folder), &served).await.unwrap_err();
        assert!(error.contains("Unauthenticated"), "{name}: {error}");
        assert_eq!(served.ids(), [] as [Option<String>; 0], "{name}");
        // Nor does a process start with it.
        assert!(Tls::load(&realm.files(&folder), REALM).is_err(), "{name}");
    }
}

#[tokio::test]
async fn another_trust_domain_stays_another_whatever_its_common_name_says() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), false).await;
    let foreign = "spiffe://other.example/zone/governance";
    let spec = LeafSpec { common_name: "governance".into(), ..LeafSpec::client(foreign) };
    let folder = realm.leaf("foreign", &spec);
    call_with(&realm, Some(&folder), &served).await.unwrap();
    // The layer above refuses every other realm; here it must be told the truth.
    let id = served.last().id;
    assert_eq!((id.to_string().as_str(), id.trust_domain()), (foreign, "other.example"));
    assert_ne!(id, zone("governance"));
    // Our own processes do not even start with it.
    let fault = Tls::load(&realm.files(&folder), REALM).unwrap_err();
    assert!(fault.to_string().contains("another realm"), "{fault}");
    // A federated CA that issues a name of ours is another CA.
    let other = Realm::new();
    assert!(call_with(&realm, Some(&other.zone_folder("governance")), &served).await.is_err());
    assert_eq!(served.ids().len(), 1);
}

#[tokio::test]
async fn a_server_must_be_exactly_the_expected_one() {
    let (realm, other) = (Realm::new(), Realm::new());
    let connector = realm.zone_tls("connector");
    let approval = serve(&realm.zone_tls("approval"), false).await;
    call_as(&connector, &approval, &zone("approval")).await.unwrap();

    let error = call_as(&connector, &approval, &zone("credential-vault")).await.unwrap_err();
    assert!(error.contains("/zone/approval`, not `"), "{error}");
    let abroad: SpiffeId = "spiffe://other.example/zone/approval".parse().unwrap();
    assert!(call_as(&connector, &approval, &abroad).await.is_err());

    // The right name from another CA.
    let posed = serve(&other.zone_tls("approval"), true).await;
    assert!(call_as(&connector, &posed, &zone("approval")).await.is_err());
    // The right name and CA, but it may only call, or is over.
    for (name, spec) in [
        ("client only", LeafSpec::client(&zone("approval").to_string())),
        ("expired", LeafSpec { days: -2, ..LeafSpec::zone(&zone("approval").to_string()) }),
    ] {
        let served = serve(&realm.tls(&realm.leaf(name, &spec)), true).await;
        assert!(call_as(&connector, &served, &zone("approval")).await.is_err(), "{name}");
        assert_eq!(served.ids(), [] as [Option<String>; 0], "{name}");
    }
    // An agent without a certificate checks the server all the same.
    let agent = Tls::anonymous(&realm.path().join("ca.crt"), REALM).unwrap();
    let open = serve(&realm.zone_tls("governance"), true).await;
    call_as(&agent, &open, &zone("governance")).await.unwrap();
    assert!(call_as(&agent, &open, &zone("approval")).await.is_err());
    assert_eq!(agent.own_id(), None);
}

#[tokio::test]
async fn files_that_do_not_fit_are_named() {
    let realm = Realm::new();
    let good = realm.files(&realm.zone_folder("governance"));
    let other = realm.files(&realm.zone_folder("approval"));
    let junk = realm.path().join("junk.pem");
    std::fs::write(&junk, "junk").unwrap();
    let missing = realm.path().join("missing.pem");
    let with = |change: &dyn Fn(&mut TlsFiles)| {
        let mut files = good.clone();
        change(&mut files);
        Tls::load(&files, REALM).unwrap_err().to_string()
    };
    let cases = [
        (with(&|f| f.certificate.clone_from(&junk)), "junk.pem"),
        (with(&|f| f.certificate.clone_from(&missing)), "missing.pem"),
        (with(&|f| f.key.clone_from(&junk)), "junk.pem"),
        (with(&|f| f.key.clone_from(&missing)), "missing.pem"),
        (with(&|f| f.key.clone_from(&other.key)), "do not fit together"),
        (with(&|f| f.ca.clone_from(&junk)), "junk.pem"),
        (with(&|f| f.ca.clone_from(&missing)), "missing.pem"),
    ];
    for (text, want) in cases {
        assert!(text.contains(want), "{text} does not name {want}");
    }
    assert_eq!(Tls::load(&good, REALM).unwrap().own_id(), Some(zone("governance")));
}

#[tokio::test]
async fn only_tls_1_3_and_http_2_are_spoken() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), true).await;
    let connect = async |version: &'static rustls::SupportedProtocolVersion, protocol: &[u8]| {
        use rustls_pki_types::pem::PemObject as _;
        let ca = rustls_pki_types::CertificateDer::from_pem_file(realm.path().join("ca.crt")).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(ca).unwrap();
        let mut config = rustls::ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(&served.address).await.unwrap();
        let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.map(drop)
    };
    connect(&rustls::version::TLS13, b"h2").await.unwrap();
    assert!(connect(&rustls::version::TLS12, b"h2").await.is_err());
    assert!(connect(&rustls::version::TLS13, b"http/1.1").await.is_err());
}

#[tokio::test]
async fn silent_connections_keep_nobody_waiting_and_are_closed() {
    let realm = Realm::new();
    let served = serve(&realm.zone_tls("governance"), false).await;
    let started = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(&served.address).await.unwrap());
    }
    call_as(&realm.zone_tls("approval"), &served, &zone("governance")).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    let mut byte = [0];
    let closed = tokio::time::timeout(Duration::from_secs(20), silent[0].read(&mut byte)).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    assert!(started.elapsed() >= Duration::from_secs(9), "a slow client gets its time");
}
