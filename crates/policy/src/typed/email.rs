//! E-mail addresses.

use super::{Readings, fold, host};

/// A pattern in the form that readings have.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    let (local, domain) = text
        .rsplit_once('@')
        .filter(|(local, _)| !local.is_empty() && !local.contains('@'))
        .ok_or("an address is `name@host`, `*` in either")?;
    Ok(format!("{local}@{}", host::pattern(domain)?))
}

/// Letters, digits and what RFC 5322 allows in an unquoted name.
fn atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$&'*+-/=?^_`{|}~.".contains(c)
}

fn plain(text: &str) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    let fits = !local.is_empty() && local.chars().all(atom) && !local.split('.').any(str::is_empty);
    let domain = host::plain(domain).filter(|d| d.contains(|c: char| c.is_ascii_alphabetic()))?;
    fits.then(|| format!("{local}@{domain}"))
}

/// Every address in the text, also with what stands after a `+` left out.
pub(super) fn read(text: &str) -> Readings {
    let decoded = fold::decoded(text);
    let shown = fold::case(&decoded);
    let mut all = Vec::new();
    for source in [text, decoded.as_str(), shown.as_str()] {
        let cleaned: String = source
            .chars()
            .filter(|c| !exequatur_canonical::display::is_hidden(*c) || c.is_whitespace())
            .collect();
        for part in cleaned.split([',', ';', '<', '>', '(', ')', '\n', '\r', '\t', ' ']) {
            let Some((local, domain)) = part.rsplit_once('@') else { continue };
            let local = local.trim_matches('"').trim_start_matches("mailto:").replace('\\', "");
            for domain in host::forms(domain) {
                all.push(format!("{local}@{domain}"));
                if let Some((base, _)) = local.split_once('+') {
                    all.push(format!("{base}@{domain}"));
                }
            }
        }
        // Blanks and comments around the `@` are allowed by the grammar and dropped by readers.
        let tight: String = cleaned.chars().filter(|c| !c.is_whitespace()).collect();
        if let Some((local, domain)) = tight.rsplit_once('@') {
            all.extend(host::forms(domain).into_iter().map(|d| format!("{local}@{d}")));
        }
    }
    all.sort_unstable();
    all.dedup();
    Readings { plain: plain(text), all }
}
