//! A small process that ends the zones when `exequatur dev` is gone without having stopped them. It learns
//! process ids over its standard input and acts when that ends.

use std::io::BufRead as _;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::failure::Failure;

/// A process, told apart from a later one with the same id by when it started.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    pid: i32,
    started: Option<u64>,
}

/// Reads `+ PID`, `- PID` and `done` lines until the input ends.
pub(crate) fn run() -> Result<u8, Failure> {
    let mut known: Vec<Known> = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("+", pid)) => {
                if let Ok(pid) = pid.parse() {
                    known.push(Known { pid, started: started(pid) });
                }
            }
            Some(("-", pid)) => known.retain(|process| Ok(process.pid) != pid.parse()),
            _ if line == "done" => return Ok(0),
            _ => {}
        }
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for process in &known {
            if process.started.is_some() && started(process.pid) == process.started {
                let _ = kill(Pid::from_raw(process.pid), signal);
            }
        }
        std::thread::sleep(Duration::from_secs(3));
    }
    Ok(0)
}

/// When a process started, in ticks since boot: field 22 of /proc/PID/stat.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
