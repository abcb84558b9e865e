//! `pki`: development certificates, zone keys and the signed trust bundle, as files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use exequatur_pki::{Kind, Pki};
use serde_json::json;

use super::App;
use crate::context::Context;
use crate::failure::Failure;
use crate::text;

/// Zones look at the trust bundle's file once a second.
const RELOAD: Duration = Duration::from_millis(1_500);

/// Arguments of `pki`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Makes root, CA, the four zones and the trust bundle in a new folder.
    Init {
        /// Trust domain.
        #[arg(long)]
        realm: String,
        /// The folder.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Issues a certificate, with what belongs to it.
    Issue(Issue),
    /// Makes a further sealing key for the connector; then `credential reseal`.
    NewSealKey {
        /// Folder of the PKI; the context's when not said.
        #[arg(long, value_name = "DIR")]
        pki: Option<PathBuf>,
    },
    /// Revokes a key of the trust bundle, by its id, for ever.
    Revoke {
        /// Its id.
        kid: String,
        /// Folder of the PKI; the context's when not said.
        #[arg(long, value_name = "DIR")]
        pki: Option<PathBuf>,
    },
    /// Gives the connector's journal a new id: for a journal that was lost or restored.
    NewJournal {
        /// Folder of the PKI; the context's when not said.
        #[arg(long, value_name = "DIR")]
        pki: Option<PathBuf>,
    },
}

#[derive(ClapArgs, Debug)]
struct Issue {
    /// For whom.
    #[arg(value_enum)]
    kind: Whom,
    /// Name of the person or service.
    name: String,
    /// New folder of certificate and key.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Folder of the PKI; the context's when not said.
    #[arg(long, value_name = "DIR")]
    pki: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Whom {
    /// A person who operates the tenant; `--tenant '*'` is all.
    Operator,
    /// A person who may be enrolled with `reviewer put`.
    Reviewer,
    /// A service that starts runs.
    Internal,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Init { realm, out } => {
            init(&out, &realm)?;
            let folder = out.display().to_string();
            app.output.value(&json!({"realm": realm, "pki": folder}), || {
                format!("PKI of {} in {}", text::escape(&realm), text::escape(&folder))
            });
        }
        Command::Issue(args) => issue(args, app).await?,
        Command::NewSealKey { pki } => {
            let kid = Pki::open(&folder(pki, app)?).and_then(|pki| pki.new_seal_key()).map_err(unfit)?;
            tokio::time::sleep(RELOAD).await;
            app.output.value(&json!({"kid": kid}), || format!("sealing key {kid}"));
        }
        Command::Revoke { kid, pki } => {
            Pki::open(&folder(pki, app)?).and_then(|pki| pki.revoke(&kid)).map_err(unfit)?;
            tokio::time::sleep(RELOAD).await;
            app.output.value(&json!({"kid": kid}), || format!("{} revoked", text::escape(&kid)));
        }
        Command::NewJournal { pki } => {
            let journal = Pki::open(&folder(pki, app)?).and_then(|pki| pki.new_journal()).map_err(unfit)?;
            app.output.value(&json!({"journal": journal}), || format!("journal {journal}"));
        }
    }
    Ok(0)
}

async fn issue(args: Issue, app: &App) -> Result<(), Failure> {
    let kind = match args.kind {
        Whom::Operator => Kind::Operator,
        Whom::Reviewer => Kind::Reviewer,
        Whom::Internal => Kind::Internal,
    };
    let tenants = if kind == Kind::Reviewer {
        // Who may review what stands in approval's own store.
        Vec::new()
    } else {
        let tenant = match &app.global.tenant {
            Some(tenant) => tenant.clone(),
            None => {
                Context::load(&app.global)
                    .map_err(|_| Failure::usage("say --tenant T; `*` is all tenants"))?
                    .tenant
            }
        };
        vec![tenant]
    };
    let live = args.pki.is_none();
    let pki = Pki::open(&folder(args.pki, app)?).map_err(unfit)?;
    let id = pki.issue(kind, &args.name, &tenants, &args.out).map_err(unfit)?;
    if live && kind != Kind::Reviewer {
        tokio::time::sleep(RELOAD).await;
    }
    let at = |name: &str| args.out.join(name).display().to_string();
    let value = json!({"id": id, "cert": at("tls.crt"), "key": at("tls.key"), "tenants": tenants});
    app.output.value(&value, || {
        text::pairs(&[("id", id.clone()), ("cert", at("tls.crt")), ("key", at("tls.key"))])
    });
    Ok(())
}

/// The PKI's folder: as said, or where the context's CA lies.
fn folder(said: Option<PathBuf>, app: &App) -> Result<PathBuf, Failure> {
    match said {
        Some(folder) => Ok(folder),
        None => Ok(Context::load(&app.global)?.ca.parent().map(Path::to_path_buf).unwrap_or_default()),
    }
}

/// Makes a PKI.
pub(crate) fn init(folder: &Path, realm: &str) -> Result<(), Failure> {
    Pki::init(folder, realm).map(|_| ()).map_err(unfit)
}

/// Issues an identity of a PKI.
pub(crate) fn issue_into(
    folder: &Path,
    kind: Kind,
    name: &str,
    tenants: &[String],
    out: &Path,
) -> Result<(), Failure> {
    Pki::open(folder).and_then(|pki| pki.issue(kind, name, tenants, out)).map(|_| ()).map_err(unfit)
}

#[allow(clippy::needless_pass_by_value, reason = "serves as a function of map_err")]
fn unfit(error: exequatur_pki::PkiError) -> Failure {
    Failure::failed("PKI_FAILED", error.to_string())
}
