//! The processes of a development plane: started in order, watched, started again, stopped together.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::Layout;
use super::ports::Ports;
use super::programs::Programs;
use crate::commands::App;
use crate::connect::{Plane, Zone};
use crate::context::Context;
use crate::failure::Failure;

const PROVIDERS: &str = "demo-providers";
/// In the order of starting: who is called before who calls.
const ORDER: [&str; 5] = [PROVIDERS, "approval", "credential-vault", "connector", "governance"];
/// How long a process has to stop by itself.
const GRACE: Duration = Duration::from_secs(10);
/// A zone that starts again has this long before the ready file names it anyway.
const RESTART: Duration = Duration::from_secs(15);

/// SIGTERM or SIGINT.
pub(crate) struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// Ends with standard input, where that was asked for.
    input: Option<tokio::sync::oneshot::Receiver<()>>,
}

impl Stop {
    /// Listens from now on.
    pub(crate) fn listen(with_stdin: bool) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::failed("INTERNAL", e.to_string());
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            input: with_stdin.then(stdin_end),
        })
    }

    /// Ends at the first of them.
    pub(crate) async fn wait(&mut self) {
        let input = async {
            match &mut self.input {
                Some(input) => {
                    let _ = input.await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! { _ = self.terminate.recv() => {}, _ = self.interrupt.recv() => {}, () = input => {} }
    }
}

/// Resolves when standard input ends.
fn stdin_end() -> tokio::sync::oneshot::Receiver<()> {
    use std::io::Read as _;
    let (ended, wait) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut buffer = [0_u8; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(n) if n > 0) {}
        drop(ended);
    });
    wait
}

/// All processes.
pub(crate) struct Processes {
    running: BTreeMap<&'static str, Child>,
    commands: BTreeMap<&'static str, Launch>,
    guard: Option<Child>,
    guard_input: Option<ChildStdin>,
}

/// How a process is started.
struct Launch {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    /// When it was started last, against a busy loop of starts.
    last: Option<Instant>,
}

impl Processes {
    /// Starts everything; nothing is healthy yet.
    pub(crate) fn start(layout: &Layout, programs: &Programs, ports: &Ports) -> Result<Self, Failure> {
        let mut processes = Self {
            running: BTreeMap::new(),
            commands: launches(layout, programs, ports)?,
            guard: None,
            guard_input: None,
        };
        processes.start_guard()?;
        for name in ORDER {
            processes.launch(name)?;
        }
        Ok(processes)
    }

