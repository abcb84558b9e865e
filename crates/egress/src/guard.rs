//! Which addresses may be connected to. The guard is never off: exceptions are exact address:port pairs.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The guard of a connector.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    exceptions: HashSet<SocketAddr>,
}

impl Guard {
    /// A guard with exact exceptions, for development.
    #[must_use]
    pub fn new(exceptions: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { exceptions: exceptions.into_iter().collect() }
    }

    /// Whether this very address and port may be connected to.
    #[must_use]
    pub fn allows(&self, address: SocketAddr) -> bool {
        is_public(address.ip()) || self.exceptions.contains(&address)
    }

    /// Whether plain text may be spoken to it: only to an exception.
    #[must_use]
    pub fn allows_plain(&self, address: SocketAddr) -> bool {
        self.exceptions.contains(&address)
    }
}

/// Whether an address is globally reachable and special to nobody (IANA special-purpose address
/// registries, RFC 6890 and its updates). An IPv6 address that carries an IPv4 address is judged by that.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            // Translated or tunnelled: no provider is reached that way.
            Some(_) => false,
            None => is_public_v6(v6),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 31, 196)
            | (192, 52, 193)
            | (192, 88, 99)
            | (192, 175, 48)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224..=255, _, _)
    );
    !special
}

/// IPv4-mapped, IPv4-compatible, NAT64 (RFC 6052, RFC 8215), 6to4, Teredo.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => v4(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] => v4(high, low),
        [0x64, 0xff9b, _, _, _, _, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        [0x2001, 0, _, _, _, _, high, low] => v4(!high, !low),
        _ => None,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let global = (0x2000..=0x3fff).contains(&first);
    let special = (first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        || (first == 0x2620 && second == 0x004f)
        || (first == 0x3fff && second < 0x1000);
    global && !special
}
