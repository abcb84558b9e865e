//! Everything against a real OpenBao with TLS, raft storage and the shipped policies.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may stop at once")]

mod bao;
mod pki;

use std::time::Duration;

use bao::{Bao, bare_config, root};
use exequatur_vault::setup::Operator;
use exequatur_vault::{
    Auth, Client, Config, Health, Kind, MAX_SECRET_BYTES, Paths, SecretPath, Token, engine, scoped_policy,
};
use serde_json::json;

fn kind<T>(result: Result<T, exequatur_vault::Error>) -> Kind {
    match result {
        Ok(_) => panic!("it worked"),
        Err(error) => error.kind(),
    }
}

fn path_of(word: &str, tenant: &str, credential: &str) -> SecretPath {
    Paths::default().of(engine(word).unwrap(), tenant, credential).unwrap()
}

#[tokio::test]
async fn wrapped_hand_over() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t-green", "crm.read");
    let other = path_of("kv2", "t-green", "sms.send");
    let gone = path_of("kv2", "t-green", "gone");
    bao.put(path.as_str(), json!({"value": "v-one"})).await;
    bao.put(path.as_str(), json!({"value": "v-two", "key_base64": "AP8="})).await;
    bao.put(other.as_str(), json!({"value": "other"})).await;
    bao.put(gone.as_str(), json!({"value": "gone"})).await;
    bao.operator.delete(gone.as_str()).await.unwrap();
    let vault = bao.zone("credential-vault").await;
    let connector = bao.from("127.0.0.1");

    // One token opens once, and says where it is from before.
    let wrapped = vault.read_wrapped(&path, None, 30).await.unwrap();
    assert_eq!((wrapped.creation_path.as_str(), wrapped.ttl_s), (path.as_str(), 30));
    let state = connector.lookup_wrapped(&wrapped.token).await.unwrap();
    assert_eq!((state.creation_path.as_str(), state.ttl_s), (path.as_str(), 30));
    let opened = connector.unwrap(&wrapped.token, &path, "value").await.unwrap();
    assert_eq!((opened.secret.expose(), opened.version), (b"v-two".as_slice(), 2));
    assert_eq!(kind(connector.unwrap(&wrapped.token, &path, "value").await), Kind::WrappingTokenUsed);
    assert_eq!(kind(connector.lookup_wrapped(&wrapped.token).await), Kind::WrappingTokenUsed);

    // A pinned version, a binary field, a missing one.
    let pinned = vault.read_wrapped(&path, Some(1), 30).await.unwrap();
    let opened = connector.unwrap(&pinned.token, &path, "value").await.unwrap();
    assert_eq!((opened.secret.expose(), opened.version), (b"v-one".as_slice(), 1));
    let binary = vault.read_wrapped(&path, None, 30).await.unwrap();
    let opened = connector.unwrap(&binary.token, &path, "key_base64").await.unwrap();
    assert_eq!(opened.secret.expose(), [0, 255]);
    let missing = vault.read_wrapped(&path, None, 30).await.unwrap();
    assert_eq!(kind(connector.unwrap(&missing.token, &path, "absent").await), Kind::MissingField);

    // Another path's token is not opened; it still works where it belongs.
    let swapped = vault.read_wrapped(&other, None, 30).await.unwrap();
    assert_eq!(kind(connector.unwrap(&swapped.token, &path, "value").await), Kind::PathMismatch);
    let opened = connector.unwrap(&swapped.token, &other, "value").await.unwrap();
    assert_eq!(opened.secret.expose(), b"other");

    // Not there, in three ways.
    let nothing = path_of("kv2", "t-green", "never");
    assert_eq!(kind(vault.read_wrapped(&nothing, None, 30).await), Kind::NotFound);
    assert_eq!(kind(vault.read_wrapped(&path, Some(99), 30).await), Kind::NotFound);
    let deleted = vault.read_wrapped(&gone, None, 30).await.unwrap();
    assert_eq!(kind(connector.unwrap(&deleted.token, &gone, "value").await), Kind::NotFound);

    // Taken back before it was opened; an expired one; one made up.
    let revoked = vault.read_wrapped(&path, None, 30).await.unwrap();
    vault.revoke_accessor(&revoked.accessor).await.unwrap();
    vault.revoke_accessor(&revoked.accessor).await.unwrap();
    assert_eq!(kind(connector.unwrap(&revoked.token, &path, "value").await), Kind::WrappingTokenUsed);
    let expired = vault.read_wrapped(&path, None, 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(kind(connector.unwrap(&expired.token, &path, "value").await), Kind::WrappingTokenUsed);
    let invented = Token::new("s.invented".to_owned()).unwrap();
    assert_eq!(kind(connector.lookup_wrapped(&invented).await), Kind::WrappingTokenUsed);

    // Larger than a secret may be.
    bao.put(other.as_str(), json!({"value": "x".repeat(MAX_SECRET_BYTES + 1)})).await;
    let large = vault.read_wrapped(&other, None, 30).await.unwrap();
    assert_eq!(kind(connector.unwrap(&large.token, &other, "value").await), Kind::TooLarge);
}

