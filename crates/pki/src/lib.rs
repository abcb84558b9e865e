//! Certificates, keys and the signed trust bundle of a realm, as files. For development and tests;
//! never linked by a zone. The root's private key lies beside the rest: keep it elsewhere in earnest.
//!
//! ```text
//! root.key root.pub      the operator's root; signs bundles only
//! ca.key ca.crt          the CA of the realm
//! bundle.json            the trust bundle
//! zones/ZONE/            tls.crt tls.key keys/PURPOSE.key
//! OUT of an issued one   tls.crt tls.key, for operators also definition.key
//! ```

mod bundle;
mod certificates;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use exequatur_proto::trust::v1::{Purpose, Role, TrustBundle};
use exequatur_seal::OpeningKey;
use exequatur_statement::{PublicRoot, SigningKey};

use certificates::Ca;
pub use certificates::{LeafSpec, issue_leaf};

/// Which purposes each zone's keys have; the sealing key is of another kind.
const ZONES: &[(&str, &[Purpose])] = &[
    ("governance", &[Purpose::RunToken, Purpose::Warrant, Purpose::Ledger]),
    ("approval", &[Purpose::Decision, Purpose::Reservation, Purpose::Ledger]),
    ("credential-vault", &[Purpose::Ledger]),
    ("connector", &[Purpose::Outcome, Purpose::Ledger]),
];

/// Why something could not be made.
#[derive(Debug)]
pub struct PkiError(String);

impl fmt::Display for PkiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PkiError {}

pub(crate) fn failed(what: impl fmt::Display) -> PkiError {
    PkiError(what.to_string())
}

/// The PKI of a realm in a folder.
#[derive(Debug, Clone)]
pub struct Pki {
    folder: PathBuf,
}

/// What is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A person who operates: certificate, definition key, entry in the bundle.
    Operator,
    /// A person: certificate only; an operator enrols them at approval.
    Reviewer,
    /// A service that starts runs: certificate, entry in the bundle.
    Internal,
}

impl Pki {
    /// Makes a new PKI with the four zones.
    ///
    /// # Errors
    /// When the folder already holds one, or cannot be written.
    pub fn init(folder: &Path, realm: &str) -> Result<Self, PkiError> {
        check_realm(realm)?;
        let pki = Self { folder: folder.to_path_buf() };
        make(folder)?;
        let _alone = pki.lock()?;
        if folder.join("root.key").exists() {
            return Err(failed(format!("`{}` already holds a PKI", folder.display())));
        }
        let root = SigningKey::generate("root", Purpose::Unspecified, "root").map_err(failed)?;
        let ca = Ca::create(realm)?;
        ca.save(folder)?;
        let mut keys = Vec::new();
        for (zone, purposes) in ZONES {
            keys.extend(pki.zone(&ca, realm, zone, purposes)?);
        }
        let bundle = TrustBundle {
            realm: realm.to_owned(),
            version: 1,
            issued_at: Some(bundle::now()),
            development: true,
            keys,
            principals: Vec::new(),
            journal: uuid::Uuid::now_v7().to_string(),
        };
        bundle::write(folder, &root, &bundle)?;
        let public = PublicRoot::new(&root.public()).map_err(failed)?;
        write(&folder.join("root.pub"), public.to_text().as_bytes())?;
        // Last: its presence says that the PKI is whole.
        root.save(&folder.join("root.key")).map_err(failed)?;
        Ok(pki)
    }

