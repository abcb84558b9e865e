//! DSSE envelopes: signing exact bytes, and checking everything about a signature in one place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::Digest;
use exequatur_proto::statement::v1::{Envelope, Signature};
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::error::StatementError;
use crate::key::SigningKey;
use crate::kind::Statement;
use crate::trust::Trust;

/// Milliseconds that another zone's clock may run ahead.
const LEEWAY_MS: i64 = 5_000;

/// What a reader demands of a statement.
#[derive(Debug, Clone, Copy)]
pub struct Expect<'a> {
    /// The only SPIFFE ID that may have signed; `None`: any holder of the right purpose.
    pub issuer: Option<&'a str>,
    /// For whom it must be; `None`: not looked at.
    pub audience: Option<&'a str>,
    /// Of which tenant it must be; `None`: not looked at.
    pub tenant: Option<&'a str>,
    /// Now, milliseconds since the epoch.
    pub now: i64,
    /// Whether `expires_at` must lie ahead.
    pub check_expiry: bool,
}

/// A statement whose signature held.
#[derive(Debug, Clone)]
pub struct Verified<S> {
    /// What it says.
    pub statement: S,
    /// SHA-256 of the envelope's bytes.
    pub digest: Digest,
    /// SPIFFE ID of who signed.
    pub issuer: String,
}

/// Signs a message as it encodes now.
///
/// # Errors
/// When the key is for another purpose or another holder than the message names.
pub fn sign<S: Statement>(key: &SigningKey, statement: &S) -> Result<Envelope, StatementError> {
    if key.purpose() != S::PURPOSE {
        return Err(StatementError::new("the key is for another purpose"));
    }
    if statement.issuer().is_some_and(|issuer| issuer != key.holder()) {
        return Err(StatementError::new("the statement names another issuer than the key's holder"));
    }
    Ok(sign_bytes(key, S::TYPE, statement.encode_to_vec()))
}

/// Signs bytes that were made once, such as a definition.
#[must_use]
pub fn sign_bytes(key: &SigningKey, payload_type: &str, payload: Vec<u8>) -> Envelope {
    let sig = key.sign(&encoding(payload_type, &payload));
    Envelope {
        payload_type: payload_type.to_owned(),
        payload,
        signatures: vec![Signature { keyid: key.kid().to_owned(), sig }],
    }
}

/// SHA-256 of an envelope's bytes.
#[must_use]
pub fn envelope_digest(envelope: &Envelope) -> Digest {
    Digest::sha256(&envelope.encode_to_vec())
}

/// DSSE's pre-authentication encoding.
pub(crate) fn encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {} {} ", payload_type.len(), payload_type, payload.len());
    [head.as_bytes(), payload].concat()
}

impl Trust {
    /// Checks type, key, purpose, holder, signature, audience, tenant and time, in that order.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn verify<S: Statement>(
        &self,
        envelope: &Envelope,
        expect: Expect<'_>,
    ) -> Result<Verified<S>, StatementError> {
        let fail = |what: &str| Err(StatementError::new(what));
        if envelope.payload_type != S::TYPE {
            return fail("the statement is of another type");
        }
        let [signature] = envelope.signatures.as_slice() else {
            return fail("a statement has exactly one signature");
        };
        let Ok(statement) = S::decode(envelope.payload.as_slice()) else {
            return fail("the payload cannot be read");
        };
        if statement.encode_to_vec() != envelope.payload {
            return fail("the payload is not in its one encoding");
        }
        let Some(key) = self.by_kid(&signature.keyid) else {
            return fail("the key is not in the trust bundle");
        };
        if key.purpose() != S::PURPOSE {
            return fail("the key is for another purpose");
        }
        if statement.issuer().is_some_and(|issuer| issuer != key.holder) {
            return fail("the key belongs to another holder than the issuer");
        }
        if expect.issuer.is_some_and(|issuer| issuer != key.holder) {
            return fail("the statement is from another issuer");
        }
        if !crate::key::verify(&key.key, &encoding(&envelope.payload_type, &envelope.payload), &signature.sig)
        {
            return fail("the signature does not hold");
        }
        // What is demanded and not there is another, not "not looked at".
        let audience = statement.header().map(|h| h.audience.as_str());
        if expect.audience.is_some() && expect.audience != audience {
            return fail("the statement is for another audience");
        }
        if expect.tenant.is_some() && expect.tenant != statement.tenant() {
            return fail("the statement is of another tenant");
        }
        let millis = |at: &prost_types::Timestamp| {
            at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos) / 1_000_000)
        };
        let signed_at = match statement.header() {
            None if S::HEADED => return fail("the statement has no header"),
            None => expect.now,
            Some(header) => {
                let (Some(issued), Some(expires)) = (&header.issued_at, &header.expires_at) else {
                    return fail("the statement has no times");
                };
                if millis(issued) > expect.now.saturating_add(LEEWAY_MS) {
                    return fail("the statement is from the future");
                }
                if expect.check_expiry && millis(expires) <= expect.now {
                    return fail("the statement has expired");
                }
                millis(issued)
            }
        };
        let from = |t: &Option<prost_types::Timestamp>, at: i64| t.as_ref().is_some_and(|t| at >= millis(t));
        let judged = if self.historical { signed_at } else { expect.now };
        if from(&key.revoked_at, judged) {
            return fail("the key is revoked");
        }
        let early = key.not_before.as_ref().is_some_and(|t| signed_at.saturating_add(LEEWAY_MS) < millis(t));
        if early || from(&key.not_after, signed_at) {
            return fail("the key was not valid when the statement was signed");
        }
        Ok(Verified { statement, digest: envelope_digest(envelope), issuer: key.holder })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Json {
    payload_type: String,
    payload: String,
    signatures: Vec<JsonSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSignature {
    keyid: String,
    sig: String,
}

/// DSSE's JSON form.
#[must_use]
pub fn to_json(envelope: &Envelope) -> String {
    let json = Json {
        payload_type: envelope.payload_type.clone(),
        payload: STANDARD.encode(&envelope.payload),
        signatures: envelope
            .signatures
            .iter()
            .map(|s| JsonSignature { keyid: s.keyid.clone(), sig: STANDARD.encode(&s.sig) })
            .collect(),
    };
    serde_json::to_string(&json).unwrap_or_default()
}

/// Reads DSSE's JSON form.
///
/// # Errors
/// When it is malformed.
pub fn from_json(text: &str) -> Result<Envelope, StatementError> {
    let malformed = || StatementError::new("is no DSSE envelope");
    let json: Json = serde_json::from_str(text).map_err(|_| malformed())?;
    let bytes = |text: &str| STANDARD.decode(text).map_err(|_| malformed());
    Ok(Envelope {
        payload: bytes(&json.payload)?,
        payload_type: json.payload_type,
        signatures: json
            .signatures
            .iter()
            .map(|s| Ok(Signature { keyid: s.keyid.clone(), sig: bytes(&s.sig)? }))
            .collect::<Result<_, StatementError>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::encoding;

    #[test]
    fn the_encoding_is_the_one_of_the_dsse_specification() {
        let encoded = encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
        // Lengths count bytes, not characters.
        assert_eq!(encoding("ü", "é".as_bytes()), "DSSEv1 2 ü 2 é".as_bytes());
    }
}
