//! What a definition may be, rows S21, S22, S33 and S34 at this level.

use exequatur_proto::definition::v1::{
    BasicInjection, DisplayField, HeaderInjection, Idempotency, JsonList, JsonNode, QueryInjection,
    SmtpPasswordInjection, StatusOutcome, StatusRule, credential_use::Injection, http_template::Body,
    json_node::Node, tool_definition::Template,
};

use super::*;

/// Changes a good definition and expects a refusal about `path`.
fn refused(path: &str, change: impl FnOnce(&mut ToolDefinition, &mut HttpTemplate)) {
    let mut t = http();
    let mut d = around(Template::Http(http()));
    change(&mut d, &mut t);
    if matches!(d.template, Some(Template::Http(_))) {
        d.template = Some(Template::Http(t));
    }
    match verify(&d) {
        Err(PrepareError::Invalid { path: found, .. }) => {
            assert!(found.starts_with(path), "expected {path}, found {found}");
        }
        other => panic!("{path}: {other:?}"),
    }
}

fn accepted(change: impl FnOnce(&mut ToolDefinition, &mut HttpTemplate)) {
    let mut t = http();
    let mut d = around(Template::Http(http()));
    change(&mut d, &mut t);
    d.template = Some(Template::Http(t));
    verify(&d).unwrap();
}

#[test]
fn s21_s22_only_the_one_encoding_is_taken() {
    let good = around(Template::Http(http())).encode_to_vec();
    let d = Definition::verify(&good).unwrap();
    assert_eq!(d.bytes(), good);
    assert_eq!(d.digest(), exequatur_canonical::tool_digest(&good));
    let refused = |bytes: &[u8]| {
        assert_eq!(Definition::verify(bytes), Err(PrepareError::NotCanonical("the definition")))
    };
    // An unknown field, a doubled scalar, a default that is written, a cut.
    refused(&[&good[..], &[0xfa, 0x3f, 0x01, b'x']].concat());
    refused(&[&[0x0a, 0x01, b'a'], &good[..]].concat());
    refused(&[&good[..], &[0x3a, 0x00]].concat());
    refused(&good[..good.len() - 1]);
    refused(&[0xff; 40]);
    // Fields in another order.
    let tool = 2 + usize::from(good[1]);
    refused(&[&good[tool..], &good[..tool]].concat());
    assert!(matches!(Definition::verify(&vec![0; 300_000]), Err(PrepareError::TooLarge { .. })));
    assert!(matches!(Definition::verify(b""), Err(PrepareError::Invalid { .. })));
}

#[test]
fn names_words_and_numbers() {
    for name in ["", "1a", "a b", "a\u{0}", "mail_send ", "é", &"a".repeat(129)] {
        refused("tool", |d, _| d.tool = name.to_owned());
    }
    accepted(|d, _| d.tool = "A0_.-/z".to_owned());
    for summary in ["", "a\nb", "a\u{202e}b", &"a".repeat(513)] {
        refused("summary", |d, _| d.summary = summary.to_owned());
    }
    accepted(|d, _| d.summary = "Sends \"one\" SMS: für alle".to_owned());
    refused("effect", |d, _| d.effect = 0);
    refused("effect", |d, _| d.effect = 99);
    refused("risk", |d, _| d.risk = 0);
    refused("reversibility", |d, _| d.reversibility = 0);
    refused("attestation", |d, _| d.attestation = 3);
    refused("return_policy", |d, _| d.return_policy = 0);
    refused("reversibility", |d, _| {
        d.effect = Effect::Read.into();
        d.reversibility = Reversibility::Irreversible.into();
    });
    refused("timeout_ms", |d, _| d.timeout_ms = 0);
    refused("timeout_ms", |d, _| d.timeout_ms = 300_001);
    refused("max_response_bytes", |d, _| d.max_response_bytes = 0);
    refused("template", |d, _| d.template = None);
}

#[test]
fn schemas_stay_inside() {
    for schema in [
        "",
        "[]",
        "{",
        r#"{"a":1,"a":2}"#,
        r#"{"$ref":"https://example.org/s"}"#,
        r#"{"properties":{"x":{"anyOf":[{"$ref":"file:///etc/passwd"}]}}}"#,
    ] {
        refused("input_schema", |d, _| d.input_schema = schema.to_owned());
    }
    refused("output_schema", |d, _| d.output_schema = "1".to_owned());
    accepted(|d, _| {
        d.input_schema =
            r##"{"$defs":{"a":{}},"properties":{"x":{"$ref":"#/$defs/a"},"$ref":{"type":"string"}}}"##
                .to_owned();
    });
}

