//! `completions` and `man`, made from the argument definitions.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> u8 {
    clap_complete::generate(args.shell, &mut Cli::command(), "exequatur", &mut output::stream());
    0
}

/// Writes the manual page.
pub(crate) fn man() -> Result<u8, Failure> {
    let mut out = output::stream();
    clap_mangen::Man::new(Cli::command())
        .render(&mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
    Ok(0)
}
