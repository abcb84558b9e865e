//! The outside providers as the judge: their own log, and faults that a test orders.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value as Json;

/// The providers of a plane.
#[derive(Debug, Clone)]
pub struct Providers {
    log: PathBuf,
    admin: Option<String>,
}

impl Providers {
    pub(crate) const fn new(log: PathBuf, admin: Option<String>) -> Self {
        Self { log, admin }
    }

    /// Every request that a provider saw.
    #[must_use]
    pub fn seen(&self) -> Vec<Json> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Requests that a provider of that name saw.
    #[must_use]
    pub fn of(&self, provider: &str) -> Vec<Json> {
        self.seen().into_iter().filter(|r| r["provider"] == provider).collect()
    }

    /// Orders a fault for the next requests.
    pub fn fault(&self, order: &Json) {
        self.call("POST", &order.to_string());
    }

    /// Forgets all faults.
    pub fn heal(&self) {
        self.call("DELETE", "");
    }

    fn call(&self, method: &str, body: &str) {
        let admin = self.admin.as_ref().expect("the ready file names `provider_admin`");
        let mut stream = TcpStream::connect(admin).unwrap();
        write!(
            stream,
            "{method} /faults HTTP/1.1\r\nhost: providers\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
