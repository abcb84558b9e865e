//! The connector's sealing key is rotated while the plane runs: values move to the new key by the connector
//! alone, only while an operator lets them, and the old key opens nothing any more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod support;

use exequatur_fault::Fault;
use exequatur_lease_client::lease_service_client::LeaseServiceClient;
use exequatur_proto::credential::v1::{
    PutResealedRequest, SealedValue, TakeSealedRequest, TakeSealedResponse,
};
use serde_json::{Value as Json, json};
use support::Taken;

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];

fn kids(taken: &Taken) -> Vec<(String, String)> {
    let list = taken.plane.cli(&["credential", "list"]).ok();
    let of = |c: &Json| (c["credential"].as_str().unwrap().to_owned(), c["kid"].as_str().unwrap().to_owned());
    list["credentials"].as_array().unwrap().iter().map(of).filter(|(_, kid)| !kid.is_empty()).collect()
}

/// Asks credential-vault for a value as a stolen connector would.
fn take(taken: &Taken) -> Result<TakeSealedResponse, Fault> {
    let request = TakeSealedRequest { tenant: "demo".to_owned(), credential: "crm-token".to_owned() };
    taken.runtime.block_on(async {
        let mut vault = LeaseServiceClient::new(taken.channel("connector", "credential-vault"));
        vault.take_sealed(request).await.map(tonic::Response::into_inner).map_err(|s| Fault::from_status(&s))
    })
}

fn put(taken: &Taken, version: u64, value: SealedValue) -> Result<(), Fault> {
    let request = PutResealedRequest {
        tenant: "demo".to_owned(),
        credential: "crm-token".to_owned(),
        version,
        value: Some(value),
    };
    taken.runtime.block_on(async {
        let mut vault = LeaseServiceClient::new(taken.channel("connector", "credential-vault"));
        vault.put_resealed(request).await.map(drop).map_err(|s| Fault::from_status(&s))
    })
}

fn read(taken: &Taken, key: &str) -> Json {
    let (_, token) = taken.plane.run_token(&["crm.read"]);
    let plan = json!({"context": "c", "idempotency_key": key, "actions":
        [{"tool": "crm.read", "arguments": {"id": "117"}, "rationale": "r"}]});
    let answer = taken.plane.propose(&token, &plan, &[]).json;
    taken.plane.until(&token, answer["plan"].as_str().unwrap(), 0, &ENDS)["actions"][0].clone()
}

#[test]
fn the_sealing_key_is_rotated_by_the_connector_under_an_operators_eyes() {
    let taken = Taken::start();
    let before = kids(&taken);
    assert!(before.len() >= 3 && before.iter().all(|(_, kid)| *kid == before[0].1), "{before:?}");
    let old = before[0].1.clone();

    // Nobody let it: a stolen connector cannot empty the catalog.
    assert_eq!(take(&taken).unwrap_err().reason_str(), "CREDENTIAL_NOT_GRANTED");

    let new = taken.plane.cli(&["pki", "new-seal-key"]).ok()["kid"].as_str().unwrap().to_owned();
    assert_eq!(take(&taken).unwrap_err().reason_str(), "CREDENTIAL_NOT_GRANTED");
    assert_eq!(read(&taken, "before")["state"], "SUCCEEDED", "the old key still opens");
    let done = taken.plane.cli(&["credential", "reseal"]).ok();
    assert_eq!(done["kid"], new);
    assert_eq!(done["resealed"].as_array().unwrap().len(), before.len(), "{done}");
    assert!(kids(&taken).iter().all(|(_, kid)| *kid == new));
    assert_eq!(
        taken.plane.cli(&["credential", "reseal"]).ok()["resealed"],
        json!([]),
        "a repeat does nothing"
    );
    // The leave is spent with the value that came back.
    assert_eq!(take(&taken).unwrap_err().reason_str(), "CREDENTIAL_NOT_GRANTED");

    // The old key is revoked and its file destroyed; nothing needs it, and nothing is sealed to it any more.
    assert_eq!(taken.plane.cli(&["pki", "revoke", &old]).code, 0);
    std::fs::remove_file(taken.plane.data().join("pki/zones/connector/keys/seal.key")).unwrap();
    taken.plane.kill("connector");
    assert_eq!(read(&taken, "after")["state"], "SUCCEEDED");
    let refused = allow(&taken, &old);
    assert_eq!(refused.unwrap_err().reason_str(), "INVALID_FIELD");

    // Under an operator's leave, what comes back must be this version under the key that was named.
    let leave = |kid: &str| assert!(allow(&taken, kid).is_ok());
    leave(&new);
    let value = take(&taken).unwrap();
    let (version, mut other) = (value.version, value.value.clone().unwrap());
    other.kid = old;
    assert_eq!(put(&taken, version, other).unwrap_err().reason_str(), "INVALID_FIELD");
    let value = value.value.unwrap();
    assert_eq!(put(&taken, version + 1, value.clone()).unwrap_err().reason_str(), "INVALID_FIELD");
    put(&taken, version, value.clone()).unwrap();
    assert_eq!(put(&taken, version, value).unwrap_err().reason_str(), "CREDENTIAL_NOT_GRANTED", "once");
    assert_eq!(read(&taken, "last")["state"], "SUCCEEDED");

    let file = taken.plane.folder().join("evidence.jsonl");
    let (file, root) = (file.to_str().unwrap(), taken.plane.ready().text("/root_key"));
    assert_eq!(taken.plane.cli(&["ledger", "export", "--out", file]).code, 0);
    let verified = taken.plane.cli(&["ledger", "verify", file, "--root-key", &root]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
}

/// An operator's leave for the CRM's token.
fn allow(taken: &Taken, kid: &str) -> Result<(), Fault> {
    use exequatur_catalog_client::catalog_service_client::CatalogServiceClient;
    use exequatur_proto::credential::v1::AllowResealRequest;
    let request = AllowResealRequest {
        tenant: "demo".to_owned(),
        credential: "crm-token".to_owned(),
        kid: kid.to_owned(),
    };
    taken.runtime.block_on(async {
        let mut catalog = CatalogServiceClient::new(taken.as_operator("credential-vault"));
        catalog.allow_reseal(request).await.map(drop).map_err(|s| Fault::from_status(&s))
    })
}
