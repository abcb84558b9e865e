//! Private keys of zones and operators, and the public root, as files.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_proto::trust::v1::Purpose;
use zeroize::Zeroizing;

use crate::error::StatementError;

const BEGIN: &str = "-----BEGIN EXEQUATUR PRIVATE KEY-----";
const END: &str = "-----END EXEQUATUR PRIVATE KEY-----";
const ROOT_BEGIN: &str = "-----BEGIN EXEQUATUR ROOT PUBLIC KEY-----";
const ROOT_END: &str = "-----END EXEQUATUR ROOT PUBLIC KEY-----";

/// An Ed25519 key of one holder for one purpose. Its debug form shows the key id only.
pub struct SigningKey {
    holder: String,
    purpose: Purpose,
    kid: String,
    seed: Zeroizing<Vec<u8>>,
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kid)
    }
}

impl SigningKey {
    /// A fresh key.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate(holder: &str, purpose: Purpose, kid: &str) -> Result<Self, StatementError> {
        let mut seed = Zeroizing::new(vec![0; 32]);
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| StatementError::new("no randomness"))?;
        Self::of_seed(holder, purpose, kid, seed)
    }

    fn of_seed(
        holder: &str,
        purpose: Purpose,
        kid: &str,
        seed: Zeroizing<Vec<u8>>,
    ) -> Result<Self, StatementError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| StatementError::new("a private key has 32 bytes"))?;
        Ok(Self { holder: holder.to_owned(), purpose, kid: kid.to_owned(), seed, pair })
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// When the file is missing or malformed.
    pub fn load(path: &Path) -> Result<Self, StatementError> {
        let text = Zeroizing::new(
            fs::read_to_string(path).map_err(|e| StatementError::new(format!("cannot be read: {e}")))?,
        );
        let malformed = || StatementError::new("is no exequatur private key file");
        let (mut holder, mut purpose, mut kid, mut seed) = (None, None, None, None);
        let mut lines = text.lines();
        if lines.next() != Some(BEGIN) {
            return Err(malformed());
        }
        for line in lines.take_while(|l| *l != END) {
            match line.split_once(": ") {
                Some(("holder", value)) => holder = Some(value),
                Some(("purpose", value)) => purpose = Purpose::from_str_name(value),
                Some(("kid", value)) => kid = Some(value),
                Some(_) => return Err(malformed()),
                None => seed = STANDARD.decode(line).ok().map(Zeroizing::new),
            }
        }
        match (holder, purpose, kid, seed) {
            (Some(holder), Some(purpose), Some(kid), Some(seed)) => Self::of_seed(holder, purpose, kid, seed),
            _ => Err(malformed()),
        }
    }

    /// Writes a new key file that only its owner may read.
    ///
    /// # Errors
    /// When the file is there or cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), StatementError> {
        let seed = Zeroizing::new(STANDARD.encode(&*self.seed));
        let text = Zeroizing::new(format!(
            "{BEGIN}\nholder: {}\npurpose: {}\nkid: {}\n{}\n{END}\n",
            self.holder,
            self.purpose.as_str_name(),
            self.kid,
            &*seed
        ));
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .map_err(|e| StatementError::new(format!("`{}` cannot be written: {e}", path.display())))
    }

    /// SPIFFE ID of the holder.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// What it may sign.
    #[must_use]
    pub const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Its id in the trust bundle.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key, 32 bytes.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        self.pair.public_key().as_ref().to_vec()
    }

    /// The private key as PKCS#8, for a JWT library.
    ///
    /// # Errors
    /// When the library cannot encode it.
    pub fn pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, StatementError> {
        self.pair
            .to_pkcs8v1()
            .map(|document| Zeroizing::new(document.as_ref().to_vec()))
            .map_err(|_| StatementError::new("the key cannot be encoded"))
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }
}

pub(crate) fn verify(public: &[u8], bytes: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, public).verify(bytes, signature).is_ok()
}

/// The operator's root public key; it speaks for trust bundles only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicRoot(Vec<u8>);

impl PublicRoot {
    /// Of 32 raw bytes.
    ///
    /// # Errors
    /// For any other length.
    pub fn new(raw: &[u8]) -> Result<Self, StatementError> {
        if raw.len() == 32 {
            Ok(Self(raw.to_vec()))
        } else {
            Err(StatementError::new("a root key has 32 bytes"))
        }
    }

    /// Reads its file.
    ///
    /// # Errors
    /// When the file is missing or malformed.
    pub fn load(path: &Path) -> Result<Self, StatementError> {
        let text =
            fs::read_to_string(path).map_err(|e| StatementError::new(format!("cannot be read: {e}")))?;
        let lines: Vec<_> = text.lines().collect();
        match lines.as_slice() {
            [ROOT_BEGIN, raw, ROOT_END] => {
                Self::new(&STANDARD.decode(raw).map_err(|_| StatementError::new("is no root key file"))?)
            }
            _ => Err(StatementError::new("is no root key file")),
        }
    }

    /// The text of its file.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{ROOT_BEGIN}\n{}\n{ROOT_END}\n", STANDARD.encode(&self.0))
    }

    /// SHA-256 of the raw key, hex: what people compare.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        exequatur_canonical::Digest::sha256(&self.0).to_string()
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.0
    }
}
