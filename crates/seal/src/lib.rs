//! Sealing a secret to the connector and opening it there: RFC 9180 base mode, DHKEM(X25519,
//! HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. Knows no catalog; the context binds a value to its place.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_proto::credential::v1::{SealContext, SealedValue};
use exequatur_proto::trust::v1::PublicKey;
pub use exequatur_secret::Secret;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{
    Deserializable as _, Kem as _, OpModeR, OpModeS, Serializable as _, single_shot_open, single_shot_seal,
};
use prost::Message as _;
use zeroize::Zeroizing;

const INFO: &[u8] = b"exequatur.seal.v1\0";
const BEGIN: &str = "-----BEGIN EXEQUATUR SEALING KEY-----";
const END: &str = "-----END EXEQUATUR SEALING KEY-----";

/// Why sealing or opening failed. Never holds key or secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealError(String);

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SealError {}

impl SealError {
    /// Why, in our own words.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self(what.to_owned())
    }
}

fn error(what: &str) -> SealError {
    SealError::new(what)
}

/// Seals a value to a recipient key of the trust bundle, bound to its context.
///
/// # Errors
/// When the recipient's key is malformed.
pub fn seal(recipient: &PublicKey, context: &SealContext, value: &[u8]) -> Result<SealedValue, SealError> {
    let public = <X25519HkdfSha256 as hpke::Kem>::PublicKey::from_bytes(&recipient.key)
        .map_err(|_| error("the recipient's sealing key is malformed"))?;
    let (encapsulated, ciphertext) = single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &public,
        INFO,
        value,
        &context.encode_to_vec(),
    )
    .map_err(|_| error("the value cannot be sealed"))?;
    Ok(SealedValue {
        kid: recipient.kid.clone(),
        encapsulated_key: encapsulated.to_bytes().to_vec(),
        ciphertext,
    })
}

/// The connector's private sealing key. Its debug form shows the key id only.
pub struct OpeningKey {
    kid: String,
    private: <X25519HkdfSha256 as hpke::Kem>::PrivateKey,
    public: Vec<u8>,
}

impl fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpeningKey({})", self.kid)
    }
}

impl OpeningKey {
    /// A fresh key.
    #[must_use]
    pub fn generate(kid: &str) -> Self {
        let (private, public) = X25519HkdfSha256::gen_keypair();
        Self { kid: kid.to_owned(), private, public: public.to_bytes().to_vec() }
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// When the file is missing or malformed.
    pub fn load(path: &Path) -> Result<Self, SealError> {
        let text = Zeroizing::new(
            fs::read_to_string(path).map_err(|e| SealError(format!("`{}`: {e}", path.display())))?,
        );
        let malformed = || SealError(format!("`{}` is no sealing key file", path.display()));
        let lines: Vec<_> = text.lines().collect();
        let [BEGIN, kid, raw, END] = lines.as_slice() else { return Err(malformed()) };
        let kid = kid.strip_prefix("kid: ").ok_or_else(malformed)?;
        let raw = Zeroizing::new(STANDARD.decode(raw).map_err(|_| malformed())?);
        let private =
            <X25519HkdfSha256 as hpke::Kem>::PrivateKey::from_bytes(&raw).map_err(|_| malformed())?;
        let public = X25519HkdfSha256::sk_to_pk(&private).to_bytes().to_vec();
        Ok(Self { kid: kid.to_owned(), private, public })
    }

    /// Writes a new key file that only its owner may read.
    ///
    /// # Errors
    /// When the file is there or cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), SealError> {
        let raw = Zeroizing::new(self.private.to_bytes().to_vec());
        let raw = Zeroizing::new(STANDARD.encode(&*raw));
        let text = Zeroizing::new(format!("{BEGIN}\nkid: {}\n{}\n{END}\n", self.kid, &*raw));
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .map_err(|e| SealError(format!("`{}` cannot be written: {e}", path.display())))
    }