#[test]
fn s33_s34_hosts_are_plain_names_or_addresses() {
    for host in [
        "",
        "EXAMPLE.com",
        "user@example.com",
        "example.com:8080",
        "example.com/",
        "example.com.",
        "exa mple.com",
        "-a.example.com",
        "[::1]",
        "::ffff:a9fe:a9fe",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::",
        "0:0:0:0:0:0:0:1",
        "fe80::1%eth0",
        "127.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f.0.0.1",
        "0x7f000001",
        "127.0.0.1.",
        "1.2.3.4.5",
        "0.0.0.0",
        "bücher.example",
        "a..b",
        "example.com\r\nx",
        "*.example.com",
    ] {
        refused("http.host", |_, t| t.host = host.to_owned());
    }
    for host in [
        "localhost",
        "api.example.com",
        "127.0.0.1",
        "::1",
        "2001:db8::1",
        "xn--bcher-kva.example",
        "a-b.0x.example",
    ] {
        accepted(|_, t| t.host = host.to_owned());
    }
    let mut t = http();
    t.host = "2001:db8::1".to_owned();
    assert_eq!(verify(&around(Template::Http(t))).unwrap().destination(), "[2001:db8::1]:443");
    refused("http.port", |_, t| t.port = 0);
    refused("http.port", |_, t| t.port = 65_536);
    refused("http.scheme", |_, t| t.scheme = "ftp".to_owned());
    for method in ["", "get", "CONNECT", "TRACE", "HEAD", "POST "] {
        refused("http.method", |_, t| t.method = method.to_owned());
    }
}

#[test]
fn headers_of_the_connection_and_of_credentials_are_out_of_reach() {
    for name in [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "te",
        "upgrade",
        "authorization",
        "cookie",
        "proxy-authorization",
        "accept-encoding",
        "expect",
        "X-Upper",
        "a b",
        "a:b",
        "",
        "x\r\ny",
    ] {
        refused("http.headers[0]", |_, t| t.headers = vec![pair(name, lit("x"))]);
    }
    refused("http.headers[1]", |_, t| t.headers = vec![pair("x-a", lit("x")), pair("x-a", lit("y"))]);
    refused("http.headers[0]", |_, t| t.headers = vec![pair("x-a", lit("x\r\ny: z"))]);
    refused("http.headers[0]", |_, t| t.headers = vec![optional("x-a", lit("x"))]);
    refused("http.headers[0]", |_, t| t.headers = vec![NamedSource { value: None, ..pair("x-a", lit("x")) }]);
    accepted(|_, t| t.headers = vec![pair("accept", lit("application/json")), optional("x-a", arg("/a"))]);
}

#[test]
fn fixed_parts_must_fit_their_place() {
    for segment in ["", ".", ".."] {
        refused("http.path[0]", |_, t| t.path = vec![lit(segment), lit("x")]);
    }
    accepted(|_, t| t.path = vec![lit("v1"), lit("")]);
    for pointer in ["", "id", "/a~2", "/~"] {
        refused("http.path[0]", |_, t| t.path = vec![arg(pointer)]);
    }
    refused("http.path[0]", |_, t| t.path = vec![Source { from: None }]);
    refused("http.query[1]", |_, t| t.query = vec![pair("a", lit("1")), pair("a", lit("2"))]);
    refused("http.query[0]", |_, t| t.query = vec![pair("", lit("1"))]);
    refused("http.body", |_, t| {
        t.method = "GET".to_owned();
        t.body = Some(Body::Json(JsonNode { node: Some(Node::Literal("1".to_owned())) }));
    });
}

#[test]
fn json_literals_are_scalars_in_their_one_form() {
    let body = |text: &str| Some(Body::Json(JsonNode { node: Some(Node::Literal(text.to_owned())) }));
    for text in
        ["", " 1", "1 ", "1,\"w\":2", "[]", "{}", "1.50", "\"\\u0061\"", "tru", "-0", "1e400", "\"a", "1}"]
    {
        refused("http.json", |_, t| t.body = body(text));
    }
    for text in ["1", "1.5", "\"a\\n\"", "true", "null", "18446744073709551615"] {
        accepted(|_, t| t.body = body(text));
    }
    refused("http.json", |_, t| t.body = Some(Body::Json(JsonNode { node: None })));
    let mut deep = JsonNode { node: Some(Node::Literal("1".to_owned())) };
    for _ in 0..15 {
        deep = JsonNode { node: Some(Node::List(JsonList { items: vec![deep] })) };
    }
    accepted(|_, t| t.body = Some(Body::Json(deep.clone())));
    deep = JsonNode { node: Some(Node::List(JsonList { items: vec![deep] })) };
    refused("http.json", |_, t| t.body = Some(Body::Json(deep)));
}

