//! Run tokens that are well signed and still not acceptable (S29, S30), and those of other makers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use exequatur_fault::Reason;
use exequatur_service::Tokens as _;
use exequatur_statement::SigningKey;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use support::{Bench, TENANT, zones};

struct Forge<'a> {
    bench: &'a Bench,
    claims: Value,
}

impl Forge<'_> {
    async fn of(bench: &Bench) -> Forge<'_> {
        let agent = bench.run_with("k-1", &["crm.read"]).await;
        let run = &agent.minted.run;
        let now = bench.app.store.clock().now().unwrap().0 / 1000;
        let claims = json!({
            "iss": zones().own, "aud": zones().own, "sub": "agent/mailer", "exp": now + 600, "nbf": now, "iat": now,
            "jti": "j-1", "tenant": TENANT, "run": run.run, "scope": "crm.read", "type": "agent",
        });
        Forge { bench, claims }
    }

    fn sign(&self, claims: &Value, key: &SigningKey, change: impl FnOnce(&mut Header)) -> String {
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(key.kid().to_owned());
        change(&mut header);
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_ed_der(&key.pkcs8().unwrap())).unwrap()
    }

    async fn verdict(&self, token: &str) -> Option<Reason> {
        self.bench.app.verify(token, None).await.err().map(|f| f.reason())
    }
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_is_not_a_claim_that_is_absent() {
    let bench = Bench::start().await;
    let forge = Forge::of(&bench).await;
    let own = &bench.app.token_key;
    assert_eq!(
        forge.verdict(&forge.sign(&forge.claims, own, |_| {})).await,
        None,
        "the unchanged one is good"
    );
    let now = forge.claims["exp"].as_i64().unwrap() - 600;
    let changes = [
        ("exp", Value::Null),
        ("exp", json!("4102444800")),
        ("exp", json!(4_102_444_800.5)),
        ("exp", json!(now)),
        ("nbf", Value::Null),
        ("nbf", json!("x")),
        ("nbf", json!(now + 60)),
        ("iat", json!(now + 60)),
        ("aud", Value::Null),
        ("aud", json!([zones().own])),
        ("aud", json!([zones().own, "*"])),
        ("aud", json!("*")),
        ("aud", json!(zones().connector)),
        ("iss", json!(zones().approval)),
        ("type", json!("person")),
        ("tenant", json!("t-blue")),
        ("run", json!("r1/../r2")),
        ("scope", json!("crm.read sms.send")),
        ("sub", json!("agent/mailer ")),
        ("sub", json!("agent/other")),
        ("extra", json!(1)),
    ];
    for (name, value) in changes {
        let mut claims = forge.claims.clone();
        claims[name] = value.clone();
        assert_eq!(
            forge.verdict(&forge.sign(&claims, own, |_| {})).await,
            Some(Reason::TokenInvalid),
            "{name}: {value}"
        );
        claims.as_object_mut().unwrap().remove(name);
        if name != "extra" {
            assert_eq!(
                forge.verdict(&forge.sign(&claims, own, |_| {})).await,
                Some(Reason::TokenInvalid),
                "no {name}"
            );
        }
    }
}

#[tokio::test]
async fn only_the_zones_own_run_token_key_signs_run_tokens() {
    let bench = Bench::start().await;
    let forge = Forge::of(&bench).await;
    let own = &bench.app.token_key;
    let foreign = SigningKey::generate(own.holder(), own.purpose(), own.kid()).unwrap();
    let tokens = [
        ("another key under the same id", forge.sign(&forge.claims, &foreign, |_| {})),
        ("a key for another purpose", forge.sign(&forge.claims, &bench.app.warrant_key, |_| {})),
        ("no key id", forge.sign(&forge.claims, own, |h| h.kid = None)),
        ("an unknown key id", forge.sign(&forge.claims, own, |h| h.kid = Some("x".to_owned()))),
        ("another type", forge.sign(&forge.claims, own, |h| h.typ = Some("JWT".to_owned()))),
        ("no type", forge.sign(&forge.claims, own, |h| h.typ = None)),
        ("no token", "a.b.c".to_owned()),
        ("too long", "a".repeat(9000)),
    ];
    for (what, token) in tokens {
        assert_eq!(forge.verdict(&token).await, Some(Reason::TokenInvalid), "{what}");
    }
}
