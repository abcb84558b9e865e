//! Where the plane is and who this program is: a ready file of `exequatur dev`, or one of the same shape.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::args::Global;
use crate::failure::Failure;

/// The content of a ready file. Unknown keys are left alone, so that the file may grow.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Context {
    pub(crate) endpoints: Endpoints,
    #[serde(default)]
    pub(crate) pids: std::collections::BTreeMap<String, u32>,
    pub(crate) ca: PathBuf,
    pub(crate) bundle: PathBuf,
    pub(crate) root_key: PathBuf,
    pub(crate) operator: Identity,
    #[serde(default)]
    pub(crate) reviewer: Option<Identity>,
    pub(crate) tenant: String,
    pub(crate) agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_log: Option<PathBuf>,
    /// The Vault of a development plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) vault: Option<Vault>,
    /// The database of a development plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pg: Option<Pg>,
    /// Only of a development plane.
    #[serde(flatten)]
    pub(crate) dev: Option<Dev>,
}

/// A Vault that an operator can look into.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Vault {
    /// `https://HOST:PORT`.
    pub(crate) address: String,
    /// PEM file of its CA.
    pub(crate) ca: PathBuf,
    /// Its audit log, JSON Lines.
    pub(crate) audit_log: PathBuf,
    /// File with a token that may do everything.
    pub(crate) root_token_file: PathBuf,
}

/// A database that an operator can look into.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Pg {
    /// Connection string of the superuser.
    pub(crate) dsn: String,
}

/// What only a development plane has.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Dev {
    /// The process that starts the zones again.
    #[serde(rename = "dev_pid")]
    pub(crate) pid: u32,
    /// The data folder.
    pub(crate) data: PathBuf,
    /// Fault control of the demo providers.
    pub(crate) provider_admin: String,
}

/// host:port of each zone.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) governance: String,
    pub(crate) approval: String,
    #[serde(rename = "credential-vault")]
    pub(crate) credential_vault: String,
    pub(crate) connector: String,
}

/// Certificate and private key, PEM files.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Identity {
    /// The key that signs definitions lies beside the certificate.
    pub(crate) fn definition_key(&self) -> PathBuf {
        self.cert.with_file_name("definition.key")
    }
}

/// What `exequatur dev` leaves so that the next command finds it.
#[derive(Serialize, Deserialize)]
struct Active {
    name: String,
    ready_file: PathBuf,
}

impl Context {
    /// The context of this command: `--ready-file`, `EXEQUATUR_CONTEXT`, or the active one.
    pub(crate) fn load(global: &Global) -> Result<Self, Failure> {
        let file = match named(global) {
            Some(file) => file,
            None => active_ready_file().ok_or_else(|| {
                Failure::usage(
                    "no context: start `exequatur dev`, or say --ready-file FILE or EXEQUATUR_CONTEXT",
                )
            })?,
        };
        Self::read(&file)
    }

    /// Reads a ready file.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let name = file.display();
        let text = std::fs::read(file).map_err(|e| {
            Failure::usage(format!("cannot read the context `{name}`: {e}; is `exequatur dev` running?"))
        })?;
        serde_json::from_slice(&text).map_err(|e| Failure::usage(format!("`{name}` is no context: {e}")))
    }

    /// The operator: `--cert` and `--key`, or the context's.
    pub(crate) fn operator(&self, global: &Global) -> Identity {
        given(global).unwrap_or_else(|| self.operator.clone())
    }

    /// The reviewer: `--cert` and `--key`, or the context's.
    pub(crate) fn reviewer(&self, global: &Global) -> Result<Identity, Failure> {
        given(global)
            .or_else(|| self.reviewer.clone())
            .ok_or_else(|| Failure::usage("the context has no reviewer: say --cert FILE --key FILE"))
    }

    /// The tenant: `--tenant`, or the context's.
    pub(crate) fn tenant(&self, global: &Global) -> String {
        global.tenant.clone().unwrap_or_else(|| self.tenant.clone())
    }
}

/// The context that this call names: `--ready-file` or `EXEQUATUR_CONTEXT`.
pub(crate) fn named(global: &Global) -> Option<PathBuf> {
    let variable = std::env::var_os("EXEQUATUR_CONTEXT").filter(|v| !v.is_empty()).map(PathBuf::from);
    global.ready_file.clone().or(variable)
}

/// `--cert` and `--key`.
pub(crate) fn given(global: &Global) -> Option<Identity> {
    Some(Identity { cert: global.cert.clone()?, key: global.key.clone()? })
}

/// Makes a ready file the active context; best effort, because a home folder may be read-only.
pub(crate) fn activate(name: &str, ready_file: &Path) -> std::io::Result<()> {
    let file = active_file().ok_or_else(|| std::io::Error::other("no home folder"))?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let active = Active { name: name.to_owned(), ready_file: ready_file.to_owned() };
    std::fs::write(file, serde_json::to_vec(&active)?)
}

/// The ready file of the active context.
pub(crate) fn active_ready_file() -> Option<PathBuf> {
    let text = std::fs::read(active_file()?).ok()?;
    serde_json::from_slice::<Active>(&text).ok().map(|active| active.ready_file)
}

fn active_file() -> Option<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME").filter(|v| !v.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").filter(|v| !v.is_empty())?).join(".config"),
    };
    Some(folder.join("exequatur").join("context.json"))
}
