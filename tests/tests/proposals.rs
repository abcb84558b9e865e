//! What agents may and may not propose: attack rows S11–S20, S22–S25, S27–S32, S49, S50, S52 as far as
//! a proposal reaches, each with its harmless counter-case, through the CLI against a real plane.
#![allow(clippy::type_complexity, reason = "a table of cases is clearer than a named type for it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use exequatur_testkit::{Output, Plane};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};

static KEY: AtomicU32 = AtomicU32::new(0);

fn key() -> String {
    format!("key-{}", KEY.fetch_add(1, Ordering::SeqCst))
}

struct Agent<'a> {
    plane: &'a Plane,
    token: PathBuf,
}

impl Agent<'_> {
    fn propose(&self, tool: &str, arguments: &str) -> Output {
        self.plan(&json!([{"tool": tool, "arguments_json": arguments, "rationale": "because"}]))
    }

    fn plan(&self, actions: &Json) -> Output {
        let plan = json!({"context": "test", "idempotency_key": key(), "actions": actions});
        self.plane.propose(&self.token, &plan, &[])
    }
}

#[test]
fn proposals() {
    let plane = Plane::start();
    let (_, token) = plane.run_token(&["crm.*", "sms.send", "mail.send", "files.delete"]);
    let agent = Agent { plane: &plane, token };
    freezing(&agent);
    names_and_schemas(&agent);
    limits(&agent);
    idempotency(&agent);
    mail_headers(&agent);
    display(&agent);
    rules(&agent);
    tokens(&agent);
    runs(&plane);
}

