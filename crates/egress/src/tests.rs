//! Redaction by brute force, the guard's table, and "sent or not" against real sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at once")]

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use exequatur_fault::Reason;
use exequatur_proto::definition::v1::credential_use::Injection;
use exequatur_proto::definition::v1::{
    BearerInjection, CredentialUse, HttpRequest, SmtpRequest, SmtpSecurity,
};
use exequatur_secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::redact::{MARK, Redactor};
use crate::{Destination, Egress, Guard, Security, Sent, http, is_public, smtp};

const SECRET: &str = "k9$Zq/7+pLw==";
const LIMIT: Duration = Duration::from_secs(2);

fn percent(bytes: &[u8], all: bool) -> String {
    bytes
        .iter()
        .map(
            |b| {
                if all || !b.is_ascii_alphanumeric() {
                    format!("%{b:02x}")
                } else {
                    char::from(*b).to_string()
                }
            },
        )
        .collect()
}

fn forms() -> Vec<String> {
    let secret = SECRET.as_bytes();
    let mut forms = vec![SECRET.to_owned()];
    for before in ["", "x", "xy", "user:", "a:"] {
        for after in ["", "z", "zz"] {
            let text = format!("{before}{SECRET}{after}");
            for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                forms.push(engine.encode(&text));
            }
        }
    }
    forms.push(secret.iter().map(|b| format!("{b:02x}")).collect());
    forms.push(secret.iter().map(|b| format!("{b:02X}")).collect());
    forms.push(percent(secret, true));
    forms.push(percent(secret, false));
    forms.push(
        percent(secret, false).to_uppercase().replace("K9", "k9").replace("Q", "q").replace("PLW", "pLw"),
    );
    forms.push(SECRET.replace('/', "\\/"));
    forms.push(SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect());
    forms.push(STANDARD.encode(SECRET).replace('/', "\\/").replace('=', "%3D"));
    forms.push(percent(percent(secret, false).as_bytes(), false));
    forms
}

#[test]
fn no_form_of_a_secret_survives_and_harmless_text_does() {
    let secret = Secret::new(SECRET.into());
    let redactor = Redactor::new([&secret]);
    for form in forms() {
        let text = format!("{{\"error\":\"bad credential {form}\"}}");
        let clean = redactor.clean_text(&text);
        assert!(clean.contains("[redacted]"), "{form} stayed: {clean}");
        // Nothing longer than three characters of the form is left.
        let harmless =
            clean.replace("bad credential ", "").replace("[redacted]", "").replace("{\"error\":\"", "");
        for window in form.as_bytes().windows(4) {
            let part = String::from_utf8_lossy(window);
            assert!(!harmless.contains(&*part), "{part} of {form} is left in {clean}");
        }
    }
    let harmless = "{\"id\":\"c-7\",\"note\":\"call back%20at 9, 7+2==9\"}";
    assert_eq!(redactor.clean_text(harmless), harmless);
    assert!(redactor.clean(b"prefix k9$Zq/7").ends_with(MARK));
}

