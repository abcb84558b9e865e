//! Tests of whole files.

use exequatur_canonical::freeze_action;
use exequatur_prepare::{prepare, request_text};
use exequatur_proto::definition::v1::{Attestation, StatusOutcome};

use super::*;

const SMS: &str = r#"
tool: sms.send
summary: Sends one SMS.
effect: write
reversible: false
risk: medium
input_schema:
  properties:
    to: {type: string, pattern: "^\\+[0-9]{6,15}$"}
    body: {type: string, maxLength: 1600}
  required: [to, body]
http:
  method: POST
  url: https://sms.example.com
  path: /2010-04-01/Accounts/AC1/Messages.json
  form:
    To: {$arg: to}
    From: "+15005550006"
    Body: {$arg: body}
credentials:
  - name: sms-token
    as: {basic: AC1}
statuses:
  404: failed
  500-599: in_doubt
timeout: 10s
max_response: 64KiB
return: agent
idempotency: {header: idempotency-key, window: 24h}
display:
  - {$arg: to, label: Recipient}
"#;

const MAIL: &str = r#"
tool: mail.send
summary: Sends one mail.
effect: write
reversible: false
risk: high
attestation: reservation
input_schema:
  properties: {to: {type: string}, subject: {type: string}, body: {type: string}}
  required: [to, subject, body]
smtp:
  server: mail.example.com:587
  security: starttls
  from: ops@example.com
  to: {$arg: to}
  subject: {$arg: subject}
  body: {$arg: body}
credentials:
  - {name: mail-password, as: {smtp_password: ops}, attestation: reservation}
"#;

const CRM: &str = r#"
tool: crm.read
summary: Reads one customer.
effect: read
risk: low
attestation: auto
input_schema: '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}'
output_schema: {type: object, required: [id]}
http:
  method: GET
  url: http://127.0.0.1:8080
  path: /customers/{id}
  query: {verbose: true, page: {$arg: /id, $optional: true}}
  headers: {accept: application/json}
credentials:
  - {name: crm-token, as: bearer, attestation: auto}
tenant_scope: {$arg: id, pattern: "{tenant}/*"}
"#;

fn error(text: &str) -> FileError {
    read(text).expect_err(text)
}

#[test]
fn a_tool_file_becomes_a_definition() {
    let d = read(SMS).unwrap();
    assert_eq!(d.tool(), "sms.send");
    assert_eq!(d.destination(), "sms.example.com:443");
    let m = d.message();
    assert_eq!(
        m.input_schema,
        r#"{"additionalProperties":false,"properties":{"body":{"maxLength":1600,"type":"string"},"to":{"pattern":"^\\+[0-9]{6,15}$","type":"string"}},"required":["to","body"],"type":"object"}"#
    );
    assert_eq!((m.timeout_ms, m.max_response_bytes), (10_000, 65_536));
    assert_eq!(m.attestation(), Attestation::Reservation);
    assert_eq!(
        m.statuses.iter().map(|s| (s.from, s.to, s.outcome())).collect::<Vec<_>>(),
        [(404, 404, StatusOutcome::Failed), (500, 599, StatusOutcome::InDoubt)]
    );
    // The same file gives the same bytes.
    assert_eq!(read(SMS).unwrap().digest(), d.digest());
    let a = freeze_action(
        "sms.send",
        br#"{"to":"+15005550009","body":"hi & bye"}"#,
        "",
        Some(d.digest().as_bytes()),
    )
    .unwrap();
    let text = request_text(&prepare(&d, &a).unwrap());
    assert_eq!(
        text,
        "POST https://sms.example.com:443/2010-04-01/Accounts/AC1/Messages.json\n\
         content-type: application/x-www-form-urlencoded\n\
         authorization: Basic base64(AC1:‹sms-token›)\n\
         idempotency-key: ‹idempotency key›\n\
         body, 57 bytes:\n\
         | To=%2B15005550009&From=%2B15005550006&Body=hi%20%26%20bye"
    );
}

