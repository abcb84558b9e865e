//! `canonical digest|verify|show`: a line out per line in, in constant memory. Offline.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use exequatur_canonical::jsonl;

use crate::failure::Failure;
use crate::output;

/// Arguments of `canonical`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// JSON arguments to canonical bytes and digests.
    Digest(Lines),
    /// Checks that bytes are canonical.
    Verify(KindLines),
    /// The display text of canonical bytes.
    Show(KindLines),
}

#[derive(ClapArgs, Debug)]
struct Lines {
    /// JSON Lines in and out; the only form.
    #[arg(long)]
    jsonl: bool,
    /// Reads this file in place of standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
struct KindLines {
    /// What the bytes are.
    #[arg(long, value_enum, default_value_t = Kind::Action)]
    kind: Kind,
    #[command(flatten)]
    lines: Lines,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Kind {
    /// An action.
    Action,
    /// A plan header.
    Plan,
}

impl From<Kind> for jsonl::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Action => Self::Action,
            Kind::Plan => Self::Plan,
        }
    }
}

/// Longest line that is read whole; a longer one is answered `INVALID_LINE` without being kept. Twice the
/// size of the largest action with every byte escaped as `\u00XX` and then in base64.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::Digest(lines) => each(lines, jsonl::digest),
        Command::Verify(args) => each(&args.lines, |line| jsonl::verify(args.kind.into(), line)),
        Command::Show(args) => each(&args.lines, |line| jsonl::show(args.kind.into(), line)),
    }
}

fn each(lines: &Lines, answer: impl Fn(&[u8]) -> String) -> Result<u8, Failure> {
    stream(lines.file.as_deref(), answer)
}

/// Answers every line of a file or of standard input with a line, in constant memory.
pub(super) fn stream(file: Option<&Path>, answer: impl FnMut(&[u8]) -> String) -> Result<u8, Failure> {
    match file {
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|e| Failure::bad_input(format!("cannot read `{}`: {e}", path.display())))?;
            pump(BufReader::with_capacity(256 * 1024, file), output::stream(), answer)
        }
        None => pump(BufReader::with_capacity(256 * 1024, std::io::stdin().lock()), output::stream(), answer),
    }
}

/// Gives every line of a file or of standard input, in constant memory; one that is too long is empty.
pub(super) fn lines(file: Option<&Path>, mut give: impl FnMut(&[u8])) -> Result<(), Failure> {
    let input: Box<dyn Read> = match file {
        Some(path) => Box::new(
            std::fs::File::open(path)
                .map_err(|e| Failure::bad_input(format!("cannot read `{}`: {e}", path.display())))?,
        ),
        None => Box::new(std::io::stdin().lock()),
    };
    let mut input = BufReader::with_capacity(256 * 1024, input);
    let mut line = Vec::new();
    while let Some(whole) = next_line(&mut input, &mut line)
        .map_err(|e| Failure::failed("INPUT_FAILED", format!("cannot read the input: {e}")))?
    {
        give(if whole { &line } else { &[] });
    }
    Ok(())
}

fn pump<R: Read>(
    mut input: BufReader<R>,
    mut out: impl Write,
    mut answer: impl FnMut(&[u8]) -> String,
) -> Result<u8, Failure> {
    let mut line = Vec::new();
    loop {
        // A caller that waits for its answer before it writes the next line gets it.
        if input.buffer().is_empty() && out.flush().is_err() {
            return Ok(crate::failure::FAILED);
        }
        let whole = match next_line(&mut input, &mut line) {
            Ok(None) => break,
            Ok(Some(whole)) => whole,
            Err(e) => return Err(Failure::failed("INPUT_FAILED", format!("cannot read the input: {e}"))),
        };
        let text = if whole { answer(&line) } else { r#"{"error":"INVALID_LINE"}"#.to_owned() };
        if out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).is_err() {
            // The reader went away; nothing more to answer.
            return Ok(crate::failure::FAILED);
        }
    }
    out.flush().map_err(|e| Failure::failed("OUTPUT_FAILED", format!("cannot write the output: {e}")))?;
    Ok(0)
}

/// Reads a line without its end; `Some(false)`: it was longer than the limit and is dropped.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    line.clear();
    let mut whole = true;
    let mut any = false;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = buffer.iter().position(|b| *b == b'\n');
        let taken = end.unwrap_or(buffer.len());
        if line.len().saturating_add(taken) > LINE_LIMIT {
            whole = false;
            line.clear();
            line.shrink_to(0);
        } else if whole && let Some(part) = buffer.get(..taken) {
            line.extend_from_slice(part);
        }
        input.consume(end.map_or(taken, |at| at.saturating_add(1)));
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some(whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &str) -> String {
        let mut out = Vec::new();
        pump(BufReader::with_capacity(3, input.as_bytes()), &mut out, |line| {
            format!("<{}>", String::from_utf8_lossy(line))
        })
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_out_per_line_in() {
        assert_eq!(answers(""), "");
        assert_eq!(answers("a\n\nb"), "<a>\n<>\n<b>\n");
        assert_eq!(answers("a\r\nb\n"), "<a>\n<b>\n");
    }
}
