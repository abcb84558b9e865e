//! The connector's own sealing keys: the files `seal*.key` of its key folder. Several while one is rotated.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use exequatur_proto::credential::v1::{SealContext, SealedValue};
use exequatur_seal::{OpeningKey, SealError, Secret};

/// All keys, read again when a value names one that is not known yet.
pub struct KeyRing {
    folder: PathBuf,
    keys: Mutex<Vec<OpeningKey>>,
}

impl KeyRing {
    /// Reads the folder.
    ///
    /// # Errors
    /// When there is no key, or one is malformed.
    pub fn load(folder: PathBuf) -> Result<Self, SealError> {
        let keys = read(&folder)?;
        Ok(Self { folder, keys: Mutex::new(keys) })
    }

    /// Opens a value in the context that it was sealed in.
    ///
    /// # Errors
    /// When its key is not here, or any bit of value, context or key is another.
    pub fn open(&self, context: &SealContext, value: &SealedValue) -> Result<Secret, SealError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.iter().any(|key| key.kid() == value.kid) {
            *keys = read(&self.folder)?;
        }
        match keys.iter().find(|key| key.kid() == value.kid) {
            Some(key) => key.open(context, value),
            None => Err(SealError::new(
                "the value is sealed to a key that is not here; seal it again with `exequatur credential rotate`",
            )),
        }
    }
}

fn read(folder: &std::path::Path) -> Result<Vec<OpeningKey>, SealError> {
    let failed = |e: std::io::Error| SealError::new(&format!("`{}`: {e}", folder.display()));
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("seal") && name.ends_with(".key") {
            keys.push(OpeningKey::load(&path)?);
        }
    }
    if keys.is_empty() {
        return Err(SealError::new(&format!("`{}` holds no sealing key", folder.display())));
    }
    Ok(keys)
}