    /// Its id in the trust bundle.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key, 32 bytes.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Opens a value in the context that it was sealed in.
    ///
    /// # Errors
    /// When any bit of value, context or key is another.
    pub fn open(&self, context: &SealContext, value: &SealedValue) -> Result<Secret, SealError> {
        if value.kid != self.kid {
            return Err(error(
                "the value is sealed to another key; seal it again with `exequatur credential rotate`",
            ));
        }
        let encapsulated = <X25519HkdfSha256 as hpke::Kem>::EncappedKey::from_bytes(&value.encapsulated_key)
            .map_err(|_| error("the sealed value is malformed"))?;
        single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.private,
            &encapsulated,
            INFO,
            &value.ciphertext,
            &context.encode_to_vec(),
        )
        .map(Secret::new)
        .map_err(|_| error("the sealed value does not open in its context"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may stop at once")]

    use super::*;

    fn context() -> SealContext {
        SealContext { realm: "r".into(), tenant: "t".into(), credential: "c".into(), version: 1 }
    }

    fn recipient(key: &OpeningKey) -> PublicKey {
        PublicKey { kid: key.kid().into(), key: key.public().to_vec(), ..PublicKey::default() }
    }

    #[test]
    fn a_value_opens_in_its_context_only_and_a_key_survives_its_file() {
        let key = OpeningKey::generate("seal-1");
        let sealed = seal(&recipient(&key), &context(), b"k9$Zq/7+pLw==").unwrap();
        let folder = tempfile::tempdir().unwrap();
        key.save(&folder.path().join("seal.key")).unwrap();
        let key = OpeningKey::load(&folder.path().join("seal.key")).unwrap();
        assert_eq!(key.open(&context(), &sealed).unwrap().expose(), b"k9$Zq/7+pLw==");
        for other in [
            SealContext { realm: "x".into(), ..context() },
            SealContext { tenant: "x".into(), ..context() },
            SealContext { credential: "x".into(), ..context() },
            SealContext { version: 2, ..context() },
        ] {
            assert!(key.open(&other, &sealed).is_err());
        }
        assert!(OpeningKey::generate("seal-1").open(&context(), &sealed).is_err());
    }

    #[test]
    fn no_bit_of_a_sealed_value_may_change() {
        let key = OpeningKey::generate("seal-1");
        let sealed = seal(&recipient(&key), &context(), b"secret").unwrap();
        for at in 0..sealed.ciphertext.len() {
            let mut other = sealed.clone();
            *other.ciphertext.get_mut(at).unwrap() ^= 1;
            assert!(key.open(&context(), &other).is_err());
        }
        for at in 0..sealed.encapsulated_key.len() {
            let mut other = sealed.clone();
            *other.encapsulated_key.get_mut(at).unwrap() ^= 1;
            assert!(key.open(&context(), &other).is_err(), "encapsulated byte {at}");
        }
        let cut = |change: fn(&mut SealedValue)| {
            let mut other = sealed.clone();
            change(&mut other);
            key.open(&context(), &other).is_err()
        };
        assert!(cut(|s| s.ciphertext.clear()));
        assert!(cut(|s| s.ciphertext.push(0)));
        assert!(cut(|s| s.ciphertext.truncate(15)));
        assert!(cut(|s| s.encapsulated_key.clear()));
        assert!(cut(|s| s.encapsulated_key.fill(0)), "a point of low order");
        assert!(cut(|s| s.kid = "seal-2".into()));
        assert!(!cut(|_| ()));
    }

    #[test]
    fn the_same_value_never_seals_to_the_same_bytes() {
        let key = OpeningKey::generate("seal-1");
        let seal = || seal(&recipient(&key), &context(), b"secret").unwrap();
        let (one, two) = (seal(), seal());
        assert_ne!(one.ciphertext, two.ciphertext);
        assert_ne!(one.encapsulated_key, two.encapsulated_key);
        assert!(!one.ciphertext.windows(6).any(|w| w == b"secret"));
    }

    #[test]
    fn a_malformed_recipient_or_key_file_is_refused() {
        let mut short = recipient(&OpeningKey::generate("seal-1"));
        short.key.truncate(31);
        assert!(super::seal(&short, &context(), b"x").is_err());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let key = OpeningKey::generate("seal-1");
        key.save(&path).unwrap();
        assert!(key.save(&path).is_err(), "a key is never overwritten");
        let text = fs::read_to_string(&path).unwrap();
        for bad in [String::new(), text.replace("kid: ", "id: "), text.replacen("SEALING", "X", 1)] {
            fs::write(&path, bad).unwrap();
            assert!(OpeningKey::load(&path).is_err());
        }
    }

    #[test]
    fn secrets_and_keys_do_not_print() {
        let text = format!("{:?} {:?}", Secret::new(b"hunter2".to_vec()), OpeningKey::generate("kid"));
        assert_eq!(text, "Secret(..) OpeningKey(kid)");
    }
}
