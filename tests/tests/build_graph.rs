//! The architecture, read from the build: no zone links another's code or a backend that is not
//! its own, and the service call graph equals the golden file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at once")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const PROGRAMS: &[(&str, &str)] = &[
    ("governance", "exequatur-governance"),
    ("approval", "exequatur-approval"),
    ("credential-vault", "exequatur-credential-vault"),
    ("connector", "exequatur-connector"),
    ("exequatur", "exequatur-cli"),
];

/// Crates that only some programs may reach, with those that may.
const BACKENDS: &[(&str, &[&str])] = &[
    // What opens a secret and what talks to providers.
    ("exequatur-egress", &["connector"]),
    ("hickory-resolver", &["connector"]),
    ("lettre", &["connector"]),
    // Sealing: the CLI seals, the connector opens.
    ("exequatur-seal", &["connector", "exequatur"]),
    // Making keys is no zone's business.
    ("exequatur-pki", &["exequatur"]),
    ("rcgen", &["exequatur"]),
    // Only the connector speaks to a database of others.
    ("tokio-postgres", &["connector"]),
    // Vault: asked by credential-vault, opened by the connector, set up by an operator.
    ("exequatur-vault", &["credential-vault", "connector", "exequatur"]),
    ("vaultrs", &["credential-vault", "connector", "exequatur"]),
    ("reqwest", &["credential-vault", "connector", "exequatur"]),
    ("exequatur-dev-servers", &["exequatur"]),
    // The rules and the tokens are governance's; the CLI compiles rule files.
    ("exequatur-policy", &["governance", "exequatur"]),
    ("jsonwebtoken", &["governance"]),
    // Databases: zones only.
    ("sqlx", &["governance", "approval", "credential-vault", "connector"]),
    // The verifier shares no code with writers, and no zone carries it.
    ("exequatur-verify", &["exequatur"]),
    ("exequatur-testkit", &[]),
    ("exequatur-demo-providers", &[]),
    ("ring", &[]),
    ("openssl", &[]),
    ("native-tls", &[]),
];

fn tree(package: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "tree",
            "--locked",
            "--offline",
            "-p",
            package,
            "-e",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<_> =
        text.lines().filter_map(|l| l.split(' ').next()).map(ToOwned::to_owned).collect();
    assert!(crates.len() > 20, "the tree of `{package}` was read");
    crates
}

#[test]
fn no_program_links_a_zone_or_a_backend_that_is_not_its_own() {
    for (program, package) in PROGRAMS {
        let crates = tree(package);
        for (zone, other) in PROGRAMS {
            assert!(zone == program || !crates.contains(*other), "`{program}` links `{zone}`");
        }
        for (backend, allowed) in BACKENDS {
            assert!(
                allowed.contains(program) || !crates.contains(*backend),
                "`{program}` reaches `{backend}`; only {allowed:?} may. Cut the edge, or argue for it in docs/adr/"
            );
        }
    }
}

#[test]
fn the_verifier_shares_only_messages_and_signatures_with_the_writers() {
    let crates = tree("exequatur-verify");
    for writer in ["exequatur-ledger", "exequatur-store", "exequatur-service", "sqlx", "tonic"] {
        assert!(!crates.contains(writer), "the verifier reaches `{writer}`");
    }
}

#[test]
fn the_prepared_request_is_pure() {
    let crates = tree("exequatur-prepare");
    for impure in ["tokio", "tonic", "sqlx", "exequatur-clock", "hyper", "exequatur-egress"] {
        assert!(!crates.contains(impure), "`exequatur-prepare` reaches `{impure}`");
    }
}

#[test]
fn the_service_call_graph_equals_the_golden_file() {
    let mut lines = BTreeSet::new();
    for (program, package) in PROGRAMS {
        for name in tree(package) {
            let service = |side: &str| {
                let word = name.strip_prefix("exequatur-")?.strip_suffix(side)?;
                let mut letters = word.chars();
                let first = letters.next()?.to_ascii_uppercase();
                Some(format!("{first}{}Service", letters.as_str()))
            };
            if let Some(service) = service("-client") {
                lines.insert(format!("{program} -> {service}"));
            }
            if let Some(service) = service("-server") {
                lines.insert(format!("{service} <- {program}"));
            }
        }
    }
    let golden: BTreeSet<_> = include_str!("../golden/call-graph.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(lines, golden, "an edge changed: change tests/golden/call-graph.txt and say why in docs/adr/");
}
