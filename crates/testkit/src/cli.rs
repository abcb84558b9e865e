//! One call of the CLI.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

/// What a call of the CLI gave.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit code.
    pub code: i32,
    /// Standard output as JSON; null when it is none.
    pub json: Json,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Runs a command to its end.
    #[must_use]
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input closes the pipe early; that is no fault of the test.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            json: serde_json::from_str(&stdout).unwrap_or(Json::Null),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout,
        }
    }

    /// The JSON of a call that had to succeed.
    #[must_use]
    pub fn ok(self) -> Json {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.json
    }

    /// The reason of a call that had to fail.
    #[must_use]
    pub fn reason(&self) -> String {
        assert_ne!(self.code, 0, "the call had to fail: {}", self.stdout);
        self.json["error"]["reason"]
            .as_str()
            .unwrap_or_else(|| panic!("no reason in {}", self.stdout))
            .to_owned()
    }
}