    /// Opens the PKI of a folder.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(folder: &Path) -> Result<Self, PkiError> {
        if folder.join("root.key").is_file() {
            Ok(Self { folder: folder.to_path_buf() })
        } else {
            Err(failed(format!("`{}` holds no PKI: make one with `exequatur pki init`", folder.display())))
        }
    }

    fn zone(
        &self,
        ca: &Ca,
        realm: &str,
        zone: &str,
        purposes: &[Purpose],
    ) -> Result<Vec<exequatur_proto::trust::v1::PublicKey>, PkiError> {
        let id = format!("spiffe://{realm}/zone/{zone}");
        let out = self.folder.join("zones").join(zone);
        let keys = out.join("keys");
        make(&keys)?;
        ca.issue(&out, &LeafSpec::zone(&id))?;
        let mut public = Vec::new();
        for purpose in purposes {
            let name =
                purpose.as_str_name().trim_start_matches("PURPOSE_").to_ascii_lowercase().replace('_', "-");
            let key = SigningKey::generate(&id, *purpose, &format!("{zone}-{name}-{}", bundle::suffix()))
                .map_err(failed)?;
            key.save(&keys.join(format!("{name}.key"))).map_err(failed)?;
            public.push(bundle::public(&id, *purpose, key.kid(), key.public()));
        }
        if zone == "connector" {
            let key = OpeningKey::generate(&format!("connector-seal-{}", bundle::suffix()));
            key.save(&keys.join("seal.key")).map_err(failed)?;
            public.push(bundle::public(&id, Purpose::Seal, key.kid(), key.public().to_vec()));
        }
        Ok(public)
    }

    /// Issues a certificate into `out`, with what belongs to it.
    ///
    /// # Errors
    /// When a name is malformed, `out` already holds a certificate, or something cannot be written.
    pub fn issue(&self, kind: Kind, name: &str, tenants: &[String], out: &Path) -> Result<String, PkiError> {
        check_name(name)?;
        if kind != Kind::Reviewer {
            check_tenants(tenants)?;
        }
        let _alone = self.lock()?;
        let (root, mut bundle) = self.read()?;
        let class = if kind == Kind::Internal { "internal" } else { "person" };
        let id = format!("spiffe://{}/{class}/{name}", bundle.realm);
        if out.join("tls.crt").exists() {
            return Err(failed(format!("`{}` already holds a certificate", out.display())));
        }
        make(out)?;
        Ca::load(&self.folder)?.issue(out, &LeafSpec::client(&id))?;
        let role = match kind {
            Kind::Reviewer => return Ok(id),
            Kind::Operator => Role::Operator,
            Kind::Internal => Role::InternalService,
        };
        bundle::put_principal(&mut bundle, &id, role, tenants);
        if kind == Kind::Operator {
            let key = SigningKey::generate(
                &id,
                Purpose::Definition,
                &format!("{name}-definition-{}", bundle::suffix()),
            )
            .map_err(failed)?;
            key.save(&out.join("definition.key")).map_err(failed)?;
            bundle.keys.push(bundle::public(&id, Purpose::Definition, key.kid(), key.public()));
        }
        self.replace(&root, bundle)?;
        Ok(id)
    }

    /// A further sealing key for the connector, into its key folder and the bundle: what is sealed from now
    /// on is sealed to it. Gives its id.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn new_seal_key(&self) -> Result<String, PkiError> {
        let _alone = self.lock()?;
        let (root, mut bundle) = self.read()?;
        let (suffix, keys) = (bundle::suffix(), self.folder.join("zones/connector/keys"));
        let key = OpeningKey::generate(&format!("connector-seal-{suffix}"));
        // The private key first: nothing may be sealed to one that is nowhere.
        key.save(&keys.join(format!("seal-{suffix}.key"))).map_err(failed)?;
        let holder = format!("spiffe://{}/zone/connector", bundle.realm);
        bundle.keys.push(bundle::public(&holder, Purpose::Seal, key.kid(), key.public().to_vec()));
        self.replace(&root, bundle)?;
        Ok(key.kid().to_owned())
    }

    /// Revokes a key of the bundle from now on; a key that is revoked stays so. Zones see it
    /// within a second and refuse whatever that key signed.
    ///
    /// # Errors
    /// When the bundle names no such key, or cannot be written.
    pub fn revoke(&self, kid: &str) -> Result<(), PkiError> {
        let _alone = self.lock()?;
        let (root, mut bundle) = self.read()?;
        let Some(key) = bundle.keys.iter_mut().find(|k| k.kid == kid) else {
            return Err(failed(format!("the trust bundle has no key `{kid}`")));
        };
        if key.revoked_at.is_none() {
            key.revoked_at = Some(bundle::now());
        }
        self.replace(&root, bundle)
    }

    /// Gives the connector's journal a new id: for a journal that was lost or restored.
    ///
    /// # Errors
    /// When the bundle cannot be written.
    pub fn new_journal(&self) -> Result<String, PkiError> {
        let _alone = self.lock()?;
        let (root, mut bundle) = self.read()?;
        let journal = uuid::Uuid::now_v7().to_string();
        bundle.journal.clone_from(&journal);
        self.replace(&root, bundle)?;
        Ok(journal)
    }

    fn read(&self) -> Result<(SigningKey, TrustBundle), PkiError> {
        let root = SigningKey::load(&self.folder.join("root.key")).map_err(failed)?;
        let bundle = bundle::read(&self.folder, &root)?;
        Ok((root, bundle))
    }

    fn replace(&self, root: &SigningKey, mut bundle: TrustBundle) -> Result<(), PkiError> {
        bundle.version += 1;
        bundle.issued_at = Some(bundle::now());
        bundle::write(&self.folder, root, &bundle)
    }

    /// One change at a time, across processes: two that read the same bundle would lose one change.
    fn lock(&self) -> Result<fs::File, PkiError> {
        let path = self.folder.join(".lock");
        fs::File::create(&path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|e| failed(format!("`{}`: {e}", path.display())))
    }
}

/// One list element is one tenant; nothing is split. `*` stands alone.
fn check_tenants(tenants: &[String]) -> Result<(), PkiError> {
    match tenants {
        [] => Err(failed("name at least one tenant, or `*` for all")),
        [all] if all == "*" => Ok(()),
        list => list.iter().try_for_each(|tenant| check_name(tenant)),
    }
}

fn check_realm(realm: &str) -> Result<(), PkiError> {
    let fits = !realm.is_empty()
        && realm.len() <= 255
        && realm.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b));
    if fits { Ok(()) } else { Err(failed(format!("`{realm}`: a realm is [a-z0-9._-]{{1,255}}"))) }
}

fn check_name(name: &str) -> Result<(), PkiError> {
    let head = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let fits = name.len() <= 63
        && name.bytes().next().is_some_and(head)
        && name.bytes().all(|b| head(b) || b"._-".contains(&b));
    if fits { Ok(()) } else { Err(failed(format!("`{name}`: a name is [a-z0-9][a-z0-9._-]{{0,62}}"))) }
}

pub(crate) fn make(folder: &Path) -> Result<(), PkiError> {
    fs::create_dir_all(folder).map_err(|e| failed(format!("`{}`: {e}", folder.display())))
}

/// Whole or not at all: readers that watch the file never see a part.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), PkiError> {
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|e| failed(format!("`{}`: {e}", path.display())))
}
