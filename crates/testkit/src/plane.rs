//! One plane: `exequatur dev` in a folder of its own on free ports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::cli::Output;
use crate::eventually;
use crate::provider::Providers;

const START: Duration = Duration::from_secs(90);

/// The ready file, as its contract says.
#[derive(Debug, Clone)]
pub struct Ready(pub Json);

impl Ready {
    /// A text at a JSON Pointer.
    #[must_use]
    pub fn text(&self, pointer: &str) -> String {
        self.0
            .pointer(pointer)
            .and_then(Json::as_str)
            .unwrap_or_else(|| panic!("no `{pointer}` in the ready file"))
            .to_owned()
    }

    /// A path at a JSON Pointer.
    #[must_use]
    pub fn path(&self, pointer: &str) -> PathBuf {
        PathBuf::from(self.text(pointer))
    }

    /// The process of a zone.
    #[must_use]
    pub fn pid(&self, zone: &str) -> i32 {
        let pid = self.0["pids"][zone].as_i64().unwrap_or_else(|| panic!("no pid of `{zone}`"));
        i32::try_from(pid).unwrap()
    }

    /// host:port of a zone.
    #[must_use]
    pub fn endpoint(&self, zone: &str) -> String {
        self.0["endpoints"][zone].as_str().unwrap_or_else(|| panic!("no endpoint of `{zone}`")).to_owned()
    }
}

/// A built program beside the test's own.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().find(|p| p.join("deps").is_dir()).unwrap();
    let path = folder.join(name);
    assert!(path.is_file(), "`{}` is not built: run `cargo xtask test build` first", path.display());
    path
}

/// A running plane; stopped and removed on drop.
pub struct Plane {
    folder: TempDir,
    child: Option<Child>,
    more: Vec<String>,
}

impl Plane {
    /// Starts a plane with the demo tenant ready.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further arguments of `dev`.
    #[must_use]
    pub fn start_with(more: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("exequatur-test-").tempdir().unwrap();
        let mut plane = Self { folder, child: None, more: more.iter().map(|a| (*a).to_owned()).collect() };
        plane.up();
        plane
    }

