//! One file per command group. A command reads arguments, calls the plane or a library, and hands its result
//! to the output.

use crate::args::{Command, Global};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) mod canonical;
pub(crate) mod clock;
pub(crate) mod credential;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod inbox;
pub(crate) mod ledger;
pub(crate) mod pki;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod reviewer;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod tool;

/// What every command gets.
pub(crate) struct App {
    pub(crate) output: Output,
    pub(crate) global: Global,
}

/// Runs one command; the number is the exit code.
pub(crate) async fn run(command: Command, app: &App) -> Result<u8, Failure> {
    match command {
        Command::Dev(args) => dev::run(args, app).await,
        Command::Demo(args) => demo::run(args, app).await,
        Command::Pki(args) => pki::run(args, app).await,
        Command::Run(args) => run::run(args, app).await,
        Command::Plan(args) => plan::run(args, app).await,
        Command::Inbox(args) => inbox::run(args, app).await,
        Command::Reviewer(args) => reviewer::run(args, app).await,
        Command::Tool(args) => tool::run(args, app).await,
        Command::Policy(args) => policy::run(args, app).await,
        Command::Credential(args) => credential::run(args, app).await,
        Command::Doctor => doctor::run(app).await,
        Command::Clock(args) => clock::run(args, app).await,
        Command::Ledger(args) => ledger::run(args, app).await,
        Command::Canonical(args) => canonical::run(&args),
        Command::Completions(args) => Ok(shell::completions(&args)),
        Command::Man => shell::man(),
        Command::DevGuard => dev::guard::run(),
    }
}
