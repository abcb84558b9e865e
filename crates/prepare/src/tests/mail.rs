//! Mail parts, attack row S50 and its counter-cases.

use exequatur_proto::definition::v1::tool_definition::Template;

use super::*;
use crate::{mail, request_text};

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn send(to: &str, subject: &str, body: &str) -> Result<Prepared, PrepareError> {
    let arguments = format!(r#"{{"to":{to},"subject":{},"body":{}}}"#, quote(subject), quote(body));
    run(Template::Smtp(smtp()), &arguments)
}

/// The body as a reader's own decoder finds it.
fn arrives(prepared: &Prepared) -> String {
    mail::parts(&smtp_of(prepared).message).unwrap().body
}

#[test]
fn a_plain_mail_stands_as_people_expect() {
    let p = send(r#""a@example.org""#, "Weekly", "Hello,\nall is well.\n").unwrap();
    let expected = "From: ops@example.com\r\nTo: a@example.org\r\nSubject: Weekly\r\nMIME-Version: 1.0\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        Hello,=0A=\r\nall is well.=0A=\r\n";
    assert_eq!(String::from_utf8(smtp_of(&p).message.clone()).unwrap(), expected);
    assert_eq!(smtp_of(&p).to, ["a@example.org"]);
}

#[test]
fn s50_header_injection_is_refused_at_proposal() {
    for subject in ["Weekly\r\nBcc: x@example.net", "a\nb", "a\rb", "a\0b", "a\u{85}b", "a\u{2028}b", "a\tb"]
    {
        let error = send(r#""a@example.org""#, subject, "x").unwrap_err();
        assert_eq!(error.pointer(), Some("/subject"), "{subject:?}");
    }
    for subject in ["=?utf-8?B?DQpCY2M6IHhAZXhhbXBsZS5uZXQ=?=", "Re: =?utf-8?q?=0D=0ABcc:_x@example.net?= y"]
    {
        assert_eq!(send(r#""a@example.org""#, subject, "x").unwrap_err().pointer(), Some("/subject"));
    }
    // Counter-cases: what only looks a little like it arrives as it is.
    for subject in [
        "Weekly: Bcc: x@example.net",
        "what =? this",
        "a ?= b",
        "=?utf-8?B?",
        "naïve",
        "日本語".repeat(60).as_str(),
        " lead",
        "trail ",
        "",
    ] {
        let p = send(r#""a@example.org""#, subject, "x").unwrap();
        let message = String::from_utf8(smtp_of(&p).message.clone()).unwrap();
        assert_eq!(mail::parts(message.as_bytes()).unwrap().subject, subject);
        assert!(message.split("\r\n").all(|line| line.len() <= 998 && line.is_ascii()), "{subject}");
        assert_eq!(message.matches("Bcc").count(), subject.matches("Bcc").count());
        assert!(!message.contains("\r\nBcc"));
    }
}

#[test]
fn s50_exactly_the_named_recipients_or_refused() {
    for to in [
        r#""a@example.org,b@example.net""#,
        r#""a@example.org, b@example.net""#,
        r#""a@example.org;b@example.net""#,
        r#""A Name <a@example.org>""#,
        r#""A\nName <a@example.org>""#,
        r#""<a@example.org>""#,
        r#""a@example.org\r\nBcc: x@example.net""#,
        r#""a@example.org\n""#,
        r#"" a@example.org""#,
        r#""a@b@example.org""#,
        r#""\"a b\"@example.org""#,
        r#""a@[127.0.0.1]""#,
        r#""a@exämple.org""#,
        r#""(c)a@example.org""#,
        r#""""#,
        r#""a""#,
        r#""@example.org""#,
        r#""a@""#,
        r#""a@.org""#,
        r#"".a@example.org""#,
        "null",
        "1",
        "[]",
        r#"["a@example.org",1]"#,
        r#"["a@example.org","a@example.org"]"#,
        r#"[["a@example.org"]]"#,
        r#"{"a":"a@example.org"}"#,
    ] {
        let error = send(to, "s", "b").unwrap_err();
        assert_eq!(error.pointer(), Some("/to"), "{to}");
    }
    let p = send(r#""first.last+tag@mail.example.org""#, "s", "b").unwrap();
    assert_eq!(smtp_of(&p).to, ["first.last+tag@mail.example.org"]);
    let p = send(r#"["a@example.org","b@example.net"]"#, "s", "b").unwrap();
    assert_eq!(smtp_of(&p).to, ["a@example.org", "b@example.net"]);
    assert!(
        String::from_utf8(smtp_of(&p).message.clone())
            .unwrap()
            .contains("To: a@example.org,\r\n b@example.net\r\n")
    );
}

#[test]
fn s50_the_body_arrives_byte_for_byte() {
    let long = "x".repeat(5000);
    for body in [
        "a line\n.\nanother\n",
        ".",
        "..\r\n.\r\n",
        "a\rb\nc\r\nd",
        "From me\nFrom you",
        "",
        "\n",
        " ",
        "trailing \t \n",
        "a=b =3D",
        "naïve café",
        "日本語のメール\n",
        "\0\u{1f}",
        long.as_str(),
        "\r\n.\r\nMAIL FROM:<x@example.net>\r\n",
    ] {
        let p = send(r#""a@example.org""#, "s", body).unwrap();
        assert_eq!(arrives(&p), body);
        let message = String::from_utf8(smtp_of(&p).message.clone()).unwrap();
        assert!(message.is_ascii() && message.ends_with("\r\n"));
        for line in message.split("\r\n") {
            assert!(line.len() <= 998 && !line.contains(['\r', '\n']), "{body:?}");
            assert_ne!(line, ".", "{body:?}");
        }
        let (_, data) = message.split_once("\r\n\r\n").unwrap();
        assert!(data.split("\r\n").all(|line| line.len() <= 76 && !line.starts_with(['.', 'F'])), "{body:?}");
    }
    assert_eq!(send(r#""a@example.org""#, "s", "b").map(|p| arrives(&p)).unwrap(), "b");
    let error = run(Template::Smtp(smtp()), r#"{"to":"a@example.org","subject":"s","body":1}"#).unwrap_err();
    assert_eq!(error.pointer(), Some("/body"));
}

#[test]
fn mail_text_shows_subject_and_body_as_they_arrive() {
    let p = send(r#""a@example.org""#, "Grüße \\ ‹x›", "one\n\u{202e}two  \rthree").unwrap();
    let text = request_text(&p);
    assert!(text.starts_with(
        "SMTP to mail.example.com:587, STARTTLS\nMAIL FROM: <ops@example.com>\nRCPT TO: <a@example.org>\n"
    ));
    assert!(text.contains("\nSubject: | Grüße \\\\ ‹x›\n"), "{text}");
    assert!(text.contains("\n| one\n| \\u{202e}two  \\u{d}three"), "{text}");
}

#[test]
fn a_forged_message_is_no_prepared_mail() {
    let p = send(r#""a@example.org""#, "s", "b").unwrap();
    let mut request = p.request().clone();
    let Some(Request::Smtp(smtp)) = &mut request.request else { panic!() };
    smtp.message =
        String::from_utf8(smtp.message.clone()).unwrap().replace("b=\r\n", "=62=\r\n").into_bytes();
    assert!(verify_prepared(&request.encode_to_vec()).is_err(), "another spelling of the same body");
    let Some(Request::Smtp(smtp)) = &mut request.request else { panic!() };
    smtp.message = b"Subject: x\r\n\r\nhello".to_vec();
    assert!(verify_prepared(&request.encode_to_vec()).is_err());
}