#[tokio::test]
async fn the_policy_itself_refuses_an_unwrapped_read() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t-green", "crm.read");
    bao.put(path.as_str(), json!({"value": "v"})).await;
    let vault = bao.zone("credential-vault").await;
    vault.read_wrapped(&path, None, 30).await.unwrap();
    vault.read_wrapped(&path, None, 60).await.unwrap();

    // Its very token, used without our client's manners.
    let token = bao.login("credential-vault").await;
    assert_eq!(kind(vault.read_with(&token, &path, None, "value").await), Kind::Refused);
    for (ttl, works) in [("30s", true), ("60s", true), ("61s", false), ("300s", false)] {
        assert_eq!(bao.wrapped_by(&token, path.as_str(), ttl).await == 200, works, "{ttl}");
    }
    // The client does not even ask.
    for ttl_s in [0, 61, 300] {
        assert_eq!(kind(vault.read_wrapped(&path, None, ttl_s).await), Kind::BadRequest);
    }
    // Nor may the connector's login read, wrapped or not.
    let connector = bao.zone("connector").await;
    assert_eq!(kind(connector.read_wrapped(&path, None, 30).await), Kind::Refused);
}

#[tokio::test]
async fn scoped_hand_over() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t-green", "sms.send");
    let other = path_of("kv2", "t-green", "crm.read");
    bao.put(path.as_str(), json!({"value": "sms"})).await;
    bao.put(other.as_str(), json!({"value": "crm"})).await;
    let policy = scoped_policy("t-green", "sms.send").unwrap();
    let values = [("TENANT", "t-green"), ("CREDENTIAL", "sms.send")];
    let file = root().join("deploy/vault/policies/scoped-kv2.hcl");
    bao.operator.policy(&policy, &file, &values).await.unwrap();
    let vault = bao.zone("credential-vault").await;

    let scoped = vault.mint_scoped("exequatur-scoped", &policy, 31).await.unwrap();
    assert_eq!(scoped.ttl_s, 40);
    // From credential-vault's own address Vault refuses it; from the connector's it reads one path.
    assert_eq!(kind(vault.read_with(&scoped.token, &path, None, "value").await), Kind::Refused);
    let connector = bao.from("127.0.0.2");
    let read = connector.read_with(&scoped.token, &path, Some(1), "value").await.unwrap();
    assert_eq!((read.secret.expose(), read.version), (b"sms".as_slice(), 1));
    assert_eq!(kind(connector.read_with(&scoped.token, &path, None, "absent").await), Kind::MissingField);
    assert_eq!(kind(connector.read_with(&scoped.token, &other, None, "value").await), Kind::Refused);
    bao.operator.delete(path.as_str()).await.unwrap();
    assert_eq!(kind(connector.read_with(&scoped.token, &path, None, "value").await), Kind::NotFound);

    // Every life that the client asks for is allowed, no other is, and no foreign policy.
    for ttl_s in [1, 40, 125, 330] {
        vault.mint_scoped("exequatur-scoped", &policy, ttl_s).await.unwrap();
    }
    assert_eq!(kind(vault.mint_scoped("exequatur-scoped", &policy, 331).await), Kind::BadRequest);
    assert_eq!(kind(vault.mint_scoped("exequatur-scoped", "credential-vault", 40).await), Kind::BadRequest);
    let token = bao.login("credential-vault").await;
    for body in [
        json!({"policies": [policy], "ttl": "3600s"}),
        json!({"policies": [policy]}),
        json!({"ttl": "40s"}),
        json!({"policies": [policy], "ttl": "40s", "period": "40s"}),
        json!({"policies": [policy], "ttl": "40s", "type": "service"}),
    ] {
        let operator = Operator::new(bao.config(), Some(token.clone())).unwrap();
        assert_eq!(
            kind(operator.write("auth/token/create/exequatur-scoped", &body).await),
            Kind::Refused,
            "{body}"
        );
    }
    let operator = Operator::new(bao.config(), Some(token)).unwrap();
    assert_eq!(kind(operator.write("auth/token/create", &json!({})).await), Kind::Refused);
}

