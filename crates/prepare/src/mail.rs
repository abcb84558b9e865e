//! Builds the mail of an action. The body arrives byte for byte, in one of two transfer
//! encodings that a pure rule picks. Knows no connection, no date and no secret.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_canonical::{Object, Value};
use exequatur_proto::definition::v1::{SmtpRequest, SmtpTemplate};

use crate::place::{self, Placed};
use crate::{PrepareError, names};

/// Most recipients of one mail.
const MAX_RECIPIENTS: usize = 100;
/// Longest subject, bytes.
const MAX_SUBJECT: usize = 1000;
/// Longest line of a transfer encoding, without its line end.
const LINE: usize = 76;

/// Builds the request.
pub(crate) fn build(template: &SmtpTemplate, arguments: &Object) -> Result<SmtpRequest, PrepareError> {
    let not_canonical = || PrepareError::NotCanonical("the definition");
    let to = recipients(template, arguments)?;
    let subject = place::need(template.subject.as_ref().ok_or_else(not_canonical)?, arguments)?;
    let subject = subject_line(&subject)?;
    let body = place::need(template.body.as_ref().ok_or_else(not_canonical)?, arguments)?;
    let body = body.string()?;

    let mut message = String::new();
    message.push_str(&format!("From: {}\r\n", template.from));
    message.push_str(&format!("To: {}\r\n", to.join(",\r\n ")));
    message.push_str(&format!("Subject: {subject}\r\n"));
    message.push_str("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n");
    let (encoding, text) = encode_body(body);
    message.push_str(&format!("Content-Transfer-Encoding: {encoding}\r\n\r\n"));
    message.push_str(&text);

    Ok(SmtpRequest {
        host: template.host.clone(),
        port: template.port,
        security: template.security,
        from: template.from.clone(),
        to,
        message: message.into_bytes(),
    })
}

fn recipients(template: &SmtpTemplate, arguments: &Object) -> Result<Vec<String>, PrepareError> {
    let mut all: Vec<String> = Vec::new();
    for source in &template.to {
        let placed = place::need(source, arguments)?;
        let mut add = |text: &str| {
            names::address(text).map_err(|why| placed.does_not_fit(why))?;
            if all.iter().any(|other| other == text) {
                return Err(placed.does_not_fit("the same recipient stands twice"));
            }
            all.push(text.to_owned());
            Ok(())
        };
        match placed.value.as_ref() {
            Value::String(text) => add(text)?,
            Value::List(items) => {
                for item in items {
                    match item {
                        Value::String(text) => add(text)?,
                        other => {
                            return Err(placed.does_not_fit(format!(
                                "a list of recipients holds addresses as text, here is {}",
                                other.kind()
                            )));
                        }
                    }
                }
            }
            other => {
                return Err(placed.does_not_fit(format!(
                    "must be an address or a list of addresses, is {}",
                    other.kind()
                )));
            }
        }
        if all.is_empty() || all.len() > MAX_RECIPIENTS {
            return Err(placed.does_not_fit(format!("a mail has 1 to {MAX_RECIPIENTS} recipients")));
        }
    }
    Ok(all)
}

/// The subject as it stands in the header: as it is when it is plain ASCII, else as RFC 2047
/// encoded words, so that a reader sees exactly the proposed text.
fn subject_line(subject: &Placed<'_>) -> Result<String, PrepareError> {
    let text = subject.string()?;
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(subject.does_not_fit("a subject holds no line breaks and no control characters"));
    }
    if text.len() > MAX_SUBJECT {
        return Err(subject.does_not_fit(format!("a subject has at most {MAX_SUBJECT} bytes")));
    }
    if holds_encoded_word(text) {
        return Err(subject.does_not_fit(
            "a subject holds no encoded word (`=?…?=`): it would read as something else; write the text itself",
        ));
    }
    let plain = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains("=?")
        && text.len() <= 900;
    if plain || text.is_empty() {
        return Ok(text.to_owned());
    }
    Ok(encoded_words(text).join("\r\n "))
}

/// Whether some reader would decode a part of the text: `=?charset?B or Q?…?=`.
fn holds_encoded_word(text: &str) -> bool {
    text.match_indices("=?").filter_map(|(at, opening)| text.get(at + opening.len()..)).any(|rest| {
        let mut fields = rest.splitn(3, '?');
        let charset = fields.next().unwrap_or_default();
        let kind = fields.next().unwrap_or_default();
        let data = fields.next();
        !charset.is_empty() && matches!(kind, "b" | "B" | "q" | "Q") && data.is_some_and(|d| d.contains("?="))
    })
}

