//! Stopping, freezing and killing the plane's processes, as an outage or an intruder would.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Broken;

/// Sends a signal.
pub(crate) fn signal(pid: u32, signal: Signal) -> Result<(), Broken> {
    let raw = i32::try_from(pid).map_err(|_| format!("{pid} is no process id"))?;
    kill(Pid::from_raw(raw), signal).map_err(|e| format!("cannot send {signal} to process {pid}: {e}"))
}

/// Sends a signal and waits until the process is gone or waits for its parent.
pub(crate) async fn end(pid: u32, with: Signal) -> Result<(), Broken> {
    signal(pid, with)?;
    let until = Instant::now() + Duration::from_secs(15);
    while is_running(pid) {
        if Instant::now() > until {
            return Err(format!("process {pid} does not end on {with}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Whether a process still runs; one that only waits for its parent does not.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next().map(ToOwned::to_owned));
    !matches!(state.as_deref(), None | Some("Z" | "X"))
}
