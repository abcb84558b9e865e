//! A mail provider: RFC 5321 by hand, AUTH PLAIN and LOGIN required, every message logged before its 250.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::World;
use crate::fault::{Behaviour, SmtpStep};

const LINE_LIMIT: u64 = 64 * 1024;
const DATA_LIMIT: usize = 16 * 1024 * 1024;
const PROVIDER: &str = "mail";

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, world: Arc<World>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let (world, tls) = (Arc::clone(&world), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => {
                    let _ = Session::new(stream, world).run().await;
                }
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        let _ = Session::new(stream, world).run().await;
                    }
                }
            }
        });
    }
}

struct Session<S> {
    stream: BufReader<S>,
    world: Arc<World>,
    behaviour: Option<Behaviour>,
    authenticated: bool,
    from: Option<String>,
    to: Vec<String>,
}

/// Whether the conversation goes on.
type Step = std::io::Result<bool>;

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    fn new(stream: S, world: Arc<World>) -> Self {
        let behaviour = world.faults.take(PROVIDER);
        Self {
            stream: BufReader::new(stream),
            world,
            behaviour,
            authenticated: false,
            from: None,
            to: Vec::new(),
        }
    }

    async fn run(mut self) -> std::io::Result<()> {
        if !self.ordered(SmtpStep::Banner).await? {
            return Ok(());
        }
        self.reply("220 mail.example ESMTP ready").await?;
        while let Some(line) = self.line().await? {
            if !self.command(&line).await? {
                break;
            }
        }
        Ok(())
    }

    async fn command(&mut self, line: &str) -> Step {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" => {
                if !self.ordered(SmtpStep::Ehlo).await? {
                    return Ok(false);
                }
                self.reply("250-mail.example\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-AUTH PLAIN LOGIN\r\n250 SIZE 16777216").await
            }
            "HELO" => self.reply("250 mail.example").await,
            "AUTH" => self.auth(rest).await,
            "MAIL" => self.mail(rest).await,
            "RCPT" => self.rcpt(rest).await,
            "DATA" => self.data().await,
            "RSET" => {
                self.from = None;
                self.to.clear();
                self.reply("250 2.0.0 ok").await
            }
            "NOOP" => self.reply("250 2.0.0 ok").await,
            "QUIT" => {
                self.reply("221 2.0.0 bye").await?;
                Ok(false)
            }
            _ => self.reply("502 5.5.1 command not implemented").await,
        }
    }

    async fn auth(&mut self, rest: &str) -> Step {
        if !self.ordered(SmtpStep::Auth).await? {
            return Ok(false);
        }
        let (mechanism, initial) = rest.split_once(' ').unwrap_or((rest, ""));
        let pair = match mechanism.to_ascii_uppercase().as_str() {
            "PLAIN" => {
                let response = if initial.is_empty() { self.ask("334 ").await? } else { initial.to_owned() };
                let plain = decode(&response);
                let mut parts = plain.split('\0').skip(1);
                (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default().to_owned())
            }
            "LOGIN" => {
                let user =
                    if initial.is_empty() { self.ask("334 VXNlcm5hbWU6").await? } else { initial.to_owned() };
                let password = self.ask("334 UGFzc3dvcmQ6").await?;
                (decode(&user), decode(&password))
            }
            _ => return self.reply("504 5.5.4 mechanism not supported").await,
        };
        let account = &self.world.accounts.mail;
        self.authenticated = pair.0 == account.user && pair.1 == account.password;
        if self.authenticated {
            self.reply("235 2.7.0 authenticated").await
        } else {
            self.reply("535 5.7.8 authentication failed").await
        }
    }

    async fn mail(&mut self, rest: &str) -> Step {
        if !self.ordered(SmtpStep::Mail).await? {
            return Ok(false);
        }
        if !self.authenticated {
            return self.reply("530 5.7.0 authentication required").await;
        }
        match address(rest, "FROM:") {
            Some(from) => {
                self.from = Some(from);
                self.to.clear();
                self.reply("250 2.1.0 ok").await
            }
            None => self.reply("501 5.5.4 MAIL FROM:<address>").await,
        }
    }

    async fn rcpt(&mut self, rest: &str) -> Step {
        if !self.ordered(SmtpStep::Rcpt).await? {
            return Ok(false);
        }
        if self.from.is_none() {
            return self.reply("503 5.5.1 MAIL first").await;
        }
        match address(rest, "TO:") {
            Some(to) if !to.is_empty() => {
                self.to.push(to);
                self.reply("250 2.1.5 ok").await
            }
            _ => self.reply("501 5.5.4 RCPT TO:<address>").await,
        }
    }

    async fn data(&mut self) -> Step {
        if !self.ordered(SmtpStep::Data).await? {
            return Ok(false);
        }
        let Some(from) = self.from.take() else {
            return self.reply("503 5.5.1 MAIL first").await;
        };
        if self.to.is_empty() {
            return self.reply("503 5.5.1 RCPT first").await;
        }
        self.reply("354 end with <CRLF>.<CRLF>").await?;
        let Some(message) = self.message().await? else {
            return Ok(false);
        };
        let to = std::mem::take(&mut self.to);
        let number = self.world.journal.mail(PROVIDER, &from, &to, &message)?;
        if !self.ordered(SmtpStep::Dot).await? {
            return Ok(false);
        }
        self.reply(&format!("250 2.0.0 queued as {number}")).await
    }

    /// The message up to the final dot, dots unstuffed; nothing if the client went away before it.
    async fn message(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut message = Vec::new();
        loop {
            let mut line = Vec::new();
            // Only CRLF ends a line here; a bare LF is data.
            loop {
                let read = (&mut self.stream).take(DATA_LIMIT as u64).read_until(b'\n', &mut line).await?;
                if read == 0 || message.len().saturating_add(line.len()) > DATA_LIMIT {
                    return Ok(None);
                }
                if line.ends_with(b"\r\n") {
                    break;
                }
            }
            if line == b".\r\n" {
                return Ok(Some(message));
            }
            message.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        }
    }

    /// Does what was ordered for this step; false ends the conversation.
    async fn ordered(&mut self, step: SmtpStep) -> Step {
        let Some(behaviour) = self.behaviour.take_if(|b| b.at == Some(step)) else {
            return Ok(true);
        };
        if let Some(delay) = behaviour.delay_ms {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        if behaviour.hang {
            std::future::pending::<()>().await;
        }
        if let Some(reply) = &behaviour.reply {
            self.reply(reply).await?;
            // A refusal ends this step but not the conversation: the client says QUIT.
            while let Some(line) = self.line().await? {
                if line.eq_ignore_ascii_case("QUIT") {
                    self.reply("221 2.0.0 bye").await?;
                    break;
                }
                self.reply("503 5.5.1 bad sequence").await?;
            }
            return Ok(false);
        }
        Ok(!behaviour.close)
    }

    async fn ask(&mut self, challenge: &str) -> std::io::Result<String> {
        self.reply(challenge).await?;
        Ok(self.line().await?.unwrap_or_default())
    }

    async fn line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(LINE_LIMIT).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()))
    }

    async fn reply(&mut self, text: &str) -> Step {
        self.stream.write_all(format!("{text}\r\n").as_bytes()).await?;
        self.stream.flush().await?;
        Ok(true)
    }
}

fn address(rest: &str, keyword: &str) -> Option<String> {
    let head = rest.get(..keyword.len())?;
    if !head.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let (inside, _) = rest.get(keyword.len()..)?.trim_start().strip_prefix('<')?.split_once('>')?;
    Some(inside.to_owned())
}

fn decode(text: &str) -> String {
    STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
