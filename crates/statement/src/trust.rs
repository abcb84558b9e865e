//! The trust bundle in force: which public key speaks for which holder and purpose.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::trust::v1::{Principal, PublicKey, Purpose, TrustBundle};
use prost::Message as _;

use crate::dsse::{encoding, from_json, sign_bytes, to_json};
use crate::error::StatementError;
use crate::key::{PublicRoot, SigningKey, verify};

/// Payload type of a bundle; only the root signs it.
pub(crate) const TYPE: &str = "application/vnd.exequatur.trust-bundle.v1+protobuf";

/// Id of the root key, which stands in no bundle.
const ROOT: &str = "root";

/// The bundle in force; clones share it, and a reload is seen by all.
#[derive(Clone)]
pub struct Trust {
    pub(crate) current: Arc<ArcSwap<TrustBundle>>,
    /// Whether revocation is judged by the time of signing; see [`Trust::historical`].
    pub(crate) historical: bool,
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bundle = self.current.load();
        write!(f, "Trust({} version {})", bundle.realm, bundle.version)
    }
}

impl Trust {
    /// Reads the bundle's file and follows its changes while a runtime is there.
    ///
    /// # Errors
    /// When file, signature or content is not acceptable.
    pub fn load(bundle: &Path, root: &Path) -> Result<Self, StatementError> {
        let root = PublicRoot::load(root)
            .map_err(|e| StatementError::new(format!("root key `{}` {e}", root.display())))?;
        // Before reading: what changes meanwhile is seen as a change.
        let seen = crate::watch::stamp(bundle);
        let trust = Self::from_envelope(&crate::watch::read(bundle)?, &root)?;
        crate::watch::follow(bundle, seen, root, trust.clone());
        Ok(trust)
    }

    /// Of an envelope, without files.
    ///
    /// # Errors
    /// When signature or content is not acceptable.
    pub fn from_envelope(envelope: &Envelope, root: &PublicRoot) -> Result<Self, StatementError> {
        let bundle = open(envelope, root)?;
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(bundle)), historical: false })
    }

    /// The same for a reader of records. A door refuses whatever a revoked key signed, for a thief
    /// can write any time into a statement; a record's place in its log says when it was signed, so
    /// there only what is dated from the revocation on is refused.
    #[must_use]
    pub fn historical(self) -> Self {
        Self { historical: true, ..self }
    }

    /// Of DSSE JSON text, without files.
    ///
    /// # Errors
    /// As [`Trust::from_envelope`].
    pub fn from_json(text: &str, root: &PublicRoot) -> Result<Self, StatementError> {
        Self::from_envelope(&from_json(text)?, root)
    }

    /// The whole bundle.
    #[must_use]
    pub fn bundle(&self) -> Arc<TrustBundle> {
        self.current.load_full()
    }

    /// Trust domain.
    #[must_use]
    pub fn realm(&self) -> String {
        self.current.load().realm.clone()
    }

    /// Id of the connector's journal in force.
    #[must_use]
    pub fn journal(&self) -> String {
        self.current.load().journal.clone()
    }

    /// Whether production must refuse it.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.current.load().development
    }

    /// An operator or internal service.
    #[must_use]
    pub fn principal(&self, id: &str) -> Option<Principal> {
        self.current.load().principals.iter().find(|p| p.id == id).cloned()
    }

    /// Keys of a purpose that nobody revoked: for publishing, sealing and tokens.
    #[must_use]
    pub fn keys(&self, purpose: Purpose) -> Vec<PublicKey> {
        self.current
            .load()
            .keys
            .iter()
            .filter(|k| k.purpose() == purpose && k.revoked_at.is_none())
            .cloned()
            .collect()
    }

    /// The key of a holder for a purpose: the named one, or the newest. Never a revoked one.
    #[must_use]
    pub fn key(&self, holder: &str, purpose: Purpose, kid: Option<&str>) -> Option<PublicKey> {
        let seconds = |k: &PublicKey| k.not_before.as_ref().map_or(0, |t| t.seconds);
        self.keys(purpose)
            .into_iter()
            .filter(|k| k.holder == holder && kid.is_none_or(|kid| kid == k.kid))
            .max_by_key(seconds)
    }

    pub(crate) fn by_kid(&self, kid: &str) -> Option<PublicKey> {
        self.current.load().keys.iter().find(|k| k.kid == kid).cloned()
    }
}

/// Signs a bundle with the root's private key; for `exequatur pki`.
///
/// # Errors
/// When the content is not acceptable.
pub fn seal_bundle(root: &SigningKey, bundle: &TrustBundle) -> Result<String, StatementError> {
    check(bundle)?;
    Ok(to_json(&sign_bytes(root, TYPE, bundle.encode_to_vec())))
}

pub(crate) fn open(envelope: &Envelope, root: &PublicRoot) -> Result<TrustBundle, StatementError> {
    let [signature] = envelope.signatures.as_slice() else {
        return Err(StatementError::new("a trust bundle has exactly one signature"));
    };
    if signature.keyid != ROOT {
        return Err(StatementError::new("the trust bundle is not signed as the root key's"));
    }
    let signed = encoding(&envelope.payload_type, &envelope.payload);
    if envelope.payload_type != TYPE || !verify(root.raw(), &signed, &signature.sig) {
        return Err(StatementError::new("the trust bundle is not signed by the root key"));
    }
    let bundle = TrustBundle::decode(envelope.payload.as_slice())
        .map_err(|_| StatementError::new("the trust bundle cannot be read"))?;
    check(&bundle)?;
    Ok(bundle)
}

fn check(bundle: &TrustBundle) -> Result<(), StatementError> {
    let mut kids = HashSet::new();
    let mut keys = HashSet::new();
    for key in &bundle.keys {
        if key.key.len() != 32 || key.purpose() == Purpose::Unspecified || key.holder.is_empty() {
            return Err(StatementError::new(format!("key `{}` of the trust bundle is malformed", key.kid)));
        }
        if !kids.insert(&key.kid) {
            return Err(StatementError::new(format!(
                "key id `{}` stands twice in the trust bundle",
                key.kid
            )));
        }
        // One key, one holder, one purpose.
        if !keys.insert(&key.key) {
            return Err(StatementError::new(format!(
                "key `{}` of the trust bundle is another's too: one key has one holder and one purpose",
                key.kid
            )));
        }
        if !may_hold(&bundle.realm, &key.holder, key.purpose()) {
            return Err(StatementError::new(format!(
                "key `{}` of the trust bundle: `{}` may hold no {} key",
                key.kid,
                key.holder,
                key.purpose().as_str_name()
            )));
        }
    }
    if bundle.realm.is_empty() || bundle.journal.is_empty() {
        return Err(StatementError::new("the trust bundle names no realm or no journal"));
    }
    Ok(())
}

/// Which kind of holder a purpose belongs to. Even the root cannot give governance a decision key.
fn may_hold(realm: &str, holder: &str, purpose: Purpose) -> bool {
    let Some(path) = holder
        .strip_prefix("spiffe://")
        .and_then(|h| h.strip_prefix(realm))
        .and_then(|h| h.strip_prefix('/'))
    else {
        return false;
    };
    match purpose {
        Purpose::RunToken | Purpose::Warrant => path == "zone/governance",
        Purpose::Decision | Purpose::Reservation => path == "zone/approval",
        Purpose::Outcome | Purpose::Seal => path == "zone/connector",
        Purpose::Ledger => path.starts_with("zone/"),
        Purpose::Definition => path.starts_with("person/"),
        Purpose::Unspecified => false,
    }
}