    /// Starts again in the same folder after [`Plane::down`].
    pub fn up(&mut self) {
        drop(std::fs::remove_file(self.ready_file()));
        let log = std::fs::File::create(self.folder.path().join("dev.log")).unwrap();
        let child = Command::new(program("exequatur"))
            .args(["dev", "--data"])
            .arg(self.data())
            .arg("--ready-file")
            .arg(self.ready_file())
            .args(&self.more)
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        eventually("the plane is up", START, || {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                panic!("dev ended with {status}: {}", self.log());
            }
            self.ready_file().is_file().then_some(())
        });
    }

    /// Stops the plane cleanly and gives its exit code.
    pub fn down(&mut self) -> Option<i32> {
        let mut child = self.child.take()?;
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).ok();
        let status = eventually("the plane stops", Duration::from_secs(30), || child.try_wait().unwrap());
        status.code()
    }

    /// The folder of everything.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `--data`.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// `--ready-file`.
    #[must_use]
    pub fn ready_file(&self) -> PathBuf {
        self.folder.path().join("ready.json")
    }

    /// The ready file as it is now.
    #[must_use]
    pub fn ready(&self) -> Ready {
        Ready(serde_json::from_slice(&std::fs::read(self.ready_file()).unwrap()).unwrap())
    }

    /// What `dev` printed.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("dev.log")).unwrap_or_default()
    }

    /// Sends a signal to a zone.
    pub fn signal(&self, zone: &str, signal: Signal) {
        kill(Pid::from_raw(self.ready().pid(zone)), signal).unwrap();
    }

    /// `kill -9` of a zone, then waits until `dev` has started it again and it answers.
    pub fn kill(&self, zone: &str) {
        let before = self.ready().pid(zone);
        self.signal(zone, Signal::SIGKILL);
        eventually("the zone is started again", START, || (self.ready().pid(zone) != before).then_some(()));
        let endpoint = self.ready().endpoint(zone);
        eventually("the zone listens again", START, || std::net::TcpStream::connect(&endpoint).ok());
    }

    /// Runs the CLI with `--output json` in this plane's context.
    #[must_use]
    pub fn cli(&self, arguments: &[&str]) -> Output {
        self.cli_with(arguments, &BTreeMap::new(), b"")
    }

    /// The same with more environment and standard input.
    #[must_use]
    pub fn cli_with(
        &self,
        arguments: &[&str],
        environment: &BTreeMap<String, String>,
        input: &[u8],
    ) -> Output {
        let mut command = Command::new(program("exequatur"));
        command
            .args(["--output", "json"])
            .args(arguments)
            .env("EXEQUATUR_CONTEXT", self.ready_file())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .envs(environment)
            .current_dir(self.folder.path());
        Output::of(&mut command, input)
    }

    /// Starts a run of the demo tenant and gives the path of a file with its token.
    #[must_use]
    pub fn run_token(&self, scopes: &[&str]) -> (String, PathBuf) {
        let mut arguments = vec!["run", "start", "--tenant", "demo", "--agent", "demo-bot"];
        for scope in scopes {
            arguments.extend(["--scope", scope]);
        }
        let started = self.cli(&arguments).ok();
        let run = started["run"].as_str().unwrap().to_owned();
        let file = self.folder.path().join(format!("token-{run}"));
        std::fs::write(&file, started["token"].as_str().unwrap()).unwrap();
        (run, file)
    }

    /// Proposes a plan from its JSON and gives the CLI's output.
    #[must_use]
    pub fn propose(&self, token: &Path, plan: &Json, more: &[&str]) -> Output {
        let file = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        std::fs::write(file.path(), plan.to_string()).unwrap();
        let (token, path) = (token.to_str().unwrap(), file.path().to_str().unwrap());
        let mut arguments = vec!["plan", "propose", "--token-file", token, "--file", path];
        arguments.extend(more);
        self.cli(&arguments)
    }

    /// The plan now.
    #[must_use]
    pub fn plan(&self, token: &Path, plan: &str) -> Json {
        self.cli(&["plan", "get", plan, "--token-file", token.to_str().unwrap()]).json
    }

    /// Waits until the action is in one of the states and gives the plan.
    #[must_use]
    pub fn until(&self, token: &Path, plan: &str, index: usize, states: &[&str]) -> Json {
        let mut last = Json::Null;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            last = match self.plan(token, plan) {
                now if states.contains(&now["actions"][index]["state"].as_str().unwrap_or_default()) => {
                    return now;
                }
                now if now.is_null() => last,
                now => now,
            };
            assert!(Instant::now() < deadline, "action {index} is none of {states:?} within 60 s: {last}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The id of the approval of a plan, once it is in the inbox.
    #[must_use]
    pub fn approval_of(&self, plan: &str) -> String {
        eventually("the approval is in the inbox", Duration::from_secs(30), || {
            let inbox = self.cli(&["inbox", "list"]).json;
            inbox["items"].as_array()?.iter().find(|i| i["plan"] == plan)?["approval"]
                .as_str()
                .map(ToOwned::to_owned)
        })
    }

    /// The providers' log and faults.
    #[must_use]
    pub fn providers(&self) -> Providers {
        let ready = self.ready();
        let admin = ready.0["provider_admin"].as_str().map(ToOwned::to_owned);
        Providers::new(ready.path("/provider_log"), admin)
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln_tail(&self.log());
        }
        self.down();
    }
}

#[allow(clippy::print_stderr, reason = "the reader of a failed test needs the plane's last words")]
fn eprintln_tail(log: &str) {
    let lines: Vec<_> = log.lines().collect();
    let from = lines.len().saturating_sub(40);
    eprintln!("--- last lines of dev ---\n{}", lines[from..].join("\n"));
}
