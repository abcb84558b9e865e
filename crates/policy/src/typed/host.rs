//! Hosts: names and addresses, in every spelling that leads to the same place.

use exequatur_canonical::display::is_hidden;
use url::Host;

use super::{Readings, fold};

/// A pattern in the form that readings have.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    if text.starts_with('[') || text.parse::<std::net::Ipv6Addr>().is_ok() {
        return form(text.trim_matches(['[', ']'])).ok_or_else(|| "is no IPv6 address".to_owned());
    }
    if !text.contains('*') {
        return form(text)
            .ok_or_else(|| "is no host: a name such as `a.example.org` or an address".to_owned());
    }
    let labels: Option<Vec<String>> = text
        .strip_suffix('.')
        .unwrap_or(text)
        .split('.')
        .map(|label| {
            if label.contains('*') {
                let fits = label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_*".contains(&b));
                fits.then(|| label.to_ascii_lowercase())
            } else {
                idna::domain_to_ascii(label).ok().filter(|l| !l.is_empty())
            }
        })
        .collect();
    labels.map(|l| l.join(".")).ok_or_else(|| "is no host: labels joined by dots, `*` in them".to_owned())
}

/// The one form of a host.
fn form(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
        return Some(v6(address));
    }
    match Host::parse(text).ok()? {
        Host::Domain(name) => Some(name.trim_end_matches('.').to_owned()).filter(|n| !n.is_empty()),
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(v6(address)),
    }
}

fn v6(address: std::net::Ipv6Addr) -> String {
    match address.to_ipv4_mapped() {
        Some(mapped) => mapped.to_string(),
        None => format!("[{address}]"),
    }
}

/// The host's form when it is written plainly.
pub(super) fn plain(text: &str) -> Option<String> {
    let form = form(text)?;
    let written = text.to_lowercase();
    let named = form == written || idna::domain_to_unicode(&form).0 == written;
    (named && !text.chars().any(is_hidden)).then_some(form)
}

/// Every form that some reader gives it.
pub(super) fn forms(text: &str) -> Vec<String> {
    let cleaned: String = text.chars().filter(|c| !is_hidden(*c) && !c.is_whitespace()).collect();
    let decoded = fold::decoded(&cleaned);
    let mut out: Vec<String> =
        [text, cleaned.as_str(), decoded.as_str()].into_iter().filter_map(form).collect();
    out.push(fold::case(&decoded).trim_end_matches('.').to_owned());
    out.dedup();
    out
}

/// Every reading; a port or what stands before an `@` makes it no host.
pub(super) fn read(text: &str) -> Readings {
    let mut all = forms(text);
    let rest = text.rsplit('@').next().unwrap_or(text);
    all.extend(forms(rest));
    if let Some((name, port)) = rest.rsplit_once(':')
        && port.bytes().all(|b| b.is_ascii_digit())
    {
        all.extend(forms(name));
    }
    Readings { plain: plain(text), all }
}
