//! Taking what was injected out of whatever comes back. The text is looked at as it is and through
//! every decoding that a provider might have applied, so that mixed and partial encodings are found.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use exequatur_secret::Secret;
use zeroize::Zeroizing;

/// What stands in the place of a secret.
pub const MARK: &[u8] = b"[redacted]";

/// Base64 of fewer characters than this is in every text; such secrets are matched in other forms.
const MIN_BASE64: usize = 4;
/// A cut-off secret at the very end of a text is taken out from this many bytes on.
const MIN_PREFIX: usize = 4;

/// Knows the secrets of one attempt. Cannot be printed.
pub struct Redactor {
    plain: Vec<Zeroizing<Vec<u8>>>,
    /// The part of base64 that does not depend on neighbours, at each of three alignments, `+/` alphabet.
    base64: Vec<Zeroizing<Vec<u8>>>,
    hex: Vec<Zeroizing<Vec<u8>>>,
}

/// Text with, for each byte, where it came from in the original.
struct View {
    bytes: Zeroizing<Vec<u8>>,
    from: Vec<(usize, usize)>,
}

impl Redactor {
    /// Of the secrets that were injected.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut redactor = Self { plain: Vec::new(), base64: Vec::new(), hex: Vec::new() };
        for secret in secrets.into_iter().map(Secret::expose).filter(|s| !s.is_empty()) {
            redactor.plain.push(Zeroizing::new(secret.to_vec()));
            let hex: String = secret.iter().map(|b| format!("{b:02x}")).collect();
            redactor.hex.push(Zeroizing::new(hex.into_bytes()));
            for shift in 0..3 {
                let part = stable_base64(secret, shift);
                if part.len() >= MIN_BASE64 {
                    redactor.base64.push(Zeroizing::new(part));
                }
            }
        }
        redactor
    }

    /// The text without any form of any secret.
    #[must_use]
    pub fn clean(&self, text: &[u8]) -> Vec<u8> {
        if self.plain.is_empty() {
            return text.to_vec();
        }
        let mut marked = vec![false; text.len()];
        let raw = View::raw(text);
        let json = raw.decoded(json_escape);
        let percent = raw.decoded(percent_escape);
        for view in
            [&json.decoded(percent_escape), &percent.decoded(json_escape), &percent.decoded(percent_escape)]
        {
            self.mark(view, &mut marked);
        }
        for view in [&raw, &json, &percent] {
            self.mark(view, &mut marked);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut inside = false;
        for (byte, marked) in text.iter().zip(marked) {
            if marked && !inside {
                out.extend_from_slice(MARK);
            } else if !marked {
                out.push(*byte);
            }
            inside = marked;
        }
        out
    }

    /// The same for text.
    #[must_use]
    pub fn clean_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.clean(text.as_bytes())).into_owned()
    }

    fn mark(&self, view: &View, marked: &mut [bool]) {
        for secret in &self.plain {
            find(&view.bytes, secret, |from, to| view.mark(marked, from, to));
            // What was cut off by the end of the text.
            for length in (MIN_PREFIX..secret.len()).rev() {
                if secret.get(..length).is_some_and(|head| view.bytes.ends_with(head)) {
                    view.mark(marked, view.bytes.len() - length, view.bytes.len());
                    break;
                }
            }
        }
        let lower = Zeroizing::new(view.bytes.to_ascii_lowercase());
        for hex in &self.hex {
            find(&lower, hex, |from, to| view.mark(marked, from, to));
        }
        let standard: Zeroizing<Vec<u8>> = Zeroizing::new(
            view.bytes
                .iter()
                .map(|b| match b {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => *other,
                })
                .collect(),
        );
        let is_base64 = |at: usize| {
            standard.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        };
        for part in &self.base64 {
            find(&standard, part, |mut from, mut to| {
                // The characters beside it hold bits of the secret too: the whole run goes.
                while from > 0 && is_base64(from - 1) {
                    from -= 1;
                }
                while is_base64(to) {
                    to += 1;
                }
                view.mark(marked, from, to);
            });
        }
    }
}

/// The characters of base64 that depend on the secret alone when `shift` foreign bytes stand before it.
fn stable_base64(secret: &[u8], shift: usize) -> Vec<u8> {
    let padded = Zeroizing::new([&vec![0; shift][..], secret].concat());
    let text = Zeroizing::new(STANDARD_NO_PAD.encode(&*padded));
    let first = (shift * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    text.as_bytes().get(first..last).unwrap_or_default().to_vec()
}

fn find(text: &[u8], part: &[u8], mut found: impl FnMut(usize, usize)) {
    if part.is_empty() || part.len() > text.len() {
        return;
    }
    for (at, window) in text.windows(part.len()).enumerate() {
        if window == part {
            found(at, at + part.len());
        }
    }
}

/// Decodes one escape at the start of a text: its length and what it stands for.
type Escape = fn(&[u8]) -> Option<(usize, Vec<u8>)>;

impl View {
    fn raw(text: &[u8]) -> Self {
        Self { bytes: Zeroizing::new(text.to_vec()), from: (0..text.len()).map(|at| (at, at + 1)).collect() }
    }

    fn decoded(&self, escape: Escape) -> Self {
        let mut out = Self { bytes: Zeroizing::new(Vec::with_capacity(self.bytes.len())), from: Vec::new() };
        let mut at = 0;
        while let Some(byte) = self.bytes.get(at) {
            let (length, bytes) = self.bytes.get(at..).and_then(escape).unwrap_or_else(|| (1, vec![*byte]));
            let start = self.from.get(at).map_or(0, |f| f.0);
            let end = self.from.get(at + length - 1).map_or(start, |f| f.1);
            for byte in bytes {
                out.bytes.push(byte);
                out.from.push((start, end));
            }
            at += length;
        }
        out
    }

    fn mark(&self, marked: &mut [bool], from: usize, to: usize) {
        let start = self.from.get(from).map_or(0, |f| f.0);
        let end = to.checked_sub(1).and_then(|last| self.from.get(last)).map_or(start, |f| f.1);
        if let Some(range) = marked.get_mut(start..end) {
            range.fill(true);
        }
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok().filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(text, 16).ok()
}

fn percent_escape(text: &[u8]) -> Option<(usize, Vec<u8>)> {
    if text.first() != Some(&b'%') {
        return None;
    }
    let byte = hex(text.get(1..3)?)?;
    Some((3, vec![u8::try_from(byte).ok()?]))
}

fn json_escape(text: &[u8]) -> Option<(usize, Vec<u8>)> {
    if text.first() != Some(&b'\\') {
        return None;
    }
    let one = |byte: u8| Some((2, vec![byte]));
    match text.get(1)? {
        b'"' => one(b'"'),
        b'\\' => one(b'\\'),
        b'/' => one(b'/'),
        b'b' => one(8),
        b'f' => one(12),
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        b'u' => {
            let first = hex(text.get(2..6)?)?;
            if (0xD800..0xDC00).contains(&first)
                && text.get(6..8) == Some(b"\\u")
                && let Some(second) = text.get(8..12).and_then(hex)
                && (0xDC00..0xE000).contains(&second)
            {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return char::from_u32(code).map(|c| (12, c.to_string().into_bytes()));
            }
            char::from_u32(first).map(|c| (6, c.to_string().into_bytes()))
        }
        _ => None,
    }
}
