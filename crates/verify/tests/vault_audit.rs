//! Vault's audit log against what the export accounts for.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may stop at once")]

use std::collections::BTreeMap;

use exequatur_verify::{Report, VaultReads, vault_reads};
use serde_json::json;

fn report(leases: &[(&str, u64)]) -> Report {
    Report {
        valid: true,
        root_key_fingerprint: String::new(),
        open: 0,
        first_fault: None,
        zones: Vec::new(),
        tenant: "t-green".to_owned(),
        vault_leases: leases
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn entry(kind: &str, policy: &str, operation: &str, path: &str, error: &str) -> String {
    json!({"type": kind, "error": error, "auth": {"policies": [policy]},
        "request": {"operation": operation, "path": path}})
    .to_string()
}

fn read(policy: &str, path: &str) -> String {
    entry("response", policy, "read", path, "")
}

fn count(lines: &[String], leases: &[(&str, u64)]) -> Vec<VaultReads> {
    vault_reads(lines.join("\n").as_bytes(), "t-green", &report(leases)).unwrap()
}

#[test]
fn only_answered_reads_of_the_tenant_by_our_tokens_count() {
    let lines = [
        read("credential-vault", "secret/data/t-green/crm"),
        read("exequatur-scoped-t-green--sms", "secret/data/t-green/sms"),
        read("credential-vault", "database/creds/t-green--orders"),
        // An operator, another tenant, a refusal, a request that was not answered yet, a write.
        read("root", "secret/data/t-green/crm"),
        read("credential-vault", "secret/data/t-blue/crm"),
        read("credential-vault", "secret/data/t-greener/crm"),
        entry("response", "credential-vault", "read", "secret/data/t-green/crm", "permission denied"),
        entry("request", "credential-vault", "read", "secret/data/t-green/crm", ""),
        entry("response", "credential-vault", "update", "secret/data/t-green/crm", ""),
        "{\"type\":\"request\"}".to_owned(),
    ];
    let found = count(&lines, &[("crm", 1), ("sms", 1), ("orders", 2)]);
    let seen: Vec<_> = found.iter().map(|r| (r.credential.as_str(), r.read, r.leased)).collect();
    assert_eq!(seen, [("crm", 1, 1), ("orders", 1, 2), ("sms", 1, 1)]);
    assert!(found.iter().all(|r| !r.is_excess()));
}

#[test]
fn one_read_more_is_found_and_a_broken_log_cannot_be_told() {
    let lines = vec![read("credential-vault", "secret/data/t-green/crm"); 2];
    assert!(count(&lines, &[("crm", 1)])[0].is_excess());
    assert!(count(&lines, &[])[0].is_excess());
    assert!(!count(&lines, &[("crm", 2)])[0].is_excess());
    // A token for one path is as good as a read of it, whether or not it was used.
    let mint = |policy: &str| {
        json!({"type": "response", "auth": {"policies": ["credential-vault"]},
            "request": {"operation": "update", "path": "auth/token/create/exequatur-scoped"},
            "response": {"auth": {"policies": [policy]}}})
        .to_string()
    };
    let lines = vec![mint("exequatur-scoped-t-green--sms"); 2];
    let found = count(&lines, &[("sms", 1)]);
    assert_eq!((found[0].read, found[0].minted, found[0].is_excess()), (0, 2, true));
    assert!(!count(&lines, &[("sms", 2)])[0].is_excess());
    assert!(count(&[mint("exequatur-scoped-t-blue--sms")], &[]).is_empty());
    let broken = "{\"type\":\"response\"\n";
    assert!(vault_reads(broken.as_bytes(), "t-green", &report(&[])).is_err());
}
