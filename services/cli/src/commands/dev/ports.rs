//! Ports of a development plane: as asked, as last time, or free ones.

use std::net::TcpListener;

use serde::{Deserialize, Serialize};

use super::Layout;
use crate::failure::Failure;

/// All ports.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ports {
    pub(crate) governance: u16,
    pub(crate) approval: u16,
    pub(crate) credential_vault: u16,
    pub(crate) connector: u16,
    pub(crate) provider_http: u16,
    pub(crate) provider_smtp: u16,
    pub(crate) provider_admin: u16,
}

impl Ports {
    fn from(ports: [u16; 7]) -> Self {
        let [governance, approval, credential_vault, connector, provider_http, provider_smtp, provider_admin] =
            ports;
        Self {
            governance,
            approval,
            credential_vault,
            connector,
            provider_http,
            provider_smtp,
            provider_admin,
        }
    }

    fn all(&self) -> [u16; 7] {
        [
            self.governance,
            self.approval,
            self.credential_vault,
            self.connector,
            self.provider_http,
            self.provider_smtp,
            self.provider_admin,
        ]
    }
}

/// The ports to use. Those of last time are kept where they are free, because the demo's tools name them.
pub(crate) fn choose(layout: &Layout, base: Option<u16>) -> Result<Ports, Failure> {
    let file = layout.root().join("ports.json");
    let ports = match base {
        Some(base) => asked(base)?,
        None => {
            let kept = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Ports>(&text).ok());
            match kept {
                Some(kept) if kept.all().into_iter().all(is_free) => kept,
                _ => free()?,
            }
        }
    };
    let text = serde_json::to_vec(&ports).map_err(|e| Failure::failed("INTERNAL", e.to_string()))?;
    std::fs::write(&file, text)
        .map_err(|e| Failure::failed("STORAGE_FAILED", format!("cannot write `{}`: {e}", file.display())))?;
    Ok(ports)
}

fn asked(base: u16) -> Result<Ports, Failure> {
    let mut ports = [0_u16; 7];
    for (port, offset) in ports.iter_mut().zip(0_u16..) {
        *port = base
            .checked_add(offset)
            .ok_or_else(|| Failure::usage("--port-base leaves no room for seven ports"))?;
        if !is_free(*port) {
            return Err(Failure::failed(
                "UNAVAILABLE",
                format!("port {port} is taken: say another --port-base"),
            ));
        }
    }
    Ok(Ports::from(ports))
}

fn free() -> Result<Ports, Failure> {
    let failed = |e: std::io::Error| Failure::failed("UNAVAILABLE", format!("no free port: {e}"));
    let mut ports = [0_u16; 7];
    // Held together, so that no port is given twice.
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        held.push(listener);
    }
    Ok(Ports::from(ports))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
