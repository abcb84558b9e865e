//! A zone's certificate comes from Vault's PKI, outside its process: issued, put in place and taken without a
//! restart; and the role of one zone makes no certificate of another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use exequatur_testkit::eventually;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use vault_world::World;

const REALM: &str = "dev.exequatur";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn script(world: &World, token: &str, arguments: &[&str]) -> Output {
    let ready = world.scene.plane.ready();
    Command::new("bash")
        .arg(project().join("deploy/vault/pki/pki.sh"))
        .args(arguments)
        .env("BAO", project().join(".tools/py/bin/bao"))
        .env("VAULT_ADDR", ready.text("/vault/address"))
        .env("VAULT_CACERT", ready.text("/vault/ca"))
        .env("VAULT_TOKEN", token)
        .env("HOME", world.scene.plane.folder())
        .output()
        .unwrap()
}

/// The certificate that a zone shows to governance's own.
fn shown(world: &World, zone: &str) -> Vec<u8> {
    let zones = world.scene.plane.data().join("pki/zones");
    let own = zones.join("governance");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(world.scene.plane.ready().path("/ca")).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(own.join("tls.crt")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(own.join("tls.key")).unwrap();
    let config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let endpoint = world.scene.plane.ready().endpoint(zone);
    world.runtime.block_on(async {
        let stream = TcpStream::connect(endpoint).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    })
}

#[test]
fn a_zone_takes_its_certificate_from_vault_and_no_other_zones() {
    exequatur_identity::install_crypto();
    let world = World::start();
    let plane = &world.scene.plane;
    let root = std::fs::read_to_string(plane.ready().text("/vault/root_token_file")).unwrap();
    let pki = plane.data().join("pki");
    let ca = |name: &str| std::fs::read_to_string(pki.join(name)).unwrap();
    let bundle = plane.folder().join("ca-bundle.pem");
    std::fs::write(&bundle, format!("{}{}", ca("ca.crt"), ca("ca.key"))).unwrap();
    let done = script(&world, &root, &["setup", REALM, bundle.to_str().unwrap()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));

    // Whatever renews the connector's certificate may do that and nothing else.
    let made = world.write(
        "auth/token/create",
        &json!({"policies": ["zone-certificate-connector"], "no_default_policy": true, "ttl": "5m"}),
    );
    let renewer = made["auth"]["client_token"].as_str().unwrap();
    let folder = pki.join("zones/connector");
    let (before, pid) = (shown(&world, "connector"), plane.ready().pid("connector"));
    let issue =
        |zone: &str, into: &Path| script(&world, renewer, &["issue", REALM, zone, into.to_str().unwrap()]);
    let refused = issue("governance", &folder);
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("permission denied")
    );
    let as_other = json!({"uri_sans": format!("spiffe://{REALM}/zone/governance"), "ttl": "1h"});
    let refused = world.runtime.block_on(world.vault().write("zones/issue/connector", &as_other));
    assert!(refused.is_err(), "the role of one zone, even for an operator");
    assert_eq!(shown(&world, "connector"), before, "nothing was put in place");

    let done = issue("connector", &folder);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let after = eventually("the zone shows the new certificate", Duration::from_secs(15), || {
        Some(shown(&world, "connector")).filter(|shown| *shown != before)
    });
    assert_eq!(after, CertificateDer::from_pem_file(folder.join("tls.crt")).unwrap().to_vec());
    assert_eq!(plane.ready().pid("connector"), pid, "without a restart");
    let left = std::fs::read_dir(&folder)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".issue"));
    assert_eq!(left.count(), 0, "no copy of a key stays behind");

    // Both ways: it is called with it, and calls with it.
    let read = world.scene.propose("crm.read", &json!({"id": "117"}));
    assert_eq!(world.scene.until(&read, &["SUCCEEDED", "FAILED"])["state"], "SUCCEEDED");
}
