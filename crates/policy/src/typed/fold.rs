//! Forms in which texts that are taken for one another are equal.

use exequatur_canonical::display::is_hidden;
use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

/// Without case and compatibility forms.
pub(super) fn case(text: &str) -> String {
    text.nfkc().collect::<String>().to_lowercase().nfkc().collect()
}

/// As a person sees it: also without hidden characters, blanks at the ends and look-alikes.
pub(super) fn look(text: &str) -> String {
    let visible: String =
        text.chars().filter(|c| !is_hidden(*c) || matches!(c, '\n' | '\t' | '\r')).collect();
    let words: Vec<String> = case(&visible).split_whitespace().map(ToOwned::to_owned).collect();
    let spaced = words.join(" ");
    // Look-alikes of capitals are taken after the case is gone, and have one themselves.
    skeleton(&spaced).collect::<String>().to_lowercase()
}

/// Percent-decoded as often as it changes, at most three times.
pub(super) fn decoded(text: &str) -> String {
    let mut out = text.to_owned();
    for _ in 0..3 {
        let next = percent_decode_str(&out).decode_utf8_lossy().into_owned();
        if next == out {
            break;
        }
        out = next;
    }
    out
}

/// Slashes of both kinds made one, `.` and `..` resolved, empty parts and what file systems drop at
/// the end of a part left out.
pub(super) fn resolved(path: &str) -> String {
    let rooted = path.starts_with(['/', '\\']);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => match other.trim_end_matches(['.', ' ']) {
                "" => {}
                kept => parts.push(kept),
            },
        }
    }
    let slash = if rooted { "/" } else { "" };
    let end = if path.ends_with(['/', '\\']) && !parts.is_empty() { "/" } else { "" };
    format!("{slash}{}{end}", parts.join("/"))
}

/// Whether a path is written so that every reader takes it for the same.
pub(super) fn plain_path(path: &str) -> bool {
    let parts = path.strip_prefix('/').unwrap_or(path);
    let ended = parts.strip_suffix('/').unwrap_or(parts);
    let plain_char = |c: char| !is_hidden(c) && !c.is_control() && !matches!(c, '\\' | '%');
    path.chars().all(plain_char)
        && path.nfc().eq(path.chars())
        && (parts.is_empty()
            || ended.split('/').all(|part| !part.is_empty() && !part.ends_with('.') && !part.ends_with(' ')))
}
