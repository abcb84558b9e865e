//! The export's lines, read strictly: a key that nobody writes, a key twice, and text that two readers
//! could take differently are faults.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::Digest;
use exequatur_proto::statement::v1::Envelope;
use exequatur_statement::from_json;
use serde::Deserialize;
use serde_json::Value;

use crate::report::CannotTell;

const FORMAT: &str = "exequatur-ledger-v1";

/// The first line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct First {
    format: String,
    pub(crate) realm: String,
    pub(crate) tenant: String,
    pub(crate) bundle: Value,
}

impl First {
    pub(crate) fn read(text: &str) -> Result<Self, CannotTell> {
        let none = || CannotTell("the file is no ledger export".to_owned());
        let first: Self = serde_json::from_str(text).map_err(|_| none())?;
        if !is_compact(text) {
            return Err(none());
        }
        if first.format == FORMAT { Ok(first) } else { Err(none()) }
    }
}

/// Whether the text is as short as its content allows. A space, a second member of the same name or
/// an escape that need not be makes it longer, in whatever order the members stand.
fn is_compact(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.to_string().len() == text.len())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    zone: String,
    entry: Option<Value>,
    body: Option<RawBody>,
    head: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBody {
    kind: String,
    digest: String,
    bytes: String,
}

/// What a line carries.
pub(crate) enum Item {
    Entry(Envelope),
    Body { kind: String, digest: Digest, bytes: Vec<u8> },
    Head(Envelope),
}

/// Any later line.
pub(crate) struct Line {
    pub(crate) zone: String,
    pub(crate) item: Item,
}

impl Line {
    pub(crate) fn read(text: &str) -> Option<Self> {
        if !is_compact(text) {
            return None;
        }
        let raw: Raw = serde_json::from_str(text).ok()?;
        let envelope = |value: &Value| from_json(&value.to_string()).ok();
        let item = match (&raw.entry, raw.body, &raw.head) {
            (Some(entry), None, None) => Item::Entry(envelope(entry)?),
            (None, Some(body), None) => Item::Body {
                kind: body.kind,
                digest: body.digest.parse().ok()?,
                bytes: STANDARD.decode(body.bytes).ok()?,
            },
            (None, None, Some(head)) => Item::Head(envelope(head)?),
            _ => return None,
        };
        Some(Self { zone: raw.zone, item })
    }
}
