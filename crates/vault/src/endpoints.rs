//! Endpoints that vaultrs 0.8 lacks or gets wrong. Must hold no logic.

use rustify_derive::Endpoint;
use serde::Serialize;

/// vaultrs's answer type demands a field that OpenBao does not send; the status says enough.
#[derive(Endpoint)]
#[endpoint(path = "sys/health")]
pub(crate) struct Health {}

/// vaultrs sends `cert_name`, which the server ignores: any matching role would be taken.
#[derive(Serialize, Endpoint)]
#[endpoint(path = "auth/{self.mount}/login", method = "POST")]
pub(crate) struct CertLogin {
    #[endpoint(skip)]
    #[serde(skip)]
    pub(crate) mount: String,
    pub(crate) name: String,
}

/// A secret of any engine; vaultrs drops lease ids and has one type per engine.
#[derive(Endpoint)]
#[endpoint(path = "{self.path}")]
pub(crate) struct Read {
    #[endpoint(skip)]
    pub(crate) path: String,
    #[endpoint(query)]
    pub(crate) version: Option<u64>,
}

/// The wrapping token goes as the call's own token; a body would need another one.
#[derive(Endpoint)]
#[endpoint(path = "sys/wrapping/unwrap", method = "POST")]
pub(crate) struct Unwrap {}

/// A token of a token role; vaultrs's request sends every unset parameter's default along.
#[derive(Serialize, Endpoint)]
#[endpoint(path = "auth/token/create/{self.role}", method = "POST")]
pub(crate) struct Mint {
    #[endpoint(skip)]
    #[serde(skip)]
    pub(crate) role: String,
    pub(crate) policies: Vec<String>,
    pub(crate) ttl: String,
}

#[derive(Serialize, Endpoint)]
#[endpoint(path = "sys/leases/revoke", method = "POST")]
pub(crate) struct RevokeLease {
    pub(crate) lease_id: String,
    pub(crate) sync: bool,
}

#[derive(Serialize, Endpoint)]
#[endpoint(path = "sys/leases/lookup", method = "POST")]
pub(crate) struct LookupLease {
    pub(crate) lease_id: String,
}
