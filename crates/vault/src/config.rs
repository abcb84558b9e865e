//! Where Vault is and how to log in. Must not read the environment: `VAULT_*` mean nothing here.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use crate::Error;
use crate::paths::is_name;

/// The section `[vault]` of a zone.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `https://HOST:PORT`, without path.
    pub address: String,
    /// PEM file of the one CA that Vault's certificate must come from; the platform's roots count nothing.
    pub ca: PathBuf,
    /// Namespace, without leading or trailing `/`.
    #[serde(default)]
    pub namespace: Option<String>,
    /// How to log in; none for a party that only unwraps and reads with tokens it is given.
    #[serde(default)]
    pub auth: Option<Auth>,
    /// Limit of one operation, login included, in milliseconds; 100 to 60000.
    #[serde(default = "five_seconds")]
    pub timeout_ms: u64,
    /// Address of this host to call from, for `token_bound_cidrs`; the system chooses when absent.
    #[serde(default)]
    pub local_address: Option<IpAddr>,
    /// Development only: `http://` to a loopback address. The CA file is not read then.
    #[serde(default)]
    pub plain_loopback: bool,
}

/// How to log in. Files are read again at each login.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase", deny_unknown_fields)]
pub enum Auth {
    /// Role id and secret id.
    AppRole {
        /// Mount of the method.
        #[serde(default = "approle")]
        mount: String,
        /// Not a secret.
        role_id: String,
        /// File that holds the secret id, white space around it ignored.
        secret_id_file: PathBuf,
    },
    /// TLS client certificate.
    Cert {
        /// Mount of the method.
        #[serde(default = "cert")]
        mount: String,
        /// The certificate role asked for; the answer must name it.
        role: String,
        /// PEM chain.
        certificate: PathBuf,
        /// PEM key.
        key: PathBuf,
    },
}

const fn five_seconds() -> u64 {
    5_000
}

fn approle() -> String {
    "approle".to_owned()
}

fn cert() -> String {
    "cert".to_owned()
}

impl Config {
    /// Limit of one operation.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// The address with `/v1`, when all of it is allowed.
    pub(crate) fn base(&self) -> Result<String, Error> {
        let url = Url::parse(&self.address).map_err(|_| Error::config("`address` is no URL"))?;
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.path() == "/";
        if !bare || url.host_str().is_none() {
            return Err(Error::config("`address` is https://HOST:PORT and nothing more"));
        }
        match url.scheme() {
            "https" => {}
            "http" if self.plain_loopback && is_loopback(&url) => {}
            _ => {
                return Err(Error::config(
                    "`address` must be https (http only to loopback with `plain_loopback`)",
                ));
            }
        }
        if !(100..=60_000).contains(&self.timeout_ms) {
            return Err(Error::config("`timeout_ms` is 100 to 60000"));
        }
        if self.namespace.as_deref().is_some_and(|name| !name.split('/').all(is_segment)) {
            return Err(Error::config("`namespace` is names with `/` between"));
        }
        match &self.auth {
            Some(Auth::AppRole { mount, .. }) if !mount.split('/').all(is_name) => {
                Err(Error::config("`auth.mount` is no mount"))
            }
            Some(Auth::Cert { mount, role, .. }) if !mount.split('/').all(is_name) || !is_segment(role) => {
                Err(Error::config("`auth.mount` or `auth.role` is no name"))
            }
            Some(_) | None => Ok(format!("{}v1", url.as_str())),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost"
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A name that operators chose: letters of both cases too.
fn is_segment(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(address: &str, plain_loopback: bool) -> Config {
        Config {
            address: address.to_owned(),
            ca: PathBuf::new(),
            namespace: None,
            auth: None,
            timeout_ms: 5_000,
            local_address: None,
            plain_loopback,
        }
    }

    #[test]
    fn only_https_or_explicit_loopback() {
        for (address, plain, fits) in [
            ("https://vault.example:8200", false, true),
            ("https://vault.example:8200/", true, true),
            ("http://127.0.0.1:8200", true, true),
            ("http://[::1]:8200", true, true),
            ("http://localhost:8200", true, true),
            ("http://127.0.0.1:8200", false, false),
            ("http://vault.example:8200", true, false),
            ("http://127.0.0.1.example:8200", true, false),
            ("https://user:pw@vault.example", false, false),
            ("https://vault.example/v1", false, false),
            ("https://vault.example?x=1", false, false),
            ("ftp://vault.example", true, false),
            ("vault.example:8200", false, false),
            ("", false, false),
        ] {
            assert_eq!(config(address, plain).base().is_ok(), fits, "{address}");
        }
    }

    #[test]
    fn limits_and_names_are_checked() {
        let good = config("https://v:1", false);
        assert!(Config { timeout_ms: 99, ..good.clone() }.base().is_err());
        assert!(Config { timeout_ms: 60_001, ..good.clone() }.base().is_err());
        assert!(Config { namespace: Some("a/B-1".into()), ..good.clone() }.base().is_ok());
        for bad in ["", "/a", "a/", "a\r\nb", "../a"] {
            assert!(Config { namespace: Some(bad.into()), ..good.clone() }.base().is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        let read = |text: &str| serde_json::from_str::<Config>(text);
        let auth = r#""auth":{"method":"approle","role_id":"r","secret_id_file":"f"}"#;
        assert!(read(&format!(r#"{{"address":"a","ca":"c",{auth}}}"#)).is_ok());
        assert!(read(r#"{"address":"a","ca":"c","tls_skip_verify":true}"#).is_err());
        assert!(
            read(&format!(r#"{{"address":"a","ca":"c",{}}}"#, auth.replace("\"f\"", "\"f\",\"x\":1")))
                .is_err()
        );
    }
}
