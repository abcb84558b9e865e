//! Where a development plane keeps what. One process at a time owns the folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::ports::Ports;
use super::{AGENT, OPERATOR, REVIEWER, TENANT};
use crate::context::{Context, Endpoints, Identity};
use crate::failure::Failure;

/// Says that `exequatur dev` made the folder; also the lock.
pub(crate) const MARKER: &str = "dev.lock";

/// The data folder, locked.
pub(crate) struct Layout {
    root: PathBuf,
    _lock: File,
}

impl Layout {
    /// Makes and locks the folder.
    pub(crate) fn open(data: &Path) -> Result<Self, Failure> {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::failed("STORAGE_FAILED", format!("cannot use the data folder `{}`: {e}", data.display()))
        };
        std::fs::create_dir_all(data).map_err(|e| failed(&e))?;
        let root = data.canonicalize().map_err(|e| failed(&e))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(root.join(MARKER))
            .map_err(|e| failed(&e))?;
        lock.try_lock().map_err(|_| {
            Failure::failed(
                "CONFLICT",
                format!("another `exequatur dev` uses `{}`: stop it, or say --data DIR", root.display()),
            )
        })?;
        Ok(Self { root, _lock: lock })
    }

    /// The folder itself, absolute.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Certificates, keys, bundle.
    pub(crate) fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// A zone's folder: configuration, database, log.
    pub(crate) fn zone(&self, zone: &str) -> PathBuf {
        self.root.join(zone)
    }

    /// The demo providers' folder.
    pub(crate) fn providers(&self) -> PathBuf {
        self.root.join("demo-providers")
    }

    /// The providers' own log.
    pub(crate) fn provider_log(&self) -> PathBuf {
        self.providers().join("log.jsonl")
    }

    /// Tool files and rules of the demo tenant.
    pub(crate) fn tenant(&self) -> PathBuf {
        self.root.join("tenant")
    }

    /// The ready file that is always written.
    pub(crate) fn ready_file(&self) -> PathBuf {
        self.root.join("ready.json")
    }

    /// A person's certificate and key.
    pub(crate) fn person(&self, name: &str) -> Identity {
        let folder = self.pki().join("people").join(name);
        Identity { cert: folder.join("tls.crt"), key: folder.join("tls.key") }
    }

    /// The content of the ready file.
    pub(crate) fn context(&self, ports: &Ports, pids: BTreeMap<String, u32>) -> Context {
        let at = |port: u16| format!("127.0.0.1:{port}");
        Context {
            vault: None,
            pg: None,
            endpoints: Endpoints {
                governance: at(ports.governance),
                approval: at(ports.approval),
                credential_vault: at(ports.credential_vault),
                connector: at(ports.connector),
            },
            pids,
            ca: self.pki().join("ca.crt"),
            bundle: self.pki().join("bundle.json"),
            root_key: self.pki().join("root.pub"),
            operator: self.person(OPERATOR),
            reviewer: Some(self.person(REVIEWER)),
            tenant: TENANT.to_owned(),
            agent: AGENT.to_owned(),
            provider_log: Some(self.provider_log()),
            dev: Some(crate::context::Dev {
                pid: std::process::id(),
                data: self.root.clone(),
                provider_admin: at(ports.provider_admin),
            }),
        }
    }
}
