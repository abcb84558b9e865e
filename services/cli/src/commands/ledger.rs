//! `ledger`: export of every zone's log into one file, and its verification without any server.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args as ClapArgs, Subcommand};
use exequatur_ledger_client::ledger_service_client::LedgerServiceClient;
use exequatur_proto::ledger::v1::export_ledger_response::Item;
use exequatur_proto::ledger::v1::{ExportLedgerRequest, Head};
use exequatur_statement::{PublicRoot, to_json};
use exequatur_verify::{Fault, Report, VaultReads};
use prost::Message as _;
use serde_json::{Map, Value, json};

use super::App;
use super::plan::hex;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text::{self, Table};

/// First key of an export's first line.
const FORMAT: &str = "exequatur-ledger-v1";
/// Longest time for one zone.
const EXPORT: Duration = Duration::from_secs(600);

/// Arguments of `ledger`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Writes all zones' logs of the tenant, with the bodies beside them, into one file.
    Export {
        /// The file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Proves offline that nothing was changed, dropped or run unapproved.
    Verify {
        /// An export.
        file: PathBuf,
        /// The operator's root public key, from a place that you trust.
        #[arg(long, value_name = "FILE")]
        root_key: PathBuf,
        /// Vault's audit log, JSON Lines: counts its reads against the leases.
        #[arg(long, value_name = "FILE")]
        vault_audit: Option<PathBuf>,
    },
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Export { out } => {
            let plane = Plane::operator(&app.global)?;
            let zones = export(&plane, &out).await?;
            let value = json!({"file": out.display().to_string(), "zones": zones});
            app.output.value(&value, || export_text(&out, &zones));
            Ok(0)
        }
        Command::Verify { file, root_key, vault_audit } => {
            verify(&file, &root_key, vault_audit.as_deref(), app)
        }
    }
}
/// Streams every zone's log into a file, which replaces an older one only when it is whole.
pub(crate) async fn export(plane: &Plane, out: &Path) -> Result<Map<String, Value>, Failure> {
    let failed = |e: std::io::Error| Failure::failed("STORAGE_FAILED", format!("`{}`: {e}", out.display()));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let mut file = BufWriter::new(temporary);
    let bundle = std::fs::read_to_string(&plane.context.bundle).map_err(failed)?;
    let head =
        json!({"format": FORMAT, "realm": plane.realm, "tenant": plane.tenant, "bundle": raw(&bundle)?});
    writeln!(file, "{head}").map_err(failed)?;
    let mut zones = Map::new();
    for zone in Zone::ALL {
        let head = export_zone(plane, zone, &mut file).await?;
        zones.insert(zone.name().to_owned(), json!({"size": head.size, "root": hex(&head.root)}));
    }
    let temporary = file.into_inner().map_err(|e| failed(e.into_error()))?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(out).map_err(|e| failed(e.error))?;
    Ok(zones)
}

async fn export_zone(plane: &Plane, zone: Zone, file: &mut impl Write) -> Result<Head, Failure> {
    let failed =
        |e: std::io::Error| Failure::failed("STORAGE_FAILED", format!("cannot write the export: {e}"));
    let mut client =
        LedgerServiceClient::new(plane.channel(zone)?).max_decoding_message_size(8 * 1024 * 1024);
    let mut request = request(ExportLedgerRequest { tenant: plane.tenant.clone() });
    request.set_timeout(EXPORT);
    let mut stream = client.export_ledger(request).await?.into_inner();
    let mut head = None;
    while let Some(response) = stream.message().await? {
        let line = match response.item {
            Some(Item::Entry(entry)) => json!({"zone": zone.name(), "entry": raw(&to_json(&entry))?}),
            Some(Item::Body(body)) => json!({"zone": zone.name(), "body":
                {"kind": body.kind, "digest": hex(&body.digest), "bytes": STANDARD.encode(&body.bytes)}}),
            Some(Item::Head(envelope)) => {
                head = Some(Head::decode(envelope.payload.as_slice()).map_err(|e| {
                    Failure::failed("STATEMENT_INVALID", format!("the head of `{}`: {e}", zone.name()))
                })?);
                json!({"zone": zone.name(), "head": raw(&to_json(&envelope))?})
            }
            None => return Err(Failure::failed("INTERNAL", format!("`{}` sent an empty item", zone.name()))),
        };
        writeln!(file, "{line}").map_err(failed)?;
    }
    head.ok_or_else(|| {
        Failure::failed("LEDGER_GAP", format!("the export of `{}` ended without a signed head", zone.name()))
    })
}