#[tokio::test]
async fn states_of_the_server_are_told_from_refusals() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t", "probe");
    let vault = bao.zone("credential-vault").await;
    assert_eq!(vault.health().await.unwrap(), Health::Active);
    vault.read_wrapped(&path, None, 30).await.unwrap();

    // Wrong namespace, wrong secret id.
    let lost = Client::new(Config { namespace: Some("nope".into()), ..bao.config() }).unwrap();
    let invented = Token::new("s.invented".to_owned()).unwrap();
    assert_eq!(kind(lost.read_with(&invented, &path, None, "value").await), Kind::NotFound);
    assert_eq!(kind(lost.read_wrapped(&path, None, 30).await), Kind::NoLogin);
    let file = bao.folder.path().join("credential-vault.secret-id");
    std::fs::write(&file, "wrong").unwrap();
    let auth = bao.approle("credential-vault").await;
    let locked_out = Client::new(Config { auth: Some(auth), ..bao.config() }).unwrap();
    assert_eq!(kind(locked_out.read_wrapped(&path, None, 30).await), Kind::LoginRefused);
    assert_eq!(kind(bao.from("127.0.0.1").read_with(&invented, &path, None, "value").await), Kind::Refused);

    // A CA that is not Vault's.
    let foreign = tempfile::tempdir().unwrap();
    pki::Ca::new(foreign.path());
    let config = Config { ca: foreign.path().join("ca.crt"), ..bao.config() };
    assert_eq!(kind(Client::new(config).unwrap().health().await), Kind::Unreachable);

    bao.operator.write("sys/seal", &json!({})).await.unwrap();
    let error = vault.read_wrapped(&path, None, 30).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (Kind::Sealed, true));
    assert_eq!(vault.health().await.unwrap(), Health::Sealed);
    assert_eq!(bao.from("127.0.0.1").health().await.unwrap(), Health::Sealed);
    // The login outlives it.
    bao.operator.unseal(&bao.fresh.key).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    vault.read_wrapped(&path, None, 30).await.unwrap();
}

#[tokio::test]
async fn an_uninitialized_server_says_so() {
    let (folder, _ca, port, mut child) = Bao::bare();
    let client = Client::new(bare_config(folder.path(), port)).unwrap();
    let health = client.health().await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(health.unwrap(), Health::Uninitialized);
    let client = Client::new(bare_config(folder.path(), port)).unwrap();
    assert_eq!(kind(client.health().await), Kind::Unreachable);
}

