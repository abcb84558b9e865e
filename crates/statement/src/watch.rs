//! Following the bundle's file without a restart. A bad or older file leaves the one in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use exequatur_proto::statement::v1::Envelope;

use crate::dsse::from_json;
use crate::error::StatementError;
use crate::key::PublicRoot;
use crate::trust::{Trust, open};

const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn read(path: &Path) -> Result<Envelope, StatementError> {
    from_json(&fs::read_to_string(path).map_err(|e| StatementError::new(format!("cannot be read: {e}")))?)
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

/// Polls from a thread of its own, which ends when nobody else holds the trust.
pub(crate) fn follow(path: &Path, root: PublicRoot, trust: Trust) {
    let path: PathBuf = path.to_path_buf();
    let weak = Arc::downgrade(&trust.0);
    drop(trust);
    let mut last = changed(&path);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(INTERVAL);
            let Some(current) = weak.upgrade() else { return };
            let now = changed(&path);
            if now == last {
                continue;
            }
            last = now;
            match read(&path).and_then(|envelope| open(&envelope, &root)) {
                Ok(bundle) if bundle.version < current.load().version => {
                    tracing::error!(
                        version = bundle.version,
                        "older trust bundle refused; the last one stays"
                    );
                }
                Ok(bundle) => {
                    tracing::info!(version = bundle.version, "trust bundle reloaded");
                    current.store(Arc::new(bundle));
                }
                Err(error) => tracing::error!(%error, "trust bundle refused; the last one stays"),
            }
        }
    });
}
