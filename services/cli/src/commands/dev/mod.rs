//! `dev`: the whole plane on this machine, each zone a process of its own, on loopback, with throw-away keys.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::App;
use crate::context::{self, Context};
use crate::failure::Failure;

mod accounts;
mod configure;
pub(crate) mod guard;
mod layout;
mod outside;
mod ports;
mod programs;
mod seed;
mod supervise;

pub(crate) use layout::Layout;
pub(crate) use supervise::serves;

/// Arguments of `dev`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Where everything is kept.
    #[arg(long, value_name = "DIR", default_value = ".exequatur/dev")]
    data: PathBuf,
    /// First of the ports; free ones when not said.
    #[arg(long, value_name = "N")]
    port_base: Option<u16>,
    /// Forgets what is kept and begins anew.
    #[arg(long)]
    reset: bool,
    /// Keeps credentials in a real Vault, set up as an operator would.
    #[arg(long, value_enum)]
    vault: Option<VaultKind>,
    /// Adds a PostgreSQL server, and a tool that reads it as a user made for one action.
    #[arg(long, requires = "vault")]
    pg: bool,
    /// Stops when standard input ends, so that it never outlives its parent.
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum VaultKind {
    /// OpenBao.
    Openbao,
}

/// Trust domain of every development plane.
pub(crate) const REALM: &str = "dev.exequatur";
/// The demo's tenant.
pub(crate) const TENANT: &str = "demo";
/// The demo's agent.
pub(crate) const AGENT: &str = "demo-bot";
/// The operator, as a person.
pub(crate) const OPERATOR: &str = "olivia";
/// The reviewer, as a person.
pub(crate) const REVIEWER: &str = "rob";

/// Longest wait for all zones to answer.
const START: Duration = Duration::from_secs(60);

/// Runs the command until it is told to stop.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let ready_file = app.global.ready_file.clone();
    if args.reset && args.data.exists() {
        reset(&args.data)?;
    }
    let layout = Layout::open(&args.data)?;
    let programs = programs::find(app.output).await?;
    let ports = ports::choose(&layout, args.port_base)?;
    let accounts = accounts::load_or_make(&layout)?;
    let fresh = configure::pki(&layout)?;
    if args.vault.is_some() {
        app.output.note("starting the outside servers");
    }
    let tools = match args.vault {
        Some(VaultKind::Openbao) => Some(programs::tools(app.output).await?),
        None => None,
    };
    let outside = outside::Outside::start(&layout, tools.as_deref(), args.pg, &accounts).await?;
    configure::write(&layout, &ports, &accounts, &outside)?;

    let mut stop = supervise::Stop::listen(args.exit_with_stdin)?;
    let mut plane = supervise::Processes::start(&layout, &programs, &ports)?;
    plane.guard_too(&outside.pids());
    let ready = tokio::select! {
        ready = bring_up(&layout, &ports, &accounts, &outside, fresh, &mut plane, app) => ready,
        () = stop.wait() => {
            plane.stop().await;
            return Ok(0);
        }
    };
    let context = match ready {
        Ok(context) => context,
        Err(failure) => {
            plane.stop().await;
            return Err(failure.with("logs", layout.root().display().to_string()));
        }
    };
    let files = ready_files(&layout, ready_file.as_deref());
    announce(&context, &layout, ready_file.is_none(), app);
    let result = plane.watch(context, &files, &mut stop, app).await;
    plane.stop().await;
    drop(outside);
    for file in &files {
        let _ = std::fs::remove_file(file);
    }
    app.output.note(&format!("stopped; the data stays in {}", layout.root().display()));
    result.map(|()| 0)
}

/// Waits for health, then seeds the demo tenant through the same doors that everybody uses.
async fn bring_up(
    layout: &Layout,
    ports: &ports::Ports,
    accounts: &accounts::Accounts,
    outside: &outside::Outside,
    fresh: bool,
    processes: &mut supervise::Processes,
    app: &App,
) -> Result<Context, Failure> {
    let mut context = layout.context(ports, processes.pids());
    (context.vault, context.pg) = (outside.vault_context(), outside.pg_context());
    processes.healthy(&context, START).await?;
    seed::seed(layout, &context, accounts, outside, fresh, app).await?;
    Ok(context)
}

fn reset(data: &Path) -> Result<(), Failure> {
    // Only what this command made is removed.
    if !data.join(layout::MARKER).is_file() {
        return Err(Failure::usage(format!(
            "`{}` was not made by `exequatur dev`: remove it yourself",
            data.display()
        )));
    }
    drop(Layout::open(data)?);
    std::fs::remove_dir_all(data)
        .map_err(|e| Failure::failed("STORAGE_FAILED", format!("cannot remove `{}`: {e}", data.display())))
}

fn ready_files(layout: &Layout, asked: Option<&Path>) -> Vec<PathBuf> {
    let mut files = vec![layout.ready_file()];
    if let Some(asked) = asked
        && asked != layout.ready_file()
    {
        files.push(asked.to_owned());
    }
    files
}

fn announce(context: &Context, layout: &Layout, activate: bool, app: &App) {
    let note = |text: &str| app.output.note(text);
    note(&format!(
        "exequatur {}  DEV MODE - loopback only, throw-away keys, not for production",
        env!("CARGO_PKG_VERSION")
    ));
    let endpoints = &context.endpoints;
    for (zone, address, who) in [
        ("governance", &endpoints.governance, "agents (run token), services and operators (mTLS)"),
        ("approval", &endpoints.approval, "reviewers"),
        ("credential-vault", &endpoints.credential_vault, "connector, operators"),
        ("connector", &endpoints.connector, "governance, operators"),
    ] {
        note(&format!("  {zone:<17} {address:<21} {who}"));
    }
    let root = layout.root().display();
    note(&format!("  {:<17} {root}   (kept; remove with: exequatur dev --reset)", "data"));
    note(&format!(
        "  {:<17} {}   (what the outside providers really got)",
        "provider log",
        layout.provider_log().display()
    ));
    if activate {
        match context::activate("dev", &layout.ready_file()) {
            Ok(()) => note(&format!("  {:<17} \"dev\" is active", "CLI context")),
            Err(e) => note(&format!(
                "  {:<17} not written ({e}): export EXEQUATUR_CONTEXT={}",
                "CLI context",
                layout.ready_file().display()
            )),
        }
    }
    note("Next: exequatur demo          an agent: exequatur run -- COMMAND          docs: README.md");
}
