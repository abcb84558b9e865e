//! A PostgreSQL server of its own cluster. It refuses to run as root, so root starts it as `nobody`.

use std::fs;
use std::io;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, chown};

use crate::ServerTls;
use crate::process::{free_port, postgres_programs};

/// `nobody` on Debian and most others.
const NOBODY: u32 = 65_534;
/// How long the server may take to listen.
const READY: Duration = Duration::from_secs(20);

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
    password: String,
    programs: PathBuf,
}

impl Postgres {
    /// A fresh cluster on a free loopback port; `password` is the superuser's.
    ///
    /// # Errors
    /// When the programs are missing or the server does not come up; the text says why.
    pub fn start(password: &str, tls: Option<&ServerTls>) -> io::Result<Self> {
        let programs = postgres_programs()?;
        let folder = tempfile::Builder::new()
            .prefix("exequatur-postgres-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()?;
        let data = folder.path().join("data");
        fs::create_dir(&data)?;
        let secret = folder.path().join("password");
        fs::write(&secret, password)?;
        for path in [&data, &secret] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            hand_over(path)?;
        }
        let mut init = as_server(&programs.join("initdb"));
        init.arg("-D").arg(&data).args(["-U", "postgres", "--auth=scram-sha-256", "--no-sync"]);
        let made = init.arg("--pwfile").arg(&secret).stdin(Stdio::null()).output()?;
        fs::remove_file(&secret)?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        let port = free_port()?;
        configure(&data, port, tls)?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = as_server(&programs.join("postgres"));
        command.arg("-D").arg(&data).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn()?;
        let mut server = Self { child, folder, port, password: password.to_owned(), programs };
        server.ready()?;
        Ok(server)
    }

    fn ready(&mut self) -> io::Result<()> {
        let start = Instant::now();
        // It listens before it accepts sessions, so its own client asks.
        loop {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.sql("SELECT 1").is_ok() {
                return Ok(());
            }
            if self.child.try_wait()?.is_some() || start.elapsed() > READY {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("PostgreSQL does not come up: {log}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The superuser's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Connection string of the superuser, password and all: for development only.
    #[must_use]
    pub fn dsn(&self) -> String {
        format!("postgresql://postgres:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }

    /// Runs SQL as the superuser; rows as unaligned text.
    ///
    /// # Errors
    /// What the server said.
    pub fn sql(&self, text: &str) -> io::Result<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"])
            .env("PGPASSWORD", &self.password)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres", "-d", "postgres"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = psql.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(text.as_bytes())?;
        }
        let done = child.wait_with_output()?;
        if done.status.success() {
            Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown.
        if let Ok(pid) = i32::try_from(self.child.id()) {
            kill(Pid::from_raw(pid), Signal::SIGINT).ok();
        }
        drop(self.child.wait());
    }
}

fn configure(data: &Path, port: u16, tls: Option<&ServerTls>) -> io::Result<()> {
    let mut more = format!(
        "\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nfsync = off\n"
    );
    if let Some(tls) = tls {
        for (name, from) in [("server.crt", &tls.certificate), ("server.key", &tls.key)] {
            let to = data.join(name);
            fs::copy(from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
            hand_over(&to)?;
        }
        more.push_str("ssl = on\n");
    }
    let mut file = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
    file.write_all(more.as_bytes())
}

/// The program, as a user that is not root.
fn as_server(program: &Path) -> Command {
    if !Uid::effective().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(program);
    command
}

fn hand_over(path: &Path) -> io::Result<()> {
    if Uid::effective().is_root() {
        chown(path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY)))?;
    }
    Ok(())
}