#[test]
fn special_addresses_are_not_public() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.51.100.7",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:db8::1",
        "2001:0:0:0:0:0:80ff:fffe",
        "::ffff:8.8.8.8",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
    for address in
        ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2001:4860:4860::8888"]
    {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn egress(exceptions: &[SocketAddr]) -> Egress {
    Egress::new(Guard::new(exceptions.iter().copied()), &[]).unwrap()
}

fn plain(address: SocketAddr) -> Destination {
    Destination { host: address.ip().to_string(), port: address.port(), security: Security::Plain }
}

#[tokio::test]
async fn forbidden_destinations_are_refused_before_any_packet() {
    let (listener, address) = listener().await;
    let egress = egress(&[]);
    for host in ["127.0.0.1", "::ffff:7f00:1", "[::ffff:a9fe:a9fe]", "::169.254.169.254"] {
        let destination = Destination { host: host.into(), port: address.port(), security: Security::Tls };
        let fault = egress.connect(&destination, LIMIT).await.err().unwrap();
        assert_eq!(fault.reason(), Reason::DestinationForbidden, "{host}");
    }
    assert_eq!(egress.connects(), 0);
    assert!(tokio::time::timeout(Duration::from_millis(100), listener.accept()).await.is_err());
    // The exact exception is reached; another port of the same address is not.
    let egress = self::egress(&[address]);
    egress.connect(&plain(address), LIMIT).await.map(drop).unwrap();
    let other = SocketAddr::new(address.ip(), address.port() ^ 1);
    assert_eq!(
        egress.connect(&plain(other), LIMIT).await.err().unwrap().reason(),
        Reason::DestinationForbidden
    );
    assert_eq!(egress.connects(), 1);
}

fn request(address: SocketAddr) -> HttpRequest {
    HttpRequest {
        method: "POST".into(),
        scheme: "http".into(),
        host: address.ip().to_string(),
        port: u32::from(address.port()),
        target: "/v1/things?x=1".into(),
        body: b"{}".to_vec(),
        ..HttpRequest::default()
    }
}

fn bearer(secret: &str) -> (CredentialUse, Secret) {
    let place =
        CredentialUse { injection: Some(Injection::Bearer(BearerInjection {})), ..CredentialUse::default() };
    (place, Secret::new(secret.into()))
}

async fn send_to(answer: &'static [u8]) -> (Sent<http::Answer>, String) {
    let (listener, address) = listener().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = vec![0; 4096];
        let length = stream.read(&mut seen).await.unwrap();
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.ok();
        String::from_utf8_lossy(seen.get(..length).unwrap()).into_owned()
    });
    let link = egress(&[address]).connect(&plain(address), LIMIT).await.unwrap();
    let ready =
        http::ready(&request(address), &[bearer("tok-1")], Some(("idempotency-key", "00ff"))).unwrap();
    let sent = http::send(link, ready, LIMIT, 64).await;
    (sent, serving.await.unwrap())
}

#[tokio::test]
async fn a_whole_answer_is_an_answer_and_everything_else_is_unclear() {
    let (sent, seen) = send_to(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}").await;
    let Sent::Answered(answer) = sent else { panic!("{sent:?}") };
    assert_eq!((answer.status, answer.body.as_slice(), answer.encoded), (201, &b"{}"[..], false));
    assert!(seen.starts_with("POST /v1/things?x=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer tok-1\r\n") && seen.contains("idempotency-key: 00ff\r\n"));
    assert!(seen.contains("content-length: 2\r\n"));
    for answer in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\ncontent-length: 65\r\n\r\n01234567890123456789012345678901234567890123456789012345678901234",
        b"SSH-2.0-OpenSSH\r\n",
    ] {
        let (sent, _) = send_to(answer).await;
        assert!(matches!(sent, Sent::Unclear(_)), "{sent:?}");
    }
    // A redirect is an answer; nobody follows it.
    let (sent, _) =
        send_to(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n").await;
    assert!(matches!(sent, Sent::Answered(a) if a.status == 302));
}

#[tokio::test]
async fn a_connection_closed_before_the_first_byte_is_not_sent() {
    let (listener, address) = listener().await;
    let link = egress(&[address]).connect(&plain(address), LIMIT).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ready = http::ready(&request(address), &[], None).unwrap();
    let sent = http::send(link, ready, LIMIT, 64).await;
    // Either the reset was seen before the first byte, or a byte went into the socket: never an answer.
    assert!(!matches!(sent, Sent::Answered(_)), "{sent:?}");
}

#[test]
fn a_credential_that_does_not_fit_its_place_is_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    for bad in ["a\r\nx: y", "", "a\0b", " lead", "tr\u{e4}il"] {
        let fault = http::ready(&request(address), &[bearer(bad)], None).err().unwrap();
        assert_eq!(fault.reason(), Reason::ValueDoesNotFit);
        assert!(bad.trim().is_empty() || !fault.to_string().contains(bad));
    }
}

fn mail(address: SocketAddr) -> SmtpRequest {
    SmtpRequest {
        host: address.ip().to_string(),
        port: u32::from(address.port()),
        security: SmtpSecurity::None.into(),
        from: "bot@example.org".into(),
        to: vec!["a@example.org".into()],
        message: b"Subject: x\r\n\r\n.\r\nline\r\n..\r\n".to_vec(),
    }
}

