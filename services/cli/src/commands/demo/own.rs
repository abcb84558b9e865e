//! The plane that the demo plays on: the running development plane, or one of its own in a throw-away folder.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::App;
use crate::commands::dev;
use crate::connect::{Plane, Zone};
use crate::context::{self, Context};
use crate::failure::Failure;

/// Longest wait for a plane of our own, with a build from nothing before it.
const START: Duration = Duration::from_secs(1_800);

/// A plane to play on.
pub(crate) struct Playground {
    pub(crate) ready_file: PathBuf,
    own: Option<(Child, tempfile::TempDir)>,
}

/// Takes the running development plane, if there is one; sabotage always gets a plane of its own.
pub(crate) async fn find_or_start(only_own: bool, app: &App) -> Result<Playground, Failure> {
    if !only_own && let Some(ready_file) = context::named(&app.global).or_else(context::active_ready_file) {
        match running(&ready_file, app).await {
            Ok(true) => return Ok(Playground { ready_file, own: None }),
            Ok(false) => {}
            // A context that was named must be right; a stale one that was not is passed over.
            Err(failure) if context::named(&app.global).is_some() => return Err(failure),
            Err(_) => {}
        }
    }
    start(app).await
}

async fn running(ready_file: &std::path::Path, app: &App) -> Result<bool, Failure> {
    let context = Context::read(ready_file)?;
    if context.dev.is_none() {
        return Err(Failure::usage("the demo plays only on a plane of `exequatur dev`"));
    }
    let tenant = context.tenant(&app.global);
    let plane = Plane::with(context.clone(), Some(context.operator.clone()), &tenant)?;
    Ok(dev::serves(&plane, Zone::Governance).await)
}

async fn start(app: &App) -> Result<Playground, Failure> {
    let failed =
        |e: std::io::Error| Failure::failed("UNAVAILABLE", format!("cannot start `exequatur dev`: {e}"));
    let folder = tempfile::Builder::new().prefix("exequatur-demo-").tempdir().map_err(failed)?;
    let ready_file = folder.path().join("ready.json");
    let own = std::env::current_exe().map_err(failed)?;
    app.output.note("no development plane is running, so the demo starts one of its own");
    let mut child = Command::new(own)
        .args(["dev", "--exit-with-stdin", "--quiet", "--data"])
        .arg(folder.path().join("dev"))
        .arg("--ready-file")
        .arg(&ready_file)
        .env_remove("EXEQUATUR_CONTEXT")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let until = Instant::now() + START;
    while !ready_file.is_file() {
        if let Ok(Some(status)) = child.try_wait() {
            // What it said stands on standard error; its logs must outlive the folder.
            let kept = folder.keep();
            return Err(Failure::failed("UNAVAILABLE", format!("`exequatur dev` ended ({status})"))
                .with("data", kept.display().to_string()));
        }
        if Instant::now() > until {
            return Err(Failure::failed("UNAVAILABLE", "`exequatur dev` did not become ready"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(Playground { ready_file, own: Some((child, folder)) })
}

impl Playground {
    /// Stops a plane of our own; a running one stays.
    pub(crate) async fn stop(self) {
        let Some((mut child, _folder)) = self.own else { return };
        drop(child.stdin.take());
        if tokio::time::timeout(Duration::from_secs(60), child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}