    fn start_guard(&mut self) -> Result<(), Failure> {
        let own = std::env::current_exe().map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
        let mut guard = Command::new(own)
            .arg("dev-guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| Failure::failed("INTERNAL", format!("cannot start the guard: {e}")))?;
        self.guard_input = guard.stdin.take();
        self.guard = Some(guard);
        Ok(())
    }

    fn launch(&mut self, name: &'static str) -> Result<(), Failure> {
        let Some(launch) = self.commands.get_mut(name) else { return Ok(()) };
        launch.last = Some(Instant::now());
        let failed =
            |e: std::io::Error| Failure::failed("UNAVAILABLE", format!("cannot start `{name}`: {e}"));
        let log = File::options().create(true).append(true).open(&launch.log).map_err(failed)?;
        let child = Command::new(&launch.program)
            .args(&launch.arguments)
            .env_remove("EXEQUATUR_CONTEXT")
            .stdin(if name == PROVIDERS { Stdio::piped() } else { Stdio::null() })
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            // Ctrl-C reaches this process alone, which then stops the others in order.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let pid = child.id();
        self.running.insert(name, child);
        if let Some(pid) = pid {
            self.tell_guard(&format!("+ {pid}\n"));
        }
        Ok(())
    }

    /// Processes of others that must not outlive this one either.
    pub(crate) fn guard_too(&mut self, pids: &[u32]) {
        for pid in pids {
            self.tell_guard(&format!("+ {pid}\n"));
        }
    }

    /// The pipe holds far more than all lines of a long life; a guard that is gone is no reason to stop.
    fn tell_guard(&mut self, line: &str) {
        if let Some(input) = &mut self.guard_input {
            let mut write = std::pin::pin!(input.write_all(line.as_bytes()));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = std::future::Future::poll(write.as_mut(), &mut context);
        }
    }

    /// Process ids by name.
    pub(crate) fn pids(&self) -> BTreeMap<String, u32> {
        let zones = self.running.iter().filter(|(name, _)| **name != PROVIDERS);
        zones.filter_map(|(name, child)| Some(((*name).to_owned(), child.id()?))).collect()
    }

    /// Waits until every zone answers a health check; a process that ends meanwhile is a failure.
    pub(crate) async fn healthy(&mut self, context: &Context, within: Duration) -> Result<(), Failure> {
        let until = Instant::now() + within;
        let plane = Plane::with(context.clone(), Some(context.operator.clone()), &context.tenant)?;
        for zone in Zone::ALL {
            loop {
                self.all_running()?;
                if serves(&plane, zone).await {
                    break;
                }
                if Instant::now() > until {
                    let text = format!("`{}` does not answer", zone.name());
                    return Err(Failure::failed("UNAVAILABLE", text).with("zone", zone.name()));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    fn all_running(&mut self) -> Result<(), Failure> {
        for (name, child) in &mut self.running {
            if let Ok(Some(status)) = child.try_wait() {
                let log = self.commands.get(name).map(|launch| launch.log.clone()).unwrap_or_default();
                return Err(Failure::failed(
                    "UNAVAILABLE",
                    format!("`{name}` ended while starting: {status}"),
                )
                .with("log", log.display().to_string())
                .with("last_line", last_line(&log)));
            }
        }
        Ok(())
    }

    /// Starts again what dies, until told to stop. The ready files always name living processes.
    pub(crate) async fn watch(
        &mut self,
        mut context: Context,
        files: &[PathBuf],
        stop: &mut Stop,
        app: &App,
    ) -> Result<(), Failure> {
        write_ready(&context, files)?;
        loop {
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
            let dead: Vec<(&'static str, String)> = self
                .running
                .iter_mut()
                .filter_map(|(name, child)| match child.try_wait() {
                    Ok(Some(status)) => Some((*name, status.to_string())),
                    _ => None,
                })
                .collect();
            if dead.is_empty() {
                continue;
            }
            for (name, status) in dead {
                app.output.note(&format!("{name} ended ({status}), starting it again"));
                self.pause(name).await;
                self.launch(name)?;
            }
            tokio::select! {
                _ = self.healthy(&context, RESTART) => {}
                () = stop.wait() => return Ok(()),
            }
            let pids = self.pids();
            if pids.len() < Zone::ALL.len() {
                // One of them is dead again; the next round starts it.
                continue;
            }
            context.pids = pids;
            write_ready(&context, files)?;
        }
    }

    /// A process that lived shorter than a second waits before it is started again.
    async fn pause(&self, name: &str) {
        let lived = self.commands.get(name).and_then(|launch| launch.last).map(|at| at.elapsed());
        if lived.is_some_and(|lived| lived < Duration::from_secs(1)) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Stops everything, callers before the called; what does not stop in time is killed.
    pub(crate) async fn stop(&mut self) {
        for name in ORDER.into_iter().rev() {
            let Some(mut child) = self.running.remove(name) else { continue };
            if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
            }
            if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
        self.tell_guard("done\n");
        drop(self.guard_input.take());
        if let Some(mut guard) = self.guard.take()
            && tokio::time::timeout(Duration::from_secs(2), guard.wait()).await.is_err()
        {
            let _ = guard.kill().await;
        }
    }
}

fn launches(
    layout: &Layout,
    programs: &Programs,
    ports: &Ports,
) -> Result<BTreeMap<&'static str, Launch>, Failure> {
    let mut launches = BTreeMap::new();
    for name in ORDER {
        let Some(program) = programs.get(name) else {
            return Err(Failure::failed("NOT_FOUND", format!("the program `{name}` is missing")));
        };
        let folder = layout.zone(name);
        let text = |path: PathBuf| path.display().to_string();
        let arguments = if name == PROVIDERS {
            let at = |port: u16| format!("127.0.0.1:{port}");
            let mut arguments: Vec<String> = Vec::new();
            for (flag, value) in [
                ("--http", at(ports.provider_http)),
                ("--smtp", at(ports.provider_smtp)),
                ("--admin", at(ports.provider_admin)),
                ("--log", text(layout.provider_log())),
                ("--accounts", text(layout.providers().join("accounts.json"))),
            ] {
                arguments.push(flag.to_owned());
                arguments.push(value);
            }
            arguments.push("--exit-with-stdin".to_owned());
            arguments
        } else {
            vec!["--config".to_owned(), text(folder.join("zone.toml"))]
        };
        let launch =
            Launch { program: program.clone(), arguments, log: folder.join("process.log"), last: None };
        launches.insert(name, launch);
    }
    Ok(launches)
}

/// Whether a zone says SERVING.
pub(crate) async fn serves(plane: &Plane, zone: Zone) -> bool {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;
    let Ok(channel) = plane.channel(zone) else { return false };
    let mut request = tonic::Request::new(HealthCheckRequest::default());
    request.set_timeout(Duration::from_secs(2));
    let answer = tokio::time::timeout(Duration::from_secs(2), async move {
        HealthClient::new(channel).check(request).await
    });
    match answer.await {
        Ok(Ok(response)) => response.into_inner().status() == ServingStatus::Serving,
        _ => false,
    }
}

/// Writes the ready files, each whole or not at all.
fn write_ready(context: &Context, files: &[PathBuf]) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(context).map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
    for file in files {
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&temporary, &text).and_then(|()| std::fs::rename(&temporary, file)).map_err(|e| {
            Failure::failed("STORAGE_FAILED", format!("cannot write `{}`: {e}", file.display()))
        })?;
    }
    Ok(())
}

fn last_line(log: &std::path::Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().next_back().unwrap_or_default().to_owned()
}