/// Answers each line with the next reply; what follows 354 is read up to the dot unless `cut`.
async fn smtp_server(
    listener: TcpListener,
    replies: Vec<&'static str>,
    after: Option<&'static str>,
) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut seen = String::new();
    for reply in replies {
        stream.write_all(reply.as_bytes()).await.unwrap();
        if reply.starts_with("354") {
            break;
        }
        loop {
            let byte = stream.read_u8().await.unwrap();
            seen.push(char::from(byte));
            if seen.ends_with("\r\n") {
                break;
            }
        }
    }
    while !seen.ends_with("\r\n.\r\n") {
        match stream.read_u8().await {
            Ok(byte) => seen.push(char::from(byte)),
            Err(_) => return seen,
        }
    }
    if let Some(reply) = after {
        stream.write_all(reply.as_bytes()).await.unwrap();
    }
    seen
}

const UP_TO_DATA: [&str; 6] = [
    "220 hi\r\n",
    "250-x\r\n250 AUTH LOGIN PLAIN\r\n",
    "235 ok\r\n",
    "250 ok\r\n",
    "250 ok\r\n",
    "354 go\r\n",
];

async fn mail_with(after: Option<&'static str>) -> (Sent<smtp::Answer>, String) {
    let (listener, address) = listener().await;
    let serving = tokio::spawn(smtp_server(listener, UP_TO_DATA.to_vec(), after));
    let link = egress(&[address]).connect(&plain(address), LIMIT).await.unwrap();
    let secret = Secret::new(b"pw".to_vec());
    let open =
        smtp::open(link, &mail(address), Some(("bot", &secret)), "Date: now\r\n", LIMIT).await.unwrap();
    let sent = open.send(LIMIT).await;
    (sent, serving.await.unwrap())
}

#[tokio::test]
async fn a_mail_is_answered_refused_or_in_doubt_by_the_final_dot() {
    let (sent, seen) = mail_with(Some("250 queued\r\n")).await;
    assert!(matches!(sent, Sent::Answered(a) if a.code == 250));
    assert!(seen.contains("AUTH PLAIN AGJvdABwdw==\r\n"), "{seen}");
    assert!(seen.ends_with("Date: now\r\nSubject: x\r\n\r\n..\r\nline\r\n...\r\n.\r\n"), "{seen}");
    let (sent, _) = mail_with(Some("554 no\r\n")).await;
    assert!(matches!(sent, Sent::Answered(a) if a.code == 554));
    let (sent, _) = mail_with(None).await;
    assert!(matches!(sent, Sent::Unclear(_)), "{sent:?}");
}

#[tokio::test]
async fn what_fails_before_the_message_was_not_sent() {
    for (replies, reason) in [
        (vec!["220 hi\r\n", "250 x\r\n"], Reason::ProviderRefused),
        (vec!["220 hi\r\n", "250 AUTH PLAIN\r\n", "535 no\r\n"], Reason::DestinationUnreachable),
        (vec!["220 hi\r\n", "250-x\r\n250 AUTH PLAIN\r\n", "535 no\r\n"], Reason::ProviderRefused),
        (vec!["421 later\r\n"], Reason::DestinationUnreachable),
        (
            vec!["220 hi\r\n", "250-x\r\n250 AUTH PLAIN\r\n", "235 ok\r\n", "250 ok\r\n", "550 no\r\n"],
            Reason::ProviderRefused,
        ),
    ] {
        let (listener, address) = listener().await;
        let serving = tokio::spawn(smtp_server(listener, replies.clone(), None));
        let link = egress(&[address]).connect(&plain(address), LIMIT).await.unwrap();
        let secret = Secret::new(b"pw".to_vec());
        let fault = smtp::open(link, &mail(address), Some(("bot", &secret)), "", LIMIT).await.err().unwrap();
        // A one-line EHLO answer offers nothing, so both refusals are about AUTH.
        let expected = if replies.len() == 3 && reason == Reason::DestinationUnreachable {
            Reason::ProviderRefused
        } else {
            reason
        };
        assert_eq!(fault.reason(), expected, "{replies:?}");
        serving.abort();
    }
}