#[test]
fn each_credential_has_a_place_of_its_own() {
    let with = |injection: Injection| CredentialUse { injection: Some(injection), ..bearer("c") };
    let header = |name: &str| Injection::Header(HeaderInjection { name: name.to_owned() });
    let query = |name: &str| Injection::Query(QueryInjection { name: name.to_owned() });
    let basic = |user: &str| Injection::Basic(BasicInjection { user: user.to_owned() });
    let login = |user: &str| Injection::SmtpPassword(SmtpPasswordInjection { user: user.to_owned() });
    for name in ["", "A", "-a", "a b", "a/b", &"a".repeat(64)] {
        refused("credentials[0]", |d, _| d.credentials = vec![bearer(name)]);
    }
    refused("credentials[0]", |d, _| d.credentials = vec![CredentialUse { attestation: 0, ..bearer("c") }]);
    refused("credentials[0]", |d, _| d.credentials = vec![CredentialUse { injection: None, ..bearer("c") }]);
    for bad in [
        header("host"),
        header("content-length"),
        header("cookie"),
        header("X"),
        query(""),
        basic("a:b"),
        basic(""),
        login("u"),
    ] {
        refused("credentials[0]", |d, _| d.credentials = vec![with(bad)]);
    }
    for good in [header("x-api-key"), header("authorization"), query("key"), basic("AC123")] {
        accepted(|d, _| d.credentials = vec![with(good)]);
    }
    refused("credentials[1]", |d, _| d.credentials = vec![bearer("a"), bearer("a")]);
    refused("credentials[1]", |d, _| {
        d.credentials = vec![bearer("a"), CredentialUse { credential: "b".to_owned(), ..with(basic("u")) }]
    });
    refused("credentials[0]", |d, t| {
        t.query = vec![pair("key", arg("/key"))];
        d.credentials = vec![with(query("key"))];
    });
    refused("credentials[0]", |d, t| {
        t.headers = vec![pair("x-api-key", arg("/key"))];
        d.credentials = vec![with(header("x-api-key"))];
    });
    let mail = around(Template::Smtp(smtp()));
    assert!(
        verify(&ToolDefinition { credentials: vec![with(login("ops@example.com"))], ..mail.clone() }).is_ok()
    );
    assert!(verify(&ToolDefinition { credentials: vec![bearer("c")], ..mail }).is_err());
}

#[test]
fn idempotency_statuses_and_labels() {
    let key = |header: &str, window_s| Some(Idempotency { header: header.to_owned(), window_s });
    accepted(|d, _| d.idempotency = key("idempotency-key", 86_400));
    refused("idempotency", |d, _| d.idempotency = key("host", 1));
    refused("idempotency", |d, _| d.idempotency = key("idempotency-key", 0));
    refused("idempotency", |d, t| {
        t.headers = vec![pair("idempotency-key", arg("/k"))];
        d.idempotency = key("idempotency-key", 1);
    });
    let rule = |from, to| StatusRule { from, to, outcome: StatusOutcome::Failed.into() };
    accepted(|d, _| d.statuses = vec![rule(404, 404), rule(500, 599)]);
    for rules in [
        vec![rule(100, 200)],
        vec![rule(300, 200)],
        vec![rule(500, 600)],
        vec![rule(400, 499), rule(404, 404)],
        vec![StatusRule { outcome: 0, ..rule(404, 404) }],
    ] {
        refused("statuses", |d, _| d.statuses = rules);
    }
    let field = |argument: &str, label: &str| DisplayField {
        argument: argument.to_owned(),
        label: label.to_owned(),
        unit: String::new(),
    };
    accepted(|d, _| d.display = vec![field("/to", "Empfänger")]);
    for fields in [
        vec![field("", "x")],
        vec![field("to", "x")],
        vec![field("/to", "")],
        vec![field("/to", "a\u{200b}")],
        vec![field("/to", "a"), field("/to", "b")],
    ] {
        refused("display", |d, _| d.display = fields);
    }
}

#[test]
fn prepared_bytes_from_elsewhere_are_checked() {
    let p = run(Template::Http(http()), "{}").unwrap();
    let forged = |change: &dyn Fn(&mut exequatur_proto::definition::v1::HttpRequest)| {
        let mut request = p.request().clone();
        if let Some(Request::Http(http)) = &mut request.request {
            change(http);
        }
        verify_prepared(&request.encode_to_vec())
    };
    assert!(forged(&|_| {}).is_ok());
    for target in
        ["", "x", "//evil.example/", "/a/../b", "/a b", "/a?b?c", "/a#b", "/?", "http://evil.example/"]
    {
        assert!(forged(&|h| h.target = target.to_owned()).is_err(), "{target}");
    }
    for (name, value) in [("host", "x"), ("x-a", "a\r\nb"), ("X", "x"), ("authorization", "x")] {
        let header =
            exequatur_proto::definition::v1::HttpHeader { name: name.to_owned(), value: value.to_owned() };
        assert!(forged(&|h| h.headers = vec![header.clone()]).is_err(), "{name}");
    }
    assert!(verify_prepared(b"").is_err());
    assert_eq!(
        verify_prepared(&[p.bytes(), &[0xfa, 0x3f, 0x00]].concat()),
        Err(PrepareError::NotCanonical("the prepared request"))
    );
}