#[test]
fn exact_schema_text_and_defaults_are_kept() {
    let d = read(CRM).unwrap();
    let m = d.message();
    assert!(m.input_schema.starts_with(r#"{"type":"object","properties""#));
    assert_eq!(m.output_schema, r#"{"required":["id"],"type":"object"}"#);
    assert_eq!((m.timeout_ms, m.max_response_bytes), (30_000, 1 << 20));
    assert_eq!(d.destination(), "127.0.0.1:8080");
    assert!(read(MAIL).is_ok());
    // An inline schema may say that it takes unknown arguments.
    let open = SMS.replace("  required: [to, body]", "  required: [to, body]\n  additionalProperties: true");
    assert!(read(&open).unwrap().message().input_schema.contains(r#""additionalProperties":true"#));
}

#[test]
fn json_templates_are_written_as_they_will_be_sent() {
    let text = r#"
tool: note.add
summary: Adds a note.
effect: write
reversible: true
risk: low
input_schema: {properties: {t: {}, tag: {}}, required: [t]}
http:
  method: POST
  url: https://[2001:db8::1]:8443
  path: [v1, {$arg: t}, "a%b"]
  json:
    kind: note
    n: 1.0
    nothing: null
    text: {$arg: t}
    tags: [{$arg: tag}, x]
    maybe: {$arg: tag, $optional: true}
"#;
    let d = read(text).unwrap();
    assert_eq!(d.destination(), "[2001:db8::1]:8443");
    let a = freeze_action("note.add", br#"{"t":"q","tag":7}"#, "", Some(d.digest().as_bytes())).unwrap();
    let text = request_text(&prepare(&d, &a).unwrap());
    assert!(text.starts_with("POST https://[2001:db8::1]:8443/v1/q/a%25b\n"), "{text}");
    assert!(
        text.ends_with(r#"| {"kind":"note","n":1.0,"nothing":null,"text":"q","tags":[7,"x"],"maybe":7}"#),
        "{text}"
    );
}

/// Replaces one line's text and expects an error on that line.
fn broken(file: &str, from: &str, to: &str, message: &str) {
    assert!(file.contains(from), "{from}");
    let line = file.lines().position(|l| l.contains(from)).unwrap() + 1;
    let e = error(&file.replacen(from, to, 1));
    assert!(e.message.contains(message), "{to}: {e}");
    assert_eq!(e.line, line, "{to}: {e}");
}

#[test]
fn mistakes_are_named_with_line_and_nearest_word() {
    broken(SMS, "summary:", "sumary:", "did you mean `summary`?");
    broken(SMS, "effect: write", "effect: wirte", "did you mean `write`?");
    broken(SMS, "risk: medium", "risk: midium", "did you mean `medium`?");
    broken(SMS, "timeout: 10s", "timout: 10s", "did you mean `timeout`?");
    broken(SMS, "timeout: 10s", "timeout: 10", "a time such as");
    broken(SMS, "timeout: 10s", "timeout: 10m", "timeout_ms: must be 1 to 300000");
    broken(SMS, "max_response: 64KiB", "max_response: 64kb", "a size such as");
    broken(SMS, "method: POST", "method: post", "http.method");
    broken(SMS, "method: POST", "metod: POST", "did you mean `method`?");
    broken(
        SMS,
        "url: https://sms.example.com",
        "url: https://sms.example.com/x",
        "path and query have their own keys",
    );
    broken(
        SMS,
        "url: https://sms.example.com",
        "url: https://user@sms.example.com",
        "path and query have their own keys",
    );
    broken(SMS, "url: https://sms.example.com", "url: https://SMS.example.com", "http.host");
    broken(SMS, "path: /2010-04-01", "path: 2010-04-01", "begins with `/`");
    broken(SMS, "Messages.json", "{to}.json", "never both");
    broken(SMS, "Messages.json", "{too}", "did you mean `to`?");
    broken(SMS, "To: {$arg: to}", "To: {$arg: too}", "did you mean `to`?");
    broken(SMS, "To: {$arg: to}", "To: {$arg: to, $opt: true}", "is not a key here");
    broken(SMS, "To: {$arg: to}", "To: [a]", "must be fixed text or");
    broken(SMS, "as: {basic: AC1}", "as: {basc: AC1}", "must be `bearer`");
    broken(SMS, "404: failed", "404: fail", "did you mean `failed`?");
    broken(SMS, "404: failed", "4xx: failed", "a status is a number");
    broken(SMS, "header: idempotency-key", "header: host", "idempotency.header");
    broken(SMS, "label: Recipient", "lable: Recipient", "did you mean `label`?");
    broken(MAIL, "security: starttls", "security: startls", "did you mean `starttls`?");
    broken(MAIL, "server: mail.example.com:587", "server: mail.example.com", "must be `host:port`");
    broken(MAIL, "from: ops@example.com", "from: Ops <ops@example.com>", "smtp.from");
    broken(CRM, "as: bearer, attestation: auto", "as: bearer", "wants a person");
    broken(CRM, "pattern: \"{tenant}/*\"", "pattern: \"{tenant}*\"", "tenant_scope.pattern");
    broken(CRM, "tenant_scope: {$arg: id", "tenant_scope: {$arg: ip", "did you mean `id`?");
    assert!(error(&SMS.replace("reversible: false\n", "")).message.contains("`reversible` is missing"));
    assert!(error(&SMS.replace("http:", "htp:")).message.contains("one of `http`, `smtp` and `postgres`"));
}

/// docs/reference/tool-definition.md: each file, its arguments and the request they become.
#[test]
fn every_example_of_the_reference_page_holds() {
    let page = include_str!("../../../docs/reference/tool-definition.md");
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert_eq!(blocks.len(), 12);
    for three in blocks.chunks(3) {
        let [(_, file), (_, arguments), (_, request)] = three else { panic!() };
        let d = read(file).unwrap();
        let a =
            freeze_action(d.tool(), arguments.trim().as_bytes(), "", Some(d.digest().as_bytes())).unwrap();
        assert_eq!(request_text(&prepare(&d, &a).unwrap()), request.trim_end());
    }
}

/// The demo's tool files stand with placeholders that the demo fills in.
#[test]
fn the_tool_files_of_the_demo_are_right() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/demo/tools");
    let mut tools: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let mut text = std::fs::read_to_string(&path).unwrap();
        let values =
            [("HTTP_PORT", "8080"), ("SMTP_PORT", "2525"), ("PG_PORT", "5432"), ("SMS_ACCOUNT", "AC1")];
        for (name, value) in values {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        tools.push(read(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())).tool().to_owned());
    }
    tools.sort();
    assert_eq!(tools, ["crm.read", "db.query", "files.delete", "mail.send", "sms.send"]);
}
