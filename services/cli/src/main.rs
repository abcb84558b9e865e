//! `exequatur`, the command line for operators, reviewers, agents and auditors. Links no zone.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests may stop at once"
    )
)]

use std::process::ExitCode;

use clap::Parser as _;

mod args;
mod card;
mod commands;
mod connect;
mod context;
mod failure;
mod output;
mod text;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let output = Output::new(cli.global.output, cli.global.quiet);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.failure(&Failure::failed("INTERNAL", format!("no runtime: {error}"))),
    };
    let app = commands::App { output, global: cli.global };
    let result = runtime.block_on(commands::run(cli.command, &app));
    // Blocked reads of standard input must not keep the process.
    runtime.shutdown_background();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => app.output.failure(&failure),
    }
}

/// Help and version are no failure; a usage error is one JSON object where JSON was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let ok = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let _ = error.print();
        return ExitCode::from(if ok { 0 } else { failure::USAGE });
    }
    let format = args::format_of(std::env::args());
    if format == args::Format::Table {
        let _ = error.print();
        return ExitCode::from(failure::USAGE);
    }
    Output::new(format, false).failure(&Failure::usage(error.render().to_string().trim().to_owned()))
}
