//! Arguments that every command shares, and the list of commands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;

/// A governed action plane for AI agents: propose, decide, execute exactly what was approved.
#[derive(Parser, Debug)]
#[command(name = "exequatur", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Arguments of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// How data is written to standard output.
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
    /// No talk on standard error.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Never asks; what would need an answer fails.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Where the plane is: a ready file of `exequatur dev` or one of the same shape; EXEQUATUR_CONTEXT names one,
    /// too. `dev` writes it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
    /// Acts under this certificate in place of the context's.
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of --cert.
    #[arg(long, global = true, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Tenant; the context's when not said.
    #[arg(long, global = true, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
}

/// How data is written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// Exactly one JSON object, also on failure.
    Json,
    /// A JSON object per item.
    Jsonl,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Starts the whole plane on this machine, for development.
    Dev(commands::dev::Args),
    /// Tells the story in checked lines, against a plane of its own.
    Demo(commands::demo::Args),
    /// Makes development certificates, keys and trust bundles.
    Pki(commands::pki::Args),
    /// Starts, lists and revokes runs; `run -- COMMAND` runs an agent in one.
    Run(commands::run::Args),
    /// Proposes plans and says what became of them.
    Plan(commands::plan::Args),
    /// What waits for a person.
    Inbox(commands::inbox::Args),
    /// Who may approve.
    Reviewer(commands::reviewer::Args),
    /// The tool register.
    Tool(commands::tool::Args),
    /// Rules.
    Policy(commands::policy::Args),
    /// Credentials, sealed before they leave this program.
    Credential(commands::credential::Args),
    /// Looks at everything that the plane needs, and says what is missing.
    Doctor,
    /// Clocks of the zones.
    Clock(commands::clock::Args),
    /// Evidence: export and offline verification.
    Ledger(commands::ledger::Args),
    /// Canonical bytes, digests and display text, offline.
    Canonical(commands::canonical::Args),
    /// Shell completions.
    Completions(commands::shell::CompletionsArgs),
    /// Manual page.
    Man,
    /// Ends listed processes when standard input ends.
    #[command(hide = true, name = "dev-guard")]
    DevGuard,
}

/// The output format of a command line that clap could not parse.
pub(crate) fn format_of(arguments: impl Iterator<Item = String>) -> Format {
    let mut format = Format::Table;
    let mut named = false;
    for argument in arguments {
        let value = if named { Some(argument.as_str()) } else { argument.strip_prefix("--output=") };
        if let Some(found) = value.and_then(|v| Format::from_str(v, false).ok()) {
            format = found;
        }
        named = argument == "--output";
    }
    format
}
