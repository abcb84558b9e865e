//! SPIFFE IDs of this plane, read strictly: no part is ever split, trimmed or case-folded.

use std::fmt;
use std::str::FromStr;

/// The four zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Zone {
    /// Decides and orders.
    Governance,
    /// Keeps people's decisions.
    Approval,
    /// Keeps sealed credentials.
    CredentialVault,
    /// Executes.
    Connector,
}

impl Zone {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Governance, Self::Approval, Self::CredentialVault, Self::Connector];

    /// The zone's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Governance => "governance",
            Self::Approval => "approval",
            Self::CredentialVault => "credential-vault",
            Self::Connector => "connector",
        }
    }
}

/// What a SPIFFE ID names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    /// `/zone/Z`.
    Zone(Zone),
    /// `/internal/NAME`.
    Internal(String),
    /// `/person/NAME`.
    Person(String),
}

/// `spiffe://TRUST-DOMAIN/KIND/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpiffeId {
    trust_domain: String,
    principal: Principal,
}

/// Not a SPIFFE ID of this plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidSpiffeId;

impl fmt::Display for InvalidSpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is spiffe://TRUST-DOMAIN/zone/Z, /internal/NAME or /person/NAME with NAME [a-z0-9][a-z0-9._-]{0,62}")
    }
}

impl std::error::Error for InvalidSpiffeId {}

impl SpiffeId {
    /// Of its parts.
    ///
    /// # Errors
    /// When trust domain or name is malformed.
    pub fn new(trust_domain: &str, principal: Principal) -> Result<Self, InvalidSpiffeId> {
        let name = match &principal {
            Principal::Zone(_) => true,
            Principal::Internal(name) | Principal::Person(name) => is_name(name),
        };
        let domain = !trust_domain.is_empty()
            && trust_domain.len() <= 255
            && trust_domain
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b));
        if name && domain {
            Ok(Self { trust_domain: trust_domain.to_owned(), principal })
        } else {
            Err(InvalidSpiffeId)
        }
    }

    /// A zone of a realm.
    ///
    /// # Errors
    /// When the trust domain is malformed.
    pub fn zone(trust_domain: &str, zone: Zone) -> Result<Self, InvalidSpiffeId> {
        Self::new(trust_domain, Principal::Zone(zone))
    }

    /// Reads an id; the same as `FromStr`.
    ///
    /// # Errors
    /// When it is not exactly of that form.
    pub fn parse(text: &str) -> Result<Self, InvalidSpiffeId> {
        text.parse()
    }

    /// The trust domain.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        &self.trust_domain
    }

    /// What it names.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }
}

fn is_name(name: &str) -> bool {
    let head = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = name.bytes();
    name.len() <= 63 && bytes.next().is_some_and(head) && bytes.all(|b| head(b) || b"._-".contains(&b))
}

impl FromStr for SpiffeId {
    type Err = InvalidSpiffeId;

    fn from_str(text: &str) -> Result<Self, InvalidSpiffeId> {
        let rest = text.strip_prefix("spiffe://").ok_or(InvalidSpiffeId)?;
        let mut parts = rest.split('/');
        let (Some(domain), Some(kind), Some(name), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidSpiffeId);
        };
        let principal = match kind {
            "zone" => {
                Principal::Zone(Zone::ALL.into_iter().find(|z| z.as_str() == name).ok_or(InvalidSpiffeId)?)
            }
            "internal" => Principal::Internal(name.to_owned()),
            "person" => Principal::Person(name.to_owned()),
            _ => return Err(InvalidSpiffeId),
        };
        Self::new(domain, principal)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match &self.principal {
            Principal::Zone(zone) => ("zone", zone.as_str()),
            Principal::Internal(name) => ("internal", name.as_str()),
            Principal::Person(name) => ("person", name.as_str()),
        };
        write!(f, "spiffe://{}/{kind}/{name}", self.trust_domain)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may stop at once")]

    use super::{Principal, SpiffeId, Zone};

    #[test]
    fn an_id_comes_back_as_it_was() {
        for text in [
            "spiffe://dev.exequatur/zone/credential-vault",
            "spiffe://dev.exequatur/internal/rostering",
            "spiffe://a/person/0",
            "spiffe://a/person/a.b_c-d",
        ] {
            assert_eq!(text.parse::<SpiffeId>().unwrap().to_string(), text);
        }
        let longest = format!("spiffe://a/person/{}", "x".repeat(63));
        assert_eq!(longest.parse::<SpiffeId>().unwrap().to_string(), longest);
        let id = SpiffeId::parse("spiffe://a/zone/connector").unwrap();
        assert_eq!((id.trust_domain(), id.principal()), ("a", &Principal::Zone(Zone::Connector)));
    }

    #[test]
    fn nothing_is_split_trimmed_folded_or_decoded() {
        let long = format!("spiffe://a/person/{}", "x".repeat(64));
        for text in [
            "",
            "spiffe://",
            "spiffe://a",
            "spiffe://a/person",
            "spiffe://a/person/",
            "spiffe:///person/x",
            "SPIFFE://a/person/x",
            "spiffe:/a/person/x",
            "spiffe://A/person/x",
            "spiffe://a:443/person/x",
            "spiffe://u@a/person/x",
            "spiffe://a/Person/x",
            "spiffe://a/person/X",
            "spiffe://a/person/x/",
            "spiffe://a//person/x",
            "spiffe://a/person/x/y",
            "spiffe://a/person/deploy,root",
            "spiffe://a/person/deploy;root",
            "spiffe://a/person/deploy root",
            "spiffe://a/person/root ",
            " spiffe://a/person/root",
            "spiffe://a/person/root\n",
            "spiffe://a/person/ro\0ot",
            "spiffe://a/person/r1/../r2",
            "spiffe://a/person/..",
            "spiffe://a/person/.x",
            "spiffe://a/person/-x",
            "spiffe://a/person/%72oot",
            "spiffe://a/person/root?x",
            "spiffe://a/person/root#x",
            "spiffe://a/person/r\u{43e}ot",
            "spiffe://a/person/root\u{200b}",
            "spiffe://a/zone/gateway",
            "spiffe://a/agent/x",
            &long,
        ] {
            assert!(text.parse::<SpiffeId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_given_by_its_parts_is_read_as_strictly() {
        for name in ["", "deploy,root", "root ", "../x", "a/b", "t-green\nt-blue"] {
            assert!(SpiffeId::new("a", Principal::Person(name.into())).is_err(), "{name:?}");
            assert!(SpiffeId::new("a", Principal::Internal(name.into())).is_err(), "{name:?}");
        }
        assert!(SpiffeId::zone("", Zone::Governance).is_err());
        assert!(SpiffeId::zone("a/b", Zone::Governance).is_err());
        assert!(SpiffeId::zone(&"a".repeat(256), Zone::Governance).is_err());
        assert!(SpiffeId::zone("a", Zone::Governance).is_ok());
    }
}
