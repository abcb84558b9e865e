//! The outside world's view: what the demo providers logged, and how they are told to misbehave.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Broken;

/// One HTTP request as the provider logged it.
#[derive(Deserialize, Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) target: String,
    #[serde(default)]
    pub(crate) headers: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    body_b64: String,
}

impl Entry {
    /// The body as it came.
    pub(crate) fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.body_b64).unwrap_or_default()
    }

    /// The secret in the authorization header: the token of Bearer, the password of Basic.
    pub(crate) fn secret(&self) -> Option<String> {
        let header = self.headers.get("authorization")?;
        if let Some(token) = header.strip_prefix("Bearer ") {
            return Some(token.to_owned());
        }
        let pair = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
        let pair = String::from_utf8(pair).ok()?;
        pair.split_once(':').map(|(_, password)| password.to_owned())
    }
}

/// Everything that the providers logged.
pub(crate) fn read(log: &Path) -> Result<Vec<Entry>, Broken> {
    let text = match std::fs::read_to_string(log) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(format!("cannot read the providers' log `{}`: {e}", log.display())),
    };
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|e| format!("the providers' log: {e}")))
        .collect()
}

/// Tells a provider how to treat its next request.
pub(crate) async fn order(admin: &str, order: &serde_json::Value) -> Result<(), Broken> {
    let answer = exchange(admin, "POST /faults", "", order.to_string().as_bytes()).await?;
    if answer.starts_with("HTTP/1.1 200") {
        Ok(())
    } else {
        Err(format!("the provider refused the order: {answer}"))
    }
}

/// One HTTP exchange by hand.
pub(crate) async fn exchange(
    address: &str,
    request: &str,
    headers: &str,
    body: &[u8],
) -> Result<String, Broken> {
    let failed = |e: std::io::Error| format!("cannot reach the provider at {address}: {e}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.map_err(failed)?;
    stream.write_all(body).await.map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
