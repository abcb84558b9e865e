//! Which names, hosts and headers may stand in a definition. Knows no template.

use std::net::{Ipv4Addr, Ipv6Addr};

use exequatur_canonical::display::escape;

/// Headers that belong to the connection, to the connector, or to a credential; a template never
/// writes them. `accept-encoding` would hide an echoed secret from redaction.
const FORBIDDEN: &[&str] = &[
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// `[A-Za-z][A-Za-z0-9_.\-/]{0,127}`.
pub(crate) fn tool(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-/".contains(&b))
}

/// A database's name: 1 to 63 visible ASCII characters.
pub(crate) fn database(name: &str) -> bool {
    (1..=63).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
}

/// `[a-z0-9][a-z0-9._-]{0,62}`: credentials and tenants.
pub(crate) fn plain_id(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.bytes().all(id_byte)
}

/// A byte that may stand in a tenant's name.
pub(crate) const fn id_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
}

/// A lower-case header name.
pub(crate) fn header_token(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether only the connection, the connector or a credential may write this header.
pub(crate) fn reserved_header(name: &str) -> bool {
    FORBIDDEN.contains(&name) || name.starts_with("proxy-") || name.starts_with("sec-")
}

/// Text of one line in which nothing is hidden.
pub(crate) fn plain_line(text: &str, max: usize) -> bool {
    text.len() <= max
        && text.chars().all(|c| {
            let mut own = [0; 4];
            let own: &str = c.encode_utf8(&mut own);
            matches!(c, '"' | '\\') || escape(own) == own
        })
}

/// RFC 6901.
pub(crate) fn pointer(text: &str) -> bool {
    if !(text.is_empty() || text.starts_with('/')) || text.len() > 1024 {
        return false;
    }
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '~' && !matches!(chars.next(), Some('0' | '1')) {
            return false;
        }
    }
    true
}

/// A plain lower-case DNS name or an IP literal in its one usual form.
///
/// # Errors
/// Says what is wrong.
pub(crate) fn host(host: &str) -> Result<(), &'static str> {
    if host.contains(':') {
        let address: Ipv6Addr = host.parse().map_err(|_| "is no IPv6 address (no brackets, no port)")?;
        if address.to_string() != host {
            return Err("must be written in the usual short lower-case form");
        }
        let embedded =
            address.to_ipv4_mapped().is_some() || (address.to_ipv4().is_some() && !address.is_loopback());
        if embedded || address.is_unspecified() {
            return Err("must not be an IPv4 address in IPv6 form, nor `::`");
        }
        return Ok(());
    }
    if host.len() > 253 || host.is_empty() {
        return Err("must have 1 to 253 characters");
    }
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    if !host.split('.').all(label) {
        return Err("must be a plain lower-case host name (no user, no port, no trailing dot)");
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|r| r.bytes().all(|b| b.is_ascii_hexdigit()));
    if numeric {
        let address: Ipv4Addr =
            host.parse().map_err(|_| "looks like a number: write an IPv4 address as four decimals")?;
        if address.to_string() != host || address.is_unspecified() || address.is_broadcast() {
            return Err("is no usable IPv4 address");
        }
    }
    Ok(())
}

/// Exactly one `local@domain` in plain ASCII: no display name, no quoting, no list.
///
/// # Errors
/// Says what is wrong.
pub(crate) fn address(text: &str) -> Result<(), &'static str> {
    if text.len() > 254 {
        return Err("an address has at most 254 characters");
    }
    let Some((local, domain)) = text.split_once('@') else {
        return Err("must be one address `local@domain`");
    };
    let atom = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b);
    let local_fits = (1..=64).contains(&local.len())
        && local.split('.').all(|part| !part.is_empty() && part.bytes().all(atom));
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    if local_fits && !domain.is_empty() && domain.split('.').all(label) {
        Ok(())
    } else {
        Err("must be exactly one plain address `local@domain`, without display name, comma, blank or quotes")
    }
}

/// A user name of a credential.
pub(crate) fn user(name: &str) -> bool {
    (1..=255).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b':')
}
