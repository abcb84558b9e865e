//! The one place that writes to the terminal. Text from outside is escaped by whoever builds a table; this
//! module adds nothing to it.

use std::io::{BufWriter, IsTerminal as _, StdoutLock, Write as _};
use std::process::ExitCode;

use serde_json::Value;

use crate::args::Format;
use crate::failure::Failure;
use crate::text;

/// Standard output and standard error of one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: Format,
    quiet: bool,
    color: bool,
}

impl Output {
    /// The outputs of this process.
    pub(crate) fn new(format: Format, quiet: bool) -> Self {
        let color =
            std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::io::stderr().is_terminal();
        Self { format, quiet, color }
    }

    /// Whether people read the output.
    pub(crate) fn is_table(self) -> bool {
        self.format == Format::Table
    }

    /// Writes the one result: an object for machines, or text for people.
    pub(crate) fn value(self, value: &Value, human: impl FnOnce() -> String) {
        match self.format {
            Format::Table => write_out(&human()),
            Format::Json | Format::Jsonl => write_out(&value.to_string()),
        }
    }

    /// Writes a list: one object, an object per item, or text for people.
    pub(crate) fn list(self, whole: &Value, items: &[Value], human: impl FnOnce() -> String) {
        match self.format {
            Format::Table => write_out(&human()),
            Format::Json => write_out(&whole.to_string()),
            Format::Jsonl => {
                for item in items {
                    write_out(&item.to_string());
                }
            }
        }
    }

    /// Talk, on standard error.
    pub(crate) fn note(self, message: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "{message}");
        }
    }

    /// A checked line of the demo: for people as it is, for machines as an object a line.
    pub(crate) fn line(self, human: &str, value: &Value) {
        match self.format {
            Format::Table => write_out(human),
            Format::Jsonl => write_out(&value.to_string()),
            Format::Json => {}
        }
    }

    /// Asks on standard error; the answer is a line of standard input.
    pub(crate) fn ask(self, question: &str) -> std::io::Result<String> {
        let mut stderr = std::io::stderr();
        write!(stderr, "{question}")?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// Says why a command failed and gives its exit code.
    pub(crate) fn failure(self, failure: &Failure) -> ExitCode {
        if self.format == Format::Table {
            let (on, off) = if self.color { ("\u{1b}[31m", "\u{1b}[0m") } else { ("", "") };
            let mut stderr = std::io::stderr();
            let message = text::lines(&failure.message);
            let _ = writeln!(stderr, "{on}error{off} {}: {message}", text::escape(&failure.reason));
            for (key, value) in &failure.metadata {
                let _ = writeln!(stderr, "  {}: {}", text::escape(key), text::escape(value));
            }
            if failure.retryable {
                let _ = writeln!(stderr, "  trying again can help");
            }
        } else {
            write_out(&failure.to_json().to_string());
        }
        ExitCode::from(failure.exit)
    }
}

/// Standard output for commands that write very many lines.
pub(crate) fn stream() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(256 * 1024, std::io::stdout().lock())
}

fn write_out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A closed pipe ends the reader's interest, not the command.
    let _ = stdout.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stdout.write_all(b"\n");
    }
    let _ = stdout.flush();
}
