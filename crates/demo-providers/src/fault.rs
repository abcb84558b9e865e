//! Planned misbehaviour: what the next requests of a provider meet. Only the admin port writes here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use serde::Deserialize;

/// One order: the next `count` requests of `provider` behave so.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// sms, crm, files, mail or `*`.
    pub(crate) provider: String,
    /// How many requests; default 1.
    #[serde(default = "one")]
    pub(crate) count: u32,
    /// What happens.
    #[serde(flatten)]
    pub(crate) behaviour: Behaviour,
}

const fn one() -> u32 {
    1
}

/// What a request meets, beside being logged. Fields combine.
#[derive(Deserialize, Clone, Debug, Default)]
pub(crate) struct Behaviour {
    /// Milliseconds before anything of the answer.
    pub(crate) delay_ms: Option<u64>,
    /// Reads and logs, then never answers.
    #[serde(default)]
    pub(crate) hang: bool,
    /// Reads and logs, then closes without an answer.
    #[serde(default)]
    pub(crate) close: bool,
    /// This status in place of the real answer.
    pub(crate) status: Option<u16>,
    /// With 302, unless `status` says otherwise.
    pub(crate) redirect: Option<String>,
    /// This body in place of the real one.
    pub(crate) body: Option<String>,
    /// The credential that came in, appended to the body in these encodings, one a line.
    #[serde(default)]
    pub(crate) echo: Vec<Encoding>,
    /// More headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// The body in chunks of these sizes, then the rest.
    #[serde(default)]
    pub(crate) chunks: Vec<usize>,
    /// The body one byte a chunk.
    #[serde(default)]
    pub(crate) byte_by_byte: bool,
    /// Fills the body up to so many bytes.
    pub(crate) oversize: Option<usize>,
    /// SMTP: at which step; the step's real work is not done.
    pub(crate) at: Option<SmtpStep>,
    /// SMTP: this reply at `at`.
    pub(crate) reply: Option<String>,
}

/// A step of an SMTP conversation.
#[derive(Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SmtpStep {
    /// Before the greeting.
    Banner,
    /// EHLO.
    Ehlo,
    /// AUTH.
    Auth,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Rcpt,
    /// DATA, before the 354.
    Data,
    /// After the final dot.
    Dot,
}

/// How a credential is echoed.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// As it is.
    Plain,
    /// Base64 of the credential alone.
    Base64,
    /// Base64 with one byte before it.
    Base64Shift1,
    /// Base64 with two bytes before it.
    Base64Shift2,
    /// URL-safe base64, padded.
    Base64url,
    /// URL-safe base64, not padded.
    Base64urlNoPad,
    /// Lower-case hex.
    Hex,
    /// Upper-case hex.
    HexUpper,
    /// Every byte but unreserved ones percent-encoded.
    Percent,
    /// Every byte percent-encoded.
    PercentAll,
    /// As a JSON string, minimal escapes.
    Json,
    /// As a JSON string, every character as `\uXXXX`.
    JsonUnicode,
    /// The authorization header as it came.
    Header,
}

impl Encoding {
    /// The credential in this encoding.
    pub(crate) fn encode(self, secret: &str, header: &str) -> String {
        match self {
            Self::Plain => secret.to_owned(),
            Self::Base64 => STANDARD.encode(secret),
            Self::Base64Shift1 => STANDARD.encode(format!("x{secret}yz")),
            Self::Base64Shift2 => STANDARD.encode(format!("xy{secret}z")),
            Self::Base64url => URL_SAFE.encode(secret),
            Self::Base64urlNoPad => URL_SAFE_NO_PAD.encode(secret),
            Self::Hex => secret.bytes().map(|b| format!("{b:02x}")).collect(),
            Self::HexUpper => secret.bytes().map(|b| format!("{b:02X}")).collect(),
            Self::Percent => {
                percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string()
            }
            Self::PercentAll => secret.bytes().map(|b| format!("%{b:02X}")).collect(),
            Self::Json => serde_json::Value::from(secret).to_string(),
            Self::JsonUnicode => secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect(),
            Self::Header => header.to_owned(),
        }
    }
}

/// The orders that are open, oldest first.
#[derive(Default)]
pub(crate) struct Faults {
    orders: Mutex<VecDeque<Order>>,
}

impl Faults {
    /// Adds an order.
    pub(crate) fn add(&self, order: Order) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push_back(order);
    }

    /// Forgets all orders.
    pub(crate) fn clear(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Requests that open orders still wait for.
    pub(crate) fn open(&self) -> u64 {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|o| u64::from(o.count)).sum()
    }

    /// What the next request of this provider meets; uses the order up by one.
    pub(crate) fn take(&self, provider: &str) -> Option<Behaviour> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let place = orders.iter().position(|o| o.provider == provider || o.provider == "*")?;
        let order = orders.get_mut(place)?;
        let behaviour = order.behaviour.clone();
        order.count = order.count.saturating_sub(1);
        if order.count == 0 {
            orders.remove(place);
        }
        Some(behaviour)
    }
}
