//! Configuration: defaults < file < `EXEQUATUR_*`. Unknown keys are errors that name the nearest one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format as _, Toml};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Whether development shortcuts are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Loopback only; throw-away keys are accepted.
    Development,
    /// Nothing of that.
    Production,
}

/// What every zone needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Common {
    /// Required: nothing is assumed.
    pub mode: Mode,
    /// Trust domain; must be the bundle's and the certificate's.
    pub realm: String,
    /// Where the zone listens.
    pub listen: SocketAddr,
    /// Folder of the zone's database.
    pub data: PathBuf,
    /// Certificate, key, CA.
    pub tls: TlsSection,
    /// Trust bundle and root.
    pub trust: TrustSection,
    /// Signing keys.
    pub keys: KeysSection,
    /// error, warn, info, debug or trace.
    #[serde(default = "info")]
    pub log: String,
}

fn info() -> String {
    "info".to_owned()
}

/// PEM files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSection {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// CA that clients and servers of the realm come from.
    pub ca: PathBuf,
}

/// Trust bundle and root.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustSection {
    /// DSSE JSON envelope.
    pub bundle: PathBuf,
    /// The operator's root public key.
    pub root_key: PathBuf,
}

/// Signing keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysSection {
    /// One `<purpose>.key` per purpose that the zone holds.
    pub directory: PathBuf,
}

const COMMON: &[&str] = &["mode", "realm", "listen", "data", "tls", "trust", "keys", "log"];

/// The top-level keys that a zone adds; their content is the zone's own.
pub trait SectionNames {
    /// Names of tables or values.
    const NAMES: &'static [&'static str];
}

/// Reads common and own part.
pub(crate) fn read<C: DeserializeOwned + SectionNames>(file: &Path) -> Result<(Common, C), String> {
    if !file.is_file() {
        return Err(format!("configuration file `{}` is not there", file.display()));
    }
    let figment = Figment::new()
        .merge(Toml::file_exact(file))
        .merge(Env::prefixed("EXEQUATUR_").ignore(&["context"]).split("__"));
    let keys: figment::value::Dict = figment.extract().map_err(|e| e.to_string())?;
    for key in keys.keys() {
        if !COMMON.contains(&key.as_str()) && !C::NAMES.contains(&key.as_str()) {
            return Err(unknown(key, C::NAMES, file));
        }
    }
    let common = figment.extract::<Common>().map_err(|e| e.to_string())?;
    let own = figment.extract::<C>().map_err(|e| e.to_string())?;
    if common.mode == Mode::Development && !common.listen.ip().is_loopback() {
        return Err(format!("mode `development` listens on loopback only, not on `{}`", common.listen));
    }
    Ok((common, own))
}

fn unknown(key: &str, own: &[&str], file: &Path) -> String {
    let nearest = COMMON
        .iter()
        .chain(own)
        .min_by_key(|known| strsim::damerau_levenshtein(known, key))
        .copied()
        .unwrap_or_default();
    format!("unknown key `{key}` in `{}` or the environment: did you mean `{nearest}`?", file.display())
}