fn raw(json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json).map_err(|e| Failure::failed("INTERNAL", e.to_string()))
}

fn export_text(out: &Path, zones: &Map<String, Value>) -> String {
    let mut table = Table::new(&["zone", "size", "root"]);
    for (zone, head) in zones {
        let cell =
            |name: &str| head.get(name).map(|v| v.as_str().map_or_else(|| v.to_string(), ToOwned::to_owned));
        table.row([zone.clone(), cell("size").unwrap_or_default(), cell("root").unwrap_or_default()]);
    }
    format!("{}\n{}", text::escape(&out.display().to_string()), table.render(""))
}

/// What the verifier says of a file.
///
/// # Errors
/// When the root key cannot be read, or the file cannot be judged.
pub(crate) fn check(file: &Path, root_key: &Path) -> Result<Report, Failure> {
    let cannot = |text: String| Failure::failed("CANNOT_TELL", text);
    let root = PublicRoot::load(root_key).map_err(|e| cannot(format!("`{}`: {e}", root_key.display())))?;
    let content = File::open(file).map_err(|e| cannot(format!("`{}`: {e}", file.display())))?;
    exequatur_verify::verify(BufReader::new(content), &root)
        .map_err(|e| cannot(format!("`{}`: {e}", file.display())))
}

/// Exit codes of `ledger verify`.
const INVALID: u8 = 1;
const CANNOT_TELL: u8 = 3;

fn verify(file: &Path, root_key: &Path, vault_audit: Option<&Path>, app: &App) -> Result<u8, Failure> {
    let cannot_tell = |failure| Failure { exit: CANNOT_TELL, ..failure };
    let mut report = check(file, root_key).map_err(cannot_tell)?;
    let reads = match vault_audit {
        Some(audit) => Some(against_vault(audit, &mut report).map_err(cannot_tell)?),
        None => None,
    };
    let mut value = json!({
        "valid": report.valid,
        "root_key_fingerprint": report.root_key_fingerprint,
        "open": report.open,
        "zones": report.zones.iter().map(|z| (z.zone.clone(), json!({"size": z.size, "root": z.root}))).collect::<Map<_, _>>(),
    });
    if let (Some(reads), Some(object)) = (&reads, value.as_object_mut()) {
        let of = |r: &VaultReads| {
            json!({"credential": r.credential, "read": r.read, "minted": r.minted,
            "leased": r.leased})
        };
        object.insert("vault".to_owned(), reads.iter().map(of).collect());
    }
    if let (Some(fault), Some(object)) = (&report.first_fault, value.as_object_mut()) {
        object.insert(
            "first_fault".to_owned(),
            json!({"zone": fault.zone, "record": fault.record, "what": fault.what}),
        );
    }
    app.output.value(&value, || summary(&report));
    Ok(if report.valid { 0 } else { INVALID })
}

/// Reads of Vault that no lease accounts for make the evidence invalid.
fn against_vault(audit: &Path, report: &mut Report) -> Result<Vec<VaultReads>, Failure> {
    let cannot = |why: String| Failure::failed("CANNOT_VERIFY", format!("`{}`: {why}", audit.display()));
    let file = std::fs::File::open(audit).map_err(|e| cannot(e.to_string()))?;
    let reads = exequatur_verify::vault_reads(BufReader::new(file), &report.tenant, report)
        .map_err(|e| cannot(e.to_string()))?;
    if let Some(excess) = reads.iter().find(|r| r.is_excess())
        && report.valid
    {
        report.valid = false;
        report.first_fault = Some(Fault {
            zone: "credential-vault".to_owned(),
            record: 0,
            what: format!(
                "Vault answered {} reads of `{}` and made {} tokens for it, and {} leases account for that",
                excess.read, excess.credential, excess.minted, excess.leased
            ),
        });
    }
    Ok(reads)
}

/// The answer in one line.
pub(crate) fn summary(report: &Report) -> String {
    let sizes: Vec<String> = report.zones.iter().map(|z| format!("{} {}", z.zone, z.size)).collect();
    match &report.first_fault {
        None => format!("valid: {} entries, {} open", sizes.join(", "), report.open),
        Some(fault) => format!("INVALID: {}", text::escape(&fault.to_string())),
    }
}