#[tokio::test]
async fn a_dead_login_is_replaced_once_and_renewed_in_time() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t", "probe");
    let vault = bao.zone("credential-vault").await;
    vault.read_wrapped(&path, None, 30).await.unwrap();
    let first = vault.login_accessor().await.unwrap();
    assert_eq!(vault.lookup_accessor(&first).await.unwrap().policies, ["credential-vault"]);

    bao.operator.write("auth/token/revoke-accessor", &json!({"accessor": first})).await.unwrap();
    let calls = (0..8).map(|_| {
        let (vault, path) = (vault.clone(), path.clone());
        tokio::spawn(async move { vault.read_wrapped(&path, None, 30).await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let second = vault.login_accessor().await.unwrap();
    assert_ne!(first, second);
    assert_eq!(bao.logins().await, 1, "eight callers, one new login");

    // A real refusal leads to no login.
    let forbidden = {
        let paths = Paths { database: "forbidden".to_owned(), ..Paths::default() };
        paths.of(engine("database").unwrap(), "t", "c").unwrap()
    };
    assert_eq!(kind(vault.read_wrapped(&forbidden, None, 30).await), Kind::Refused);
    assert_eq!(vault.login_accessor().await.unwrap(), second);

    // A short life is renewed in the background, and the login is given back.
    bao.operator.write("auth/approle/role/credential-vault", &json!({"token_period": "4s"})).await.unwrap();
    vault.logout().await.unwrap();
    assert_eq!(kind(vault.lookup_accessor(&second).await), Kind::NotFound);
    let third = vault.login_accessor().await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(vault.login_accessor().await.unwrap(), third);
    assert!(vault.lookup_accessor(&third).await.unwrap().ttl_s >= 1);
}

#[tokio::test]
async fn a_certificate_logs_in_under_the_role_asked_for_only() {
    let bao = Bao::start().await;
    let path = path_of("kv2", "t", "probe");
    bao.ca.client(bao.folder.path(), "vaulter");
    let ca = std::fs::read_to_string(bao.folder.path().join("ca.crt")).unwrap();
    for (role, uri) in [("zones", "spiffe://test/zone/*"), ("others", "spiffe://test/svc/*")] {
        let body = json!({"certificate": ca, "allowed_uri_sans": [uri], "token_policies": ["credential-vault"],
            "token_no_default_policy": true, "token_ttl": "60s"});
        bao.operator.write(&format!("auth/cert/certs/{role}"), &body).await.unwrap();
    }
    let client = |role: &str| {
        let at = |name: &str| bao.folder.path().join(name);
        let auth = Auth::Cert {
            mount: "cert".to_owned(),
            role: role.to_owned(),
            certificate: at("vaulter.crt"),
            key: at("vaulter.key"),
        };
        Client::new(Config { auth: Some(auth), ..bao.config() }).unwrap()
    };
    client("zones").read_wrapped(&path, None, 30).await.unwrap();
    let others = client("others");
    assert_eq!(kind(others.read_wrapped(&path, None, 30).await), Kind::LoginRefused);
    assert!(others.login_accessor().await.is_none());
    assert_eq!(kind(client("absent").read_wrapped(&path, None, 30).await), Kind::LoginRefused);
}

#[tokio::test]
async fn leases_that_are_gone() {
    let bao = Bao::start().await;
    let vault = bao.zone("credential-vault").await;
    assert_eq!(kind(vault.lookup_lease("database/creds/t--db/none").await), Kind::NotFound);
    vault.revoke_lease("database/creds/t--db/none").await.unwrap();
    assert_eq!(kind(vault.lookup_accessor("none").await), Kind::NotFound);
    for bad in ["", "a b", "a\nb"] {
        assert_eq!(kind(vault.revoke_lease(bad).await), Kind::BadName);
    }
    let path = path_of("database", "t", "db");
    let error = vault.read_wrapped(&path, None, 30).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::BadRequest | Kind::NotFound | Kind::ServerError), "{error}");
    assert!(!bao.log().contains("panic"));
}
