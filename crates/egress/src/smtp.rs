//! One SMTP conversation over one fresh connection (RFC 5321), which knows to the byte whether the
//! final dot was sent. Never logs a command: AUTH carries a secret.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::definition::v1::{SmtpRequest, SmtpSecurity};
use exequatur_secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zeroize::Zeroizing;

use crate::Sent;
use crate::link::{Destination, Link, Security};

/// Octets of one reply line (RFC 5321 section 4.5.3.1.5), with room for long ones.
const LINE: usize = 2048;
/// Lines of one reply.
const LINES: usize = 64;
const HELLO: &str = "exequatur.invalid";

/// The provider's word on a message.
#[derive(Debug)]
pub struct Answer {
    /// Reply code to the final dot.
    pub code: u16,
    /// Text of the reply; not yet redacted.
    pub text: String,
}

/// A conversation that has reached 354: the message can be sent, and nothing of it was.
pub struct Open {
    link: Link,
    message: Vec<u8>,
}

/// Where a prepared mail goes.
///
/// # Errors
/// `DESTINATION_FORBIDDEN` for an unknown security or a port out of range.
pub fn destination(request: &SmtpRequest) -> Result<Destination, Fault> {
    let security = match request.security() {
        SmtpSecurity::Tls => Security::Tls,
        SmtpSecurity::Starttls => Security::StartTls,
        SmtpSecurity::None => Security::Plain,
        SmtpSecurity::Unspecified => {
            return Err(Fault::new(Reason::DestinationForbidden, "the transport security is unknown"));
        }
    };
    let port = u16::try_from(request.port)
        .map_err(|_| Fault::new(Reason::DestinationForbidden, "the port is out of range"))?;
    Ok(Destination { host: request.host.clone(), port, security })
}

/// Speaks up to the 354: greeting, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA. `extra` are further
/// header lines, each ended by CRLF.
///
/// # Errors
/// `PROVIDER_REFUSED` for a refusal that no retry mends, `DESTINATION_UNREACHABLE` else. No byte of
/// the message was sent either way.
pub async fn open(
    link: Link,
    request: &SmtpRequest,
    login: Option<(&str, &Secret)>,
    extra: &str,
    limit: Duration,
) -> Result<Open, Fault> {
    let conversation = async {
        let mut talk = Talk { link };
        talk.expect(220).await?;
        let mut offers = talk.hello().await?;
        if talk.link.destination.security == Security::StartTls {
            if !offers.iter().any(|o| o.eq_ignore_ascii_case("STARTTLS")) {
                return Err(refused(0, "the server does not offer STARTTLS"));
            }
            talk.command("STARTTLS", 220).await?;
            talk = Talk { link: talk.link.upgrade().await? };
            offers = talk.hello().await?;
        }
        if let Some((user, secret)) = login {
            talk.login(user, secret, &offers).await?;
        }
        talk.command(&format!("MAIL FROM:<{}>", request.from), 250).await?;
        for to in &request.to {
            talk.command(&format!("RCPT TO:<{to}>"), 250).await?;
        }
        talk.command("DATA", 354).await?;
        Ok(talk.link)
    };
    let link = tokio::time::timeout(limit, conversation)
        .await
        .map_err(|_| unreachable("the server was silent before the message"))??;
    let message = [extra.as_bytes(), &request.message].concat();
    Ok(Open { link, message: stuffed(&message) })
}

impl Open {
    /// Sends the message and the final dot, and waits for the answer.
    pub async fn send(self, limit: Duration) -> Sent<Answer> {
        let written = self.link.written.clone();
        // Without the final dot a server must not deliver (RFC 5321 section 4.1.1.4).
        let unclear = |why: &str| {
            if written.ends_with(b"\r\n.\r\n") {
                Sent::Unclear(why.to_owned())
            } else {
                Sent::NotSent(why.to_owned())
            }
        };
        let mut talk = Talk { link: self.link };
        let exchange = async {
            talk.write(&self.message).await?;
            talk.reply().await
        };
        match tokio::time::timeout(limit, exchange).await {
            Err(_) => unclear("no answer to the message in time"),
            Ok(Err(_)) => unclear("the connection closed before an answer to the message"),
            Ok(Ok(reply)) => {
                drop(tokio::time::timeout(Duration::from_secs(1), talk.write(b"QUIT\r\n")).await);
                Sent::Answered(Answer { code: reply.code, text: reply.lines.join(" ") })
            }
        }
    }
}

