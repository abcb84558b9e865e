//! Absolute URLs, read as a client reads them (WHATWG) and as others do, in the form
//! `scheme://host:port/path?query`: the port always said, the path decoded.

use exequatur_canonical::display::is_hidden;
use percent_encoding::percent_decode_str;
use url::Url;

use super::{Readings, fold, host};

/// A pattern in the form that readings have.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    let (scheme, rest) = text.split_once("://").ok_or("a URL begins with a scheme, such as `https://`")?;
    let fits = scheme == "*"
        || (!scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)));
    if !fits {
        return Err("the scheme is a word such as `https`, or `*`".to_owned());
    }
    let at = rest.find('/').ok_or("the host ends with `/`: write the path, such as `/*`")?;
    let (authority, path) = rest.split_at(at);
    if authority.contains(['@', '?', '#', '%', '\\']) || path.contains('#') {
        return Err("a URL pattern has no `@`, `%` or `#`, and `?` only after the path".to_owned());
    }
    let plain = path.split('?').next().unwrap_or(path);
    if !fold::plain_path(&plain.replace("\\*", "_").replace('*', "_")) {
        return Err("the path is parts joined by `/`, without `.`, `..`, `//` or `%`".to_owned());
    }
    let scheme = scheme.to_ascii_lowercase();
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => {
            if port != "*" && port.parse::<u16>().is_err() {
                return Err("the port is a number or `*`".to_owned());
            }
            (name, port.to_owned())
        }
        _ => (authority, default_port(&scheme)),
    };
    Ok(format!("{scheme}://{}:{port}{path}", host::pattern(name)?))
}

fn default_port(scheme: &str) -> String {
    let known = Url::parse(&format!("{scheme}://h/")).ok().and_then(|u| u.port_or_known_default());
    known.map_or_else(|| "*".to_owned(), |port| port.to_string())
}

/// Where scheme and host stand in the text as it is written.
fn written(text: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    Some((scheme, authority, path))
}

fn form(scheme: &str, host: &str, port: &str, rest: &str) -> String {
    let slash = if rest.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{host}:{port}{slash}{rest}")
}

fn query(url: &Url) -> String {
    url.query().map(|q| format!("?{q}")).unwrap_or_default()
}

fn port(url: &Url) -> String {
    url.port_or_known_default().unwrap_or_default().to_string()
}

fn plain(text: &str, url: &Url) -> Option<String> {
    if text.chars().any(|c| is_hidden(c) || c.is_whitespace() || c == '\\') {
        return None;
    }
    let (_, authority, rest) = written(text)?;
    let bracket = authority.rfind(']').unwrap_or(0);
    let name = match authority.rfind(':') {
        Some(at) if at > bracket => {
            let digits = authority.get(at..)?.strip_prefix(':')?;
            if digits.is_empty() || digits.starts_with('0') {
                return None;
            }
            authority.get(..at)?
        }
        _ => authority,
    };
    let host = host::plain(name)?;
    // Decoded where every reader decodes; what would then look like something else is not plain.
    let raw = rest.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_decode_str(raw).decode_utf8().ok()?;
    let hides = raw.matches('/').count() != decoded.matches('/').count() || decoded.contains(['?', '#']);
    if hides || !fold::plain_path(&decoded) {
        return None;
    }
    Some(form(
        url.scheme(),
        &host,
        &port(url),
        &format!("/{}{}", decoded.trim_start_matches('/'), query(url)),
    ))
}

fn readings_of(url: &Url, out: &mut Vec<String>) {
    let Some(name) = url.host_str() else {
        out.push(url.as_str().to_owned());
        return;
    };
    let (query, port) = (query(url), port(url));
    let decoded = fold::decoded(url.path());
    for host in host::forms(name) {
        for path in [url.path(), &decoded, &fold::resolved(&decoded), &fold::resolved(&fold::case(&decoded))]
        {
            out.push(form(url.scheme(), &host, &port, &format!("{path}{query}")));
            out.push(form(url.scheme(), &host, &port, path));
        }
    }
}

/// Every reading.
pub(super) fn read(text: &str) -> Readings {
    let cleaned: String = text.chars().filter(|c| !is_hidden(*c) && !c.is_whitespace()).collect();
    let mut all = Vec::new();
    let parsed = Url::parse(text).ok();
    let mut sources = vec![text.to_owned(), cleaned.clone(), fold::decoded(&cleaned), fold::case(&cleaned)];
    // Without a scheme, some clients take one; and not every reader takes `\` for `/`.
    sources.push(format!("https://{}", cleaned.trim_start_matches(['/', '\\'])));
    sources.push(format!("http://{}", cleaned.trim_start_matches(['/', '\\'])));
    if let Some((scheme, authority, rest)) = written(&cleaned) {
        for name in authority.split(['@', '\\']) {
            sources.push(format!("{scheme}://{name}{rest}"));
        }
    }
    for source in sources {
        if let Ok(url) = Url::parse(&source) {
            readings_of(&url, &mut all);
        }
    }
    all.sort_unstable();
    all.dedup();
    Readings { plain: parsed.and_then(|url| plain(text, &url)), all }
}
