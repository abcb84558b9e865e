//! The trust bundle's file: read, changed, signed by the root, written whole.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use exequatur_proto::trust::v1::{Principal, PublicKey, Purpose, Role, TrustBundle};
use exequatur_statement::{PublicRoot, SigningKey, Trust, seal_bundle};
use prost_types::Timestamp;

use crate::{PkiError, failed};

const NAME: &str = "bundle.json";
const LIFE_S: i64 = 365 * 24 * 3600;
/// Keys are valid a little before they are made: clocks differ.
const EARLY_S: i64 = 3600;

fn seconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_secs()).ok())
        .unwrap_or(0)
}

pub(crate) fn now() -> Timestamp {
    Timestamp { seconds: seconds(), nanos: 0 }
}

/// Makes key ids unique over rotations.
pub(crate) fn suffix() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect()
}

pub(crate) fn public(holder: &str, purpose: Purpose, kid: &str, key: Vec<u8>) -> PublicKey {
    PublicKey {
        holder: holder.to_owned(),
        purpose: purpose.into(),
        kid: kid.to_owned(),
        key,
        not_before: Some(Timestamp { seconds: seconds() - EARLY_S, nanos: 0 }),
        not_after: Some(Timestamp { seconds: seconds() + LIFE_S, nanos: 0 }),
        revoked_at: None,
    }
}

pub(crate) fn put_principal(bundle: &mut TrustBundle, id: &str, role: Role, tenants: &[String]) {
    bundle.principals.retain(|p| p.id != id);
    bundle.principals.push(Principal { id: id.to_owned(), role: role.into(), tenants: tenants.to_vec() });
}

pub(crate) fn read(folder: &Path, root: &SigningKey) -> Result<TrustBundle, PkiError> {
    let path = folder.join(NAME);
    let text = fs::read_to_string(&path).map_err(|e| failed(format!("`{}`: {e}", path.display())))?;
    let public = PublicRoot::new(&root.public()).map_err(failed)?;
    let trust = Trust::from_json(&text, &public).map_err(failed)?;
    Ok(TrustBundle::clone(&trust.bundle()))
}

pub(crate) fn write(folder: &Path, root: &SigningKey, bundle: &TrustBundle) -> Result<(), PkiError> {
    crate::write(&folder.join(NAME), seal_bundle(root, bundle).map_err(failed)?.as_bytes())
}