/// Dots at line starts doubled (RFC 5321 section 4.5.2), the end marked.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 16);
    let mut start = true;
    for byte in message {
        if start && *byte == b'.' {
            out.push(b'.');
        }
        out.push(*byte);
        start = *byte == b'\n';
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    out
}

struct Reply {
    code: u16,
    lines: Vec<String>,
}

struct Talk {
    link: Link,
}

impl Talk {
    async fn hello(&mut self) -> Result<Vec<String>, Fault> {
        let reply = self.command(&format!("EHLO {HELLO}"), 250).await?;
        Ok(reply.lines.into_iter().skip(1).collect())
    }

    async fn login(&mut self, user: &str, secret: &Secret, offers: &[String]) -> Result<(), Fault> {
        let offered = offers
            .iter()
            .find_map(|o| {
                o.get(..5).filter(|head| head.eq_ignore_ascii_case("AUTH ")).and_then(|_| o.get(5..))
            })
            .unwrap_or_default();
        let has = |mechanism: &str| offered.split(' ').any(|m| m.eq_ignore_ascii_case(mechanism));
        if has("PLAIN") {
            let pair = Zeroizing::new([b"\0", user.as_bytes(), b"\0", secret.expose()].concat());
            let line = Zeroizing::new(format!("AUTH PLAIN {}", STANDARD.encode(&*pair)));
            self.command(&line, 235).await.map(drop)
        } else if has("LOGIN") {
            self.command("AUTH LOGIN", 334).await?;
            self.command(&STANDARD.encode(user), 334).await?;
            let line = Zeroizing::new(STANDARD.encode(secret.expose()));
            self.command(&line, 235).await.map(drop)
        } else {
            Err(refused(0, "the server offers neither AUTH PLAIN nor AUTH LOGIN"))
        }
    }

    async fn command(&mut self, line: &str, code: u16) -> Result<Reply, Fault> {
        let bytes = Zeroizing::new([line.as_bytes(), b"\r\n"].concat());
        self.write(&bytes).await?;
        self.expect(code).await
    }

    async fn expect(&mut self, code: u16) -> Result<Reply, Fault> {
        let reply = self.reply().await?;
        if reply.code == code || (code == 250 && reply.code == 251) {
            Ok(reply)
        } else if (400..500).contains(&reply.code) {
            // The text is the server's and may echo what it was sent.
            Err(unreachable("the server asks to come back later").with("code", reply.code.to_string()))
        } else {
            Err(refused(reply.code, "the server refused before the message"))
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let io = async {
            self.link.stream.write_all(bytes).await?;
            self.link.stream.flush().await
        };
        io.await.map_err(|_| unreachable("the connection closed"))
    }

    async fn reply(&mut self) -> Result<Reply, Fault> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await?;
            let malformed = || unreachable("the server does not speak SMTP");
            let code = line.get(..3).and_then(|c| c.parse::<u16>().ok()).ok_or_else(malformed)?;
            let more = match line.as_bytes().get(3) {
                Some(b'-') => true,
                Some(b' ') | None => false,
                Some(_) => return Err(malformed()),
            };
            lines.push(line.get(4..).unwrap_or_default().to_owned());
            if !more {
                return Ok(Reply { code, lines });
            }
            if lines.len() >= LINES {
                return Err(malformed());
            }
        }
    }

    /// Byte by byte: nothing may be read past a reply before STARTTLS takes over.
    async fn line(&mut self) -> Result<String, Fault> {
        let mut line = Vec::new();
        loop {
            let byte = self.link.stream.read_u8().await.map_err(|_| unreachable("the connection closed"))?;
            match byte {
                b'\n' => break,
                b'\r' => {}
                other if line.len() < LINE => line.push(other),
                _ => return Err(unreachable("the server does not speak SMTP")),
            }
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

fn unreachable(why: &str) -> Fault {
    Fault::new(Reason::DestinationUnreachable, format!("{why}; nothing of the message was sent"))
        .retryable(true)
}

fn refused(code: u16, why: &str) -> Fault {
    Fault::new(Reason::ProviderRefused, format!("{why}; nothing of the message was sent"))
        .with("code", code.to_string())
}