/// Encoded words of at most 75 characters, cut between characters. Readers drop the blank between.
fn encoded_words(text: &str) -> Vec<String> {
    // 75 - len("=?utf-8?B??=") = 63 characters of base64, so 45 bytes.
    const BYTES: usize = 45;
    let mut words = Vec::new();
    let mut part = String::new();
    for c in text.chars() {
        if part.len() + c.len_utf8() > BYTES {
            words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(&part)));
            part.clear();
        }
        part.push(c);
    }
    words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(&part)));
    words
}

/// The transfer encoding and the encoded body. Quoted-printable while at most one byte in six
/// needs it, so that mostly Latin text stays readable on the wire; else base64.
fn encode_body(body: &str) -> (&'static str, String) {
    let escaped = body.bytes().filter(|b| !literal(*b) && !matches!(b, b' ' | b'\n')).count();
    if escaped * 6 <= body.len() {
        ("quoted-printable", quoted_printable(body.as_bytes()))
    } else {
        ("base64", base64_lines(body.as_bytes()))
    }
}

const fn literal(b: u8) -> bool {
    b.is_ascii_graphic() && b != b'='
}

/// Quoted-printable in its binary form: line ends of the text are data (`=0A`), every line on the
/// wire ends with a soft break, and none begins with a dot or `From `.
pub(crate) fn quoted_printable(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len() + data.len() / 8);
    let mut line = String::new();
    for &b in data {
        let at_start = line.is_empty();
        let mut piece = String::new();
        let fits = literal(b) || b == b' ';
        if !fits || (at_start && matches!(b, b'.' | b'F')) {
            // Writing to a String cannot fail.
            let _ = write!(piece, "={b:02X}");
        } else {
            piece.push(char::from(b));
        }
        if line.len() + piece.len() > LINE - 1 {
            soft_break(&mut line, &mut out);
            if matches!(b, b'.' | b'F') {
                piece = format!("={b:02X}");
            }
        }
        line.push_str(&piece);
        if b == b'\n' {
            soft_break(&mut line, &mut out);
        }
    }
    if !line.is_empty() {
        soft_break(&mut line, &mut out);
    }
    out
}

fn soft_break(line: &mut String, out: &mut String) {
    out.push_str(line);
    out.push_str("=\r\n");
    line.clear();
}

fn base64_lines(data: &[u8]) -> String {
    let text = STANDARD.encode(data);
    let mut out = String::with_capacity(text.len() + text.len() / 30);
    for line in text.as_bytes().chunks(LINE) {
        out.extend(line.iter().map(|b| char::from(*b)));
        out.push_str("\r\n");
    }
    out
}

/// A mail of ours taken apart again, for people to read.
pub(crate) struct Parts {
    /// Header lines as they stand.
    pub(crate) headers: Vec<String>,
    /// The subject as a reader sees it.
    pub(crate) subject: String,
    /// The name of the transfer encoding.
    pub(crate) encoding: &'static str,
    /// The body that arrives.
    pub(crate) body: String,
}

/// Takes a message apart; `None` unless encoding the parts again gives the same bytes.
pub(crate) fn parts(message: &[u8]) -> Option<Parts> {
    let text = std::str::from_utf8(message).ok()?;
    let (head, data) = text.split_once("\r\n\r\n")?;
    let mut headers: Vec<String> = Vec::new();
    for line in head.split("\r\n") {
        if line.starts_with(' ') {
            let last = headers.last_mut()?;
            last.push_str("\r\n");
            last.push_str(line);
        } else {
            headers.push(line.to_owned());
        }
    }
    let field = |name: &str| headers.iter().find_map(|h| h.strip_prefix(name)).map(str::to_owned);
    let (encoding, body) = match field("Content-Transfer-Encoding: ")?.as_str() {
        "quoted-printable" => ("quoted-printable", unquote(data)?),
        "base64" => ("base64", STANDARD.decode(data.replace("\r\n", "")).ok()?),
        _ => return None,
    };
    let body = String::from_utf8(body).ok()?;
    let (again, encoded) = encode_body(&body);
    if again != encoding || encoded != data {
        return None;
    }
    let raw = field("Subject: ")?;
    let subject = if raw.contains("=?") {
        let mut bytes = Vec::new();
        for word in raw.split("\r\n ") {
            let data = word.strip_prefix("=?utf-8?B?")?.strip_suffix("?=")?;
            bytes.extend(STANDARD.decode(data).ok()?);
        }
        let subject = String::from_utf8(bytes).ok()?;
        if encoded_words(&subject).join("\r\n ") != raw {
            return None;
        }
        subject
    } else {
        raw
    };
    Some(Parts { headers, subject, encoding, body })
}

fn unquote(data: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len());
    let mut bytes = data.bytes();
    while let Some(b) = bytes.next() {
        if b != b'=' {
            out.push(b);
            continue;
        }
        match (bytes.next()?, bytes.next()?) {
            (b'\r', b'\n') => {}
            (high, low) => {
                let digit = |b: u8| char::from(b).to_digit(16);
                out.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
            }
        }
    }
    Some(out)
}
