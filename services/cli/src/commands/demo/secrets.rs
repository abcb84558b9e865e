//! The search for secrets in every encoding that software tends to write them in.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The forms in which a secret could leak: name of the encoding and the text to look for.
pub(crate) fn forms(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut forms = vec![
        ("plain", secret.as_bytes().to_vec()),
        ("hex", secret.bytes().map(|b| format!("{b:02x}")).collect::<String>().into_bytes()),
        ("HEX", secret.bytes().map(|b| format!("{b:02X}")).collect::<String>().into_bytes()),
        ("percent", percent(secret).into_bytes()),
        ("JSON", serde_json::Value::from(secret).to_string().trim_matches('"').as_bytes().to_vec()),
    ];
    for (shift, name) in [(0, "base64"), (1, "base64 at 1"), (2, "base64 at 2")] {
        for (engine, name) in [(&STANDARD, name), (&URL_SAFE, "base64url")] {
            forms.push((name, base64_core(engine, secret, shift)));
        }
    }
    forms
}

/// The part of the base64 text that depends on the secret alone when `shift` bytes stand before it.
fn base64_core(engine: &base64::engine::GeneralPurpose, secret: &str, shift: usize) -> Vec<u8> {
    let mut padded = vec![0_u8; shift];
    padded.extend_from_slice(secret.as_bytes());
    let whole_groups = padded.len() / 3 * 3;
    padded.truncate(whole_groups);
    let text = engine.encode(&padded).into_bytes();
    // The first group mixes the secret with what stands before it.
    text.into_iter().skip(if shift == 0 { 0 } else { 4 }).collect()
}

fn percent(secret: &str) -> String {
    secret
        .bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// Names of the encodings in which the secret stands in a text.
pub(crate) fn hits(forms: &[(&'static str, Vec<u8>)], text: &[u8]) -> Vec<&'static str> {
    forms.iter().filter(|(_, form)| contains(text, form)).map(|(name, _)| *name).collect()
}

/// Whether a byte string stands in another.
fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

/// Where a byte string first stands in another.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let next = rest.iter().position(|b| *b == first)?;
        if rest.get(next..)?.starts_with(part) {
            return Some(at + next);
        }
        at += next + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_is_found() {
        let secret = "k9$Z/6f1e+q==";
        let forms = forms(secret);
        for text in [
            format!("token is {secret}."),
            STANDARD.encode(secret),
            STANDARD.encode(format!("u:{secret}")),
            STANDARD.encode(format!("x{secret} and more")),
            URL_SAFE.encode(secret),
            percent(secret),
        ] {
            assert!(!hits(&forms, text.as_bytes()).is_empty(), "{text}");
        }
        assert!(hits(&forms, b"nothing of it here").is_empty());
    }
}
