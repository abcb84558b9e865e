//! Following the bundle's file without a restart. A bad or older file leaves the one in force.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::trust::v1::TrustBundle;

use crate::dsse::from_json;
use crate::error::StatementError;
use crate::key::PublicRoot;
use crate::trust::{Trust, open};

const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn read(path: &Path) -> Result<Envelope, StatementError> {
    from_json(&fs::read_to_string(path).map_err(|e| StatementError::new(format!("cannot be read: {e}")))?)
}

/// What tells a replaced file from the one before, also within one tick of the clock.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

pub(crate) fn stamp(path: &Path) -> Stamp {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.ino(), file.len()))
}

/// Why `new` may not follow `old` without a restart.
fn refusal(old: &TrustBundle, new: &TrustBundle) -> Option<&'static str> {
    if new.realm != old.realm {
        Some("it is of another realm")
    } else if new.development && !old.development {
        Some("it holds development keys and the one in force does not")
    } else if new.version < old.version {
        Some("it is older")
    } else if new.version == old.version && new != old {
        Some("it differs from the one in force and has the same version")
    } else {
        None
    }
}

/// Polls from a thread of its own, which ends when nobody else holds the trust.
pub(crate) fn follow(path: &Path, seen: Stamp, root: PublicRoot, trust: Trust) {
    let path: PathBuf = path.to_path_buf();
    let weak = Arc::downgrade(&trust.current);
    drop(trust);
    let mut last = seen;
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(INTERVAL);
            let Some(current) = weak.upgrade() else { return };
            let now = stamp(&path);
            if now == last {
                continue;
            }
            last = now;
            match read(&path).and_then(|envelope| open(&envelope, &root)) {
                Ok(bundle) => match refusal(&current.load(), &bundle) {
                    Some(why) => {
                        tracing::error!(
                            version = bundle.version,
                            why,
                            "trust bundle refused; the last one stays"
                        );
                    }
                    None => {
                        tracing::info!(version = bundle.version, "trust bundle reloaded");
                        current.store(Arc::new(bundle));
                    }
                },
                Err(error) => tracing::error!(%error, "trust bundle refused; the last one stays"),
            }
        }
    });
}
