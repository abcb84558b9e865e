//! The providers' own log: JSON Lines, one strictly increasing number over all providers, on disk before
//! the answer leaves.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The log.
pub(crate) struct Journal {
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    next: u64,
}

impl Journal {
    /// Opens the log and goes on counting after what it already holds.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let next = match File::open(path) {
            Ok(file) => next_number(file),
            Err(_) => 1,
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|e| format!("cannot open {name}: {e}"))?;
        Ok(Self { inner: Mutex::new(Inner { file, next }) })
    }

    /// Appends an HTTP request.
    pub(crate) fn http(
        &self,
        provider: &str,
        method: &str,
        target: &str,
        headers: Map<String, Value>,
        body: &[u8],
    ) -> std::io::Result<u64> {
        self.append(json!({
            "provider": provider, "method": method, "target": target,
            "headers": headers, "body_b64": STANDARD.encode(body),
        }))
    }

    /// Appends a mail.
    pub(crate) fn mail(
        &self,
        provider: &str,
        from: &str,
        to: &[String],
        data: &[u8],
    ) -> std::io::Result<u64> {
        self.append(json!({"provider": provider, "from": from, "to": to, "data_b64": STANDARD.encode(data)}))
    }

    /// How many requests were appended so far.
    pub(crate) fn count(&self) -> u64 {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).next.saturating_sub(1)
    }

    fn append(&self, entry: Value) -> std::io::Result<u64> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let number = inner.next;
        let mut line = Map::new();
        line.insert("seq".to_owned(), number.into());
        if let Value::Object(fields) = entry {
            line.extend(fields);
        }
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        inner.file.write_all(text.as_bytes())?;
        inner.file.sync_data()?;
        inner.next = number.saturating_add(1);
        Ok(number)
    }
}

fn next_number(file: File) -> u64 {
    let last = BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .filter_map(|line| line.get("seq").and_then(Value::as_u64))
        .max();
    last.map_or(1, |n| n.saturating_add(1))
}
