//! The program as its users meet it: a process, real sockets, its own log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

struct Providers {
    child: Child,
    folder: tempfile::TempDir,
    bound: Value,
}

impl Drop for Providers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Providers {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| -> PathBuf { folder.path().join(name) };
        let accounts = json!({
            "sms": {"account": "AC1", "token": "k9$Zq/7+pLw=="},
            "crm": {"token": "crm-token"}, "files": {"token": "files-token"},
            "mail": {"user": "demo", "password": "mail-secret"},
        });
        std::fs::write(at("accounts.json"), accounts.to_string()).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_demo-providers"))
            .args([
                "--http",
                "127.0.0.1:0",
                "--smtp",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
                "--exit-with-stdin",
            ])
            .arg("--log")
            .arg(at("log.jsonl"))
            .arg("--accounts")
            .arg(at("accounts.json"))
            .arg("--ready-file")
            .arg(at("ready.json"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while !at("ready.json").exists() {
            assert!(Instant::now() < until, "did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let bound = serde_json::from_slice(&std::fs::read(at("ready.json")).unwrap()).unwrap();
        Self { child, folder, bound }
    }

    fn connect(&self, name: &str) -> TcpStream {
        let stream = TcpStream::connect(self.bound[name].as_str().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }

    fn exchange(&self, door: &str, request: &str) -> String {
        let mut stream = self.connect(door);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn order(&self, order: &Value) {
        let body = order.to_string();
        let answer = self.exchange(
            "admin",
            &format!(
                "POST /faults HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
        );
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("log.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn sms(token: &str, body: &str) -> String {
    let pair = STANDARD.encode(format!("AC1:{token}"));
    format!(
        "POST /2010-04-01/Accounts/AC1/Messages.json HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
         authorization: Basic {pair}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const CRM: &str =
    "GET /contacts/117 HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer crm-token\r\n\r\n";

#[test]
fn sms_checks_the_account_and_answers_in_twilios_shape() {
    let providers = Providers::start();
    let good = "To=%2B15550100&From=%2B15550199&Body=Shift+moved+to+09%3A00";
    let refused = providers.exchange("http", &sms("wrong", good));
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("20003"), "{refused}");
    let missing = providers.exchange("http", &sms("k9$Zq/7+pLw==", "From=1&Body=x"));
    assert!(missing.starts_with("HTTP/1.1 400") && missing.contains("21604"), "{missing}");
    let sent = providers.exchange("http", &sms("k9$Zq/7+pLw==", good));
    assert!(
        sent.starts_with("HTTP/1.1 201") && sent.contains("Shift moved to 09:00") && sent.contains("queued"),
        "{sent}"
    );

    let log = providers.log();
    let numbers: Vec<u64> = log.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(log[2]["provider"], "sms");
    assert_eq!(STANDARD.decode(log[2]["body_b64"].as_str().unwrap()).unwrap(), good.as_bytes());
    assert!(log[2]["headers"]["authorization"].as_str().unwrap().starts_with("Basic "));
}

#[test]
fn crm_and_files_ask_for_their_token() {
    let providers = Providers::start();
    assert!(providers.exchange("http", CRM).contains("Ada Example"));
    assert!(providers.exchange("http", &CRM.replace("crm-token", "other")).starts_with("HTTP/1.1 401"));
    assert!(providers.exchange("http", &CRM.replace("117", "missing-1")).starts_with("HTTP/1.1 404"));
    let delete = CRM.replace("GET /contacts/117", "DELETE /files/a%20b").replace("crm-token", "files-token");
    assert!(providers.exchange("http", &delete).contains("a b"));
}

#[test]
fn ordered_faults_happen_once_and_are_logged() {
    let providers = Providers::start();
    providers.order(&json!({"provider": "crm", "close": true}));
    assert_eq!(providers.exchange("http", CRM), "");
    assert!(providers.exchange("http", CRM).contains("Ada Example"));
    providers.order(&json!({"provider": "crm", "status": 503, "body": "busy"}));
    let busy = providers.exchange("http", CRM);
    assert!(busy.starts_with("HTTP/1.1 503") && busy.ends_with("busy"), "{busy}");
    providers.order(&json!({"provider": "*", "redirect": "http://127.0.0.1:9000/admin"}));
    let moved = providers.exchange("http", CRM);
    assert!(
        moved.starts_with("HTTP/1.1 302") && moved.contains("location: http://127.0.0.1:9000/admin"),
        "{moved}"
    );
    providers.order(&json!({"provider": "crm", "oversize": 100_000}));
    assert!(providers.exchange("http", CRM).len() > 100_000);
    assert_eq!(providers.log().len(), 5);
}

#[test]
fn credentials_are_echoed_as_ordered_and_cut_into_chunks() {
    let providers = Providers::start();
    let secret = "k9$Zq/7+pLw==";
    providers.order(&json!({"provider": "sms", "status": 401, "echo":
        ["plain", "base64", "base64_shift1", "base64url", "hex", "percent", "json", "header"]}));
    let echoed = providers.exchange("http", &sms(secret, "To=1"));
    assert!(echoed.starts_with("HTTP/1.1 401"), "{echoed}");
    for form in [
        secret.to_owned(),
        STANDARD.encode(secret),
        "k9%24Zq%2F7%2BpLw%3D%3D".to_owned(),
        STANDARD.encode(format!("AC1:{secret}")),
    ] {
        assert!(echoed.contains(&form), "{form} is missing in {echoed}");
    }
    providers.order(&json!({"provider": "sms", "body": secret, "chunks": [4, 2]}));
    let cut = providers.exchange("http", &sms(secret, "To=1"));
    assert!(cut.contains("4\r\nk9$Z\r\n2\r\nq/\r\n7\r\n7+pLw==\r\n0"), "{cut}");
    providers.order(&json!({"provider": "sms", "body": "abc", "byte_by_byte": true}));
    let cut = providers.exchange("http", &sms(secret, "To=1"));
    assert!(cut.contains("1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0"), "{cut}");
}

struct Mail {
    stream: BufReader<TcpStream>,
}

impl Mail {
    fn say(&mut self, text: &str) -> String {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        self.hear()
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.stream.read_line(&mut line).unwrap() > 0 {
            let last = line.lines().last().unwrap();
            if last.as_bytes().get(3) != Some(&b'-') {
                break;
            }
        }
        line
    }
}

#[test]
fn mail_needs_a_login_and_keeps_the_body_byte_for_byte() {
    let providers = Providers::start();
    let mut mail = Mail { stream: BufReader::new(providers.connect("smtp")) };
    assert!(mail.hear().starts_with("220"));
    assert!(mail.say("EHLO me\r\n").contains("AUTH PLAIN LOGIN"));
    assert!(mail.say("MAIL FROM:<a@example.org>\r\n").starts_with("530"));
    let plain = |password: &str| STANDARD.encode(format!("\0demo\0{password}"));
    assert!(mail.say(&format!("AUTH PLAIN {}\r\n", plain("wrong"))).starts_with("535"));
    assert!(mail.say("AUTH LOGIN\r\n").starts_with("334"));
    assert!(mail.say(&format!("{}\r\n", STANDARD.encode("demo"))).starts_with("334"));
    assert!(mail.say(&format!("{}\r\n", STANDARD.encode("mail-secret"))).starts_with("235"));
    assert!(mail.say(&format!("AUTH PLAIN {}\r\n", plain("mail-secret"))).starts_with("235"));
    assert!(mail.say("MAIL FROM:<a@example.org> BODY=8BITMIME\r\n").starts_with("250"));
    assert!(mail.say("RCPT TO:<b@example.net>\r\n").starts_with("250"));
    assert!(mail.say("DATA\r\n").starts_with("354"));
    assert!(mail.say("subject: x\r\n\r\n..\r\n..hidden\r\nend\nbare\r\n.\r\n").starts_with("250"));
    assert!(mail.say("QUIT\r\n").starts_with("221"));
    let log = providers.log();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["to"], json!(["b@example.net"]));
    let data = STANDARD.decode(log[0]["data_b64"].as_str().unwrap()).unwrap();
    assert_eq!(data, b"subject: x\r\n\r\n.\r\n.hidden\r\nend\nbare\r\n");
}

#[test]
fn mail_faults_happen_at_their_step() {
    let providers = Providers::start();
    providers.order(&json!({"provider": "mail", "at": "rcpt", "reply": "550 5.1.1 no such user"}));
    let login = format!("AUTH PLAIN {}\r\n", STANDARD.encode("\0demo\0mail-secret"));
    let open = || {
        let mut mail = Mail { stream: BufReader::new(providers.connect("smtp")) };
        mail.hear();
        mail.say("EHLO me\r\n");
        mail.say(&login);
        mail.say("MAIL FROM:<a@example.org>\r\n");
        mail
    };
    assert!(open().say("RCPT TO:<b@example.net>\r\n").starts_with("550"));
    providers.order(&json!({"provider": "mail", "at": "dot", "close": true}));
    let mut mail = open();
    assert!(mail.say("RCPT TO:<b@example.net>\r\n").starts_with("250"));
    assert!(mail.say("DATA\r\n").starts_with("354"));
    assert_eq!(mail.say("x\r\n.\r\n"), "");
    assert_eq!(providers.log().len(), 1);
}

#[test]
fn it_ends_with_its_parents_pipe() {
    let mut providers = Providers::start();
    drop(providers.child.stdin.take());
    assert!(providers.child.wait().unwrap().success());
}
