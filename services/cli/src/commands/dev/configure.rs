//! What is written before anything starts: certificates and keys, and a configuration file per zone.

use std::fmt::Write as _;

use exequatur_pki::Kind;

use super::accounts::Accounts;
use super::outside::Outside;
use super::ports::Ports;
use super::{Layout, OPERATOR, REALM, REVIEWER};
use crate::commands::pki;
use crate::failure::Failure;

/// Makes the PKI; true if there was none.
pub(crate) fn pki(layout: &Layout) -> Result<bool, Failure> {
    let folder = layout.pki();
    if layout.person(REVIEWER).key.is_file() {
        return Ok(false);
    }
    // What a start that was cut off left behind is no PKI.
    let _ = std::fs::remove_dir_all(&folder);
    pki::init(&folder, REALM)?;
    let people = folder.join("people");
    let all = ["*".to_owned()];
    pki::issue_into(&folder, Kind::Operator, OPERATOR, &all, &people.join(OPERATOR))?;
    pki::issue_into(&folder, Kind::Reviewer, REVIEWER, &[], &people.join(REVIEWER))?;
    Ok(true)
}

/// Writes every zone's configuration and the demo tenant's files.
pub(crate) fn write(
    layout: &Layout,
    ports: &Ports,
    accounts: &Accounts,
    outside: &Outside,
) -> Result<(), Failure> {
    let at = |port: u16| format!("\"127.0.0.1:{port}\"");
    let peers_of_governance =
        format!("approval = {}\nconnector = {}\n", at(ports.approval), at(ports.connector));
    let peers_of_connector =
        format!("approval = {}\ncredential_vault = {}\n", at(ports.approval), at(ports.credential_vault));
    let mut exceptions = vec![at(ports.provider_http), at(ports.provider_smtp)];
    exceptions.extend(outside.pg_port().map(at));
    let roots = outside.extra_root().map(|root| toml_string(&root.display().to_string()));
    let egress = format!(
        "[egress]\nexceptions = [{}]\nextra_roots = [{}]\n{}",
        exceptions.join(", "),
        roots.unwrap_or_default(),
        outside.connector()
    );
    zone(layout, "governance", ports.governance, &format!("[peers]\n{peers_of_governance}"))?;
    zone(layout, "approval", ports.approval, "")?;
    zone(layout, "credential-vault", ports.credential_vault, &outside.credential_vault())?;
    zone(layout, "connector", ports.connector, &format!("[peers]\n{peers_of_connector}{egress}"))?;
    tenant(layout, ports, accounts, outside)
}

fn zone(layout: &Layout, name: &str, port: u16, own: &str) -> Result<(), Failure> {
    let folder = layout.zone(name);
    let pki = layout.pki();
    let keys = pki.join("zones").join(name);
    let mut text = String::new();
    let path = |path: &std::path::Path| toml_string(&path.display().to_string());
    let _ = writeln!(text, "# Written by `exequatur dev` at every start.");
    let _ = writeln!(text, "mode = \"development\"\nrealm = \"{REALM}\"\nlisten = \"127.0.0.1:{port}\"");
    let _ = writeln!(text, "data = {}", path(&folder));
    let _ = writeln!(
        text,
        "[tls]\ncertificate = {}\nkey = {}\nca = {}",
        path(&keys.join("tls.crt")),
        path(&keys.join("tls.key")),
        path(&pki.join("ca.crt"))
    );
    let _ = writeln!(
        text,
        "[trust]\nbundle = {}\nroot_key = {}",
        path(&pki.join("bundle.json")),
        path(&pki.join("root.pub"))
    );
    let _ = writeln!(text, "[keys]\ndirectory = {}\n{own}", path(&keys.join("keys")));
    put(&folder, "zone.toml", &text)
}

/// A TOML basic string.
pub(crate) fn toml_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The demo tenant's files are part of the program, so that it needs no source tree.
const TOOLS: [(&str, &str); 4] = [
    ("crm.read.yaml", include_str!("../../../../../deploy/demo/tools/crm.read.yaml")),
    ("sms.send.yaml", include_str!("../../../../../deploy/demo/tools/sms.send.yaml")),
    ("mail.send.yaml", include_str!("../../../../../deploy/demo/tools/mail.send.yaml")),
    ("files.delete.yaml", include_str!("../../../../../deploy/demo/tools/files.delete.yaml")),
];
const RULES: &str = include_str!("../../../../../deploy/demo/rules.yaml");

/// Only where there is a database.
const DB_QUERY: (&str, &str) =
    ("db.query.yaml", include_str!("../../../../../deploy/demo/tools/db.query.yaml"));
/// The rule that goes with it, before the others.
const DB_RULE: &str = "rules:\n  - id: orders-are-free\n    tool: db.query\n    action: auto_approve\n    reason: a read changes nothing\n";

/// Names of the tool files.
pub(crate) fn tool_files(outside: &Outside) -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|(name, _)| *name).chain(outside.pg_port().map(|_| DB_QUERY.0))
}

fn tenant(layout: &Layout, ports: &Ports, accounts: &Accounts, outside: &Outside) -> Result<(), Failure> {
    let folder = layout.tenant();
    for (name, text) in TOOLS {
        let text = text
            .replace("${HTTP_PORT}", &ports.provider_http.to_string())
            .replace("${SMTP_PORT}", &ports.provider_smtp.to_string())
            .replace("${SMS_ACCOUNT}", &accounts.sms.account);
        put(&folder, name, &text)?;
    }
    let Some(port) = outside.pg_port() else { return put(&folder, "rules.yaml", RULES) };
    put(&folder, DB_QUERY.0, &DB_QUERY.1.replace("${PG_PORT}", &port.to_string()))?;
    put(&folder, "rules.yaml", &RULES.replacen("rules:\n", DB_RULE, 1))
}

fn put(folder: &std::path::Path, name: &str, text: &str) -> Result<(), Failure> {
    let file = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, text))
        .map_err(|e| Failure::failed("STORAGE_FAILED", format!("cannot write `{}`: {e}", file.display())))
}