/// S14–S20: what has no exact canonical form makes no plan.
fn freezing(agent: &Agent<'_>) {
    for (arguments, code) in [
        (r#"{"id":"1","id":"2"}"#, "DUPLICATE_NAME"),
        (r#"{"id":[[[[{"a":1,"a":2}]]]]}"#, "DUPLICATE_NAME"),
        (r#"{"id":18446744073709551616}"#, "NUMBER_OUT_OF_RANGE"),
        (r#"{"id":1e400}"#, "NUMBER_OUT_OF_RANGE"),
        (r#"{"id":-1e400}"#, "NUMBER_OUT_OF_RANGE"),
        (r#"{"id":1e-400}"#, "NUMBER_NOT_EXACT"),
        (r#"{"id":-0}"#, "NEGATIVE_ZERO"),
        (r#"{"id":"\ud83d"}"#, "LONE_SURROGATE"),
        ("[1]", "NOT_AN_OBJECT"),
        ("{", "INVALID_JSON"),
    ] {
        let refused = agent.propose("crm.read", arguments);
        assert_eq!(refused.reason(), "NOT_FREEZABLE", "{arguments}");
        assert_eq!(refused.code, 65, "{arguments}");
        assert_eq!(refused.json["error"]["metadata"]["code"], code, "{arguments}");
    }
    let deep = format!("{{\"id\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
    assert_eq!(agent.propose("crm.read", &deep).json["error"]["metadata"]["code"], "TOO_DEEP");
    assert_eq!(agent.propose("crm.read", r#"{"id":"117"}"#).code, 4, "the harmless one is taken");
}

/// S23–S25: unknown names are refused and the nearest is told; arguments that the schema does not know, too.
fn names_and_schemas(agent: &Agent<'_>) {
    for tool in ["Sms.Send", "sms.send.", "sms-send", "sms.sendx"] {
        let refused = agent.propose(tool, r#"{"to":"+15550100","body":"x"}"#);
        assert_eq!(refused.reason(), "UNKNOWN_TOOL", "{tool}");
        assert_eq!(refused.json["error"]["metadata"]["nearest"], "sms.send", "{tool}");
        assert_eq!(refused.code, 65);
    }
    assert_ne!(agent.propose("sms.send ", r#"{"to":"+15550100","body":"x"}"#).code, 0);
    for (arguments, pointer) in
        [(r#"{"ID":"1"}"#, ""), (r"{}", ""), (r#"{"id":["1"]}"#, "/id"), (r#"{"id":null}"#, "/id")]
    {
        let refused = agent.propose("crm.read", arguments);
        assert_eq!(refused.reason(), "SCHEMA_VIOLATION", "{arguments}");
        assert_eq!(refused.json["error"]["metadata"]["pointer"], pointer, "{arguments}");
    }
    // The escaped spelling is the same name, and denied by its rule.
    let denied =
        agent.plan(&json!([{"tool": "files.delete", "arguments": {"path": "/a"}, "rationale": "r"}]));
    assert_eq!(denied.code, 3);
    assert_eq!(denied.json["actions"][0]["state"], "DENIED");
    assert_eq!(denied.json["actions"][0]["rule"], "nothing-is-deleted");
    assert_eq!(denied.json["actions"][0]["reason"], "DENIED_BY_RULE");
}

fn limits(agent: &Agent<'_>) {
    assert_eq!(agent.plan(&json!([])).code, 65);
    let many: Vec<Json> = (0..257)
        .map(|n| json!({"tool": "crm.read", "arguments": {"id": n.to_string()}, "rationale": ""}))
        .collect();
    assert_ne!(agent.plan(&json!(many)).code, 0);
    let long = "r".repeat(4097);
    let refused = agent.plan(&json!([{"tool": "crm.read", "arguments": {"id": "1"}, "rationale": long}]));
    assert_eq!(refused.reason(), "LIMIT_EXCEEDED");
}

/// S49: one key, one body.
fn idempotency(agent: &Agent<'_>) {
    let of = |body: &str| {
        json!({"context": "c", "idempotency_key": "run-7/step-2", "actions":
            [{"tool": "sms.send", "arguments": {"to": "+15550101", "body": body}, "rationale": "r"}]})
    };
    let first = agent.plane.propose(&agent.token, &of("A"), &[]).json;
    let again = agent.plane.propose(&agent.token, &of("A"), &[]).json;
    assert_eq!(first["plan"], again["plan"]);
    assert_eq!(agent.plane.propose(&agent.token, &of("B"), &[]).reason(), "IDEMPOTENCY_MISMATCH");
    // Another run's key of the same name is another key, and shows nothing of the first answer.
    let (_, other) = agent.plane.run_token(&["sms.send"]);
    let theirs = agent.plane.propose(&other, &of("B"), &[]).json;
    assert_ne!(theirs["plan"], first["plan"]);
    // The same effects under another key are the same open plan.
    let mut renamed = of("A");
    renamed["idempotency_key"] = json!("another");
    assert_eq!(agent.plane.propose(&agent.token, &renamed, &[]).json["duplicate_of"], first["plan"]);
}

/// S50: nothing breaks out of a mail's header.
fn mail_headers(agent: &Agent<'_>) {
    let mail = |to: &str, subject: &str| {
        agent.plan(&json!([{"tool": "mail.send", "rationale": "r",
            "arguments": {"to": to, "subject": subject, "body": "hello"}}]))
    };
    for (to, subject) in [
        ("a@example.org", "Weekly\r\nBcc: x@example.net"),
        ("a@example.org", "a\nb"),
        ("a@example.org,b@example.net", "s"),
        ("Name <a@example.org>", "s"),
        ("a@example.org\r\n", "s"),
    ] {
        let refused = mail(to, subject);
        assert!(
            ["VALUE_DOES_NOT_FIT", "SCHEMA_VIOLATION"].contains(&refused.reason().as_str()),
            "{to} {subject}"
        );
    }
    assert_eq!(mail("a@example.org", "Weekly").code, 4);
}

/// S11–S13: what hides is shown as an escape, long text is shown whole.
fn display(agent: &Agent<'_>) {
    let plane = agent.plane;
    let body = "ops\u{202e}gro.elpmaxe@team \u{1b}[2J";
    let held = agent.plan(&json!([{"tool": "sms.send", "arguments": {"to": "+15550102", "body": body}, "rationale": "r\u{9b}31m"}]));
    let approval = plane.approval_of(held.json["plan"].as_str().unwrap());
    let shown = plane.cli(&["inbox", "show", &approval]);
    for raw in ['\u{202e}', '\u{1b}', '\u{9b}'] {
        assert!(!shown.stdout.contains(raw) && !shown.json.to_string().contains(raw), "{raw:?} is raw");
    }
    let text = shown.json.to_string();
    assert!(text.contains("u{202e}") && text.contains("BIDI_CONTROL"), "{text}");

    let script = format!("{}{}", "a".repeat(47_960), "rm the whole archive without asking now!");
    let long = agent.plan(
        &json!([{"tool": "sms.send", "arguments": {"to": "+15550103", "body": script}, "rationale": "r"}]),
    );
    if long.code == 65 {
        assert_eq!(long.reason(), "TOO_LARGE_TO_SHOW");
    } else {
        let approval = plane.approval_of(long.json["plan"].as_str().unwrap());
        assert!(
            plane
                .cli(&["inbox", "show", &approval])
                .stdout
                .contains("rm the whole archive without asking now!")
        );
    }
    let longer = "a".repeat(70_000);
    let refused = agent.plan(
        &json!([{"tool": "sms.send", "arguments": {"to": "+15550104", "body": longer}, "rationale": "r"}]),
    );
    assert_eq!(refused.reason(), "TOO_LARGE_TO_SHOW");
}

/// S27, S28: a bad rule set is refused whole and the last good one stays.
fn rules(agent: &Agent<'_>) {
    let plane = agent.plane;
    let file = plane.folder().join("rules.yaml");
    let apply = |text: &str| {
        std::fs::write(&file, text).unwrap();
        plane.cli(&["policy", "apply", file.to_str().unwrap()])
    };
    for bad in [
        "mode: Observ\nrules:\n  - {id: a, tool: '*', action: deny, reason: r}\n",
        "rules: []\n",
        "rules:\n  - {id: a, tool: '*', action: auto-approve, reason: r}\n",
        "rules:\n  - {id: a, action: deny, reason: r}\n",
        "rules:\n  - {id: a, tool: crm.read, action: auto_approve, reason: r}\n  - {id: b, tool: x, acton: deny}\n",
    ] {
        assert_eq!(apply(bad).code, 65, "{bad}");
    }
    // Still the demo's rules.
    assert_eq!(agent.propose("crm.read", r#"{"id":"118"}"#).code, 4);
    let good = std::fs::read_to_string(plane.data().join("tenant/rules.yaml")).unwrap();
    assert_eq!(apply(&good).code, 0);
}

/// S29, S30: a claim that cannot be read is not a claim that is absent.
fn tokens(agent: &Agent<'_>) {
    let plane = agent.plane;
    let keys = plane.data().join("pki/zones/governance/keys");
    let real = std::fs::read_to_string(&agent.token).unwrap();
    let part = |n: usize| {
        use base64::Engine as _;
        let raw = real.split('.').nth(n).unwrap();
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(raw).unwrap();
        serde_json::from_slice::<Json>(&bytes).unwrap()
    };
    let (header, claims) = (part(0), part(1));
    let signing = exequatur_statement::SigningKey::load(&keys.join("run-token.key")).unwrap();
    let other = exequatur_statement::SigningKey::load(&keys.join("warrant.key")).unwrap();
    let sign = |claims: &Json, typ: &str, key: &exequatur_statement::SigningKey| {
        let mut head = Header::new(Algorithm::EdDSA);
        head.typ = Some(typ.to_owned());
        head.kid = Some(header["kid"].as_str().unwrap().to_owned());
        jsonwebtoken::encode(&head, claims, &EncodingKey::from_ed_der(&key.pkcs8().unwrap())).unwrap()
    };
    let try_token = |token: &str| {
        let file = plane.folder().join("forged");
        std::fs::write(&file, token).unwrap();
        let plan = json!({"context": "", "idempotency_key": key(), "actions":
            [{"tool": "crm.read", "arguments": {"id": "1"}, "rationale": ""}]});
        plane.propose(Path::new(&file), &plan, &[]).code
    };
    let with = |change: &dyn Fn(&mut Json)| {
        let mut changed = claims.clone();
        change(&mut changed);
        try_token(&sign(&changed, "at+jwt", &signing))
    };
    assert_eq!(with(&|_| {}), 4, "our own re-signed token is taken");
    let bad: [(&str, &dyn Fn(&mut Json)); 13] = [
        ("exp missing", &|c| drop(c.as_object_mut().unwrap().remove("exp"))),
        ("exp as text", &|c| c["exp"] = json!("4102444800")),
        ("exp with a fraction", &|c| c["exp"] = json!(4_102_444_800.5)),
        ("exp over", &|c| c["exp"] = json!(1_600_000_000)),
        ("nbf as text", &|c| c["nbf"] = json!("x")),
        ("nbf ahead", &|c| c["nbf"] = json!(4_102_444_800_i64)),
        ("aud of another", &|c| c["aud"] = json!("spiffe://dev.exequatur/zone/connector")),
        ("aud with a wildcard", &|c| c["aud"] = json!([c["aud"], "*"])),
        ("aud missing", &|c| drop(c.as_object_mut().unwrap().remove("aud"))),
        ("iss of another", &|c| c["iss"] = json!("spiffe://dev.exequatur/zone/approval")),
        ("wider scope", &|c| c["scope"] = json!("crm.* files.*")),
        ("another tenant", &|c| c["tenant"] = json!("t-blue")),
        ("another run", &|c| c["run"] = json!("r1/../r2")),
    ];
    for (what, change) in bad {
        assert_eq!(with(change), 5, "{what}");
    }
    assert_eq!(try_token(&sign(&claims, "JWT", &signing)), 5, "another type of token");
    assert_eq!(try_token(&sign(&claims, "at+jwt", &other)), 5, "signed by the warrant key");
    let unsigned = format!("{}.", real.rsplit_once('.').unwrap().0);
    assert_eq!(try_token(&unsigned), 5, "no signature");
}

/// S31 (without depth), S32: a child is a subset, and what is revoked is revoked at once.
fn runs(plane: &Plane) {
    let (run, parent) = plane.run_token(&["crm.read"]);
    let child = |scopes: &[&str], ttl: &str| {
        let mut arguments = vec!["run", "start", "--agent", "child", "--ttl", ttl, "--parent-token-file"];
        arguments.push(parent.to_str().unwrap());
        for scope in scopes {
            arguments.extend(["--scope", scope]);
        }
        plane.cli(&arguments)
    };
    assert_eq!(child(&["crm.read", "sms.send"], "60s").reason(), "NOT_A_SUBSET");
    assert_eq!(child(&["crm.*"], "60s").reason(), "NOT_A_SUBSET");
    assert_eq!(child(&["crm.read"], "20d").reason(), "NOT_A_SUBSET");
    let born = child(&["crm.read"], "60s").ok();
    let file = plane.folder().join("child-token");
    std::fs::write(&file, born["token"].as_str().unwrap()).unwrap();
    let read = |token: &Path| {
        let plan = json!({"context": "", "idempotency_key": key(), "actions":
            [{"tool": "crm.read", "arguments": {"id": "9"}, "rationale": ""}]});
        plane.propose(token, &plan, &[]).code
    };
    assert_eq!(read(&file), 4);
    assert_eq!(plane.cli(&["run", "revoke", &run]).code, 0);
    assert_eq!(read(&parent), 5, "revoked, token or not");
    assert_eq!(read(&file), 5, "the child falls with its parent");

    for (agent, scope) in
        [("bot,root", "crm.read"), ("bot ", "crm.read"), ("bot", "crm.read sms.send"), ("bot", "*")]
    {
        let refused = plane.cli(&["run", "start", "--tenant", "demo", "--agent", agent, "--scope", scope]);
        assert_ne!(refused.code, 0, "{agent:?} {scope:?}");
    }
    let foreign =
        plane.cli(&["run", "start", "--tenant", "t-green\nt-blue", "--agent", "bot", "--scope", "crm.read"]);
    assert_ne!(foreign.code, 0);
}
