//! Definition bytes and action bytes in, a request or a typed error out: never a panic, never two
//! answers, and what comes out reads back. The first byte picks a built-in definition that takes
//! any value in every kind of place, or raw definition bytes with a two-byte length before them.
#![no_main]

use std::sync::LazyLock;

use exequatur_canonical::{freeze_action, verify_action};
use exequatur_prepare::{Definition, prepare, request_text, tenant_scope, verify_prepared};
use exequatur_proto::definition::v1 as d;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

static BUILT_IN: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let arg = |p: &str| d::Source { from: Some(d::source::From::Argument(p.to_owned())) };
    let pair = |n: &str, p: &str| d::NamedSource { name: n.to_owned(), value: Some(arg(p)), optional: true };
    let json = d::JsonNode { node: Some(d::json_node::Node::Argument(String::new())) };
    let form = d::FormBody { pairs: vec![pair("a", "/a"), pair("b", "/b/0")] };
    let http = |body| {
        d::tool_definition::Template::Http(d::HttpTemplate {
            method: "POST".to_owned(),
            scheme: "https".to_owned(),
            host: "api.example.com".to_owned(),
            port: 443,
            path: vec![arg("/p")],
            query: vec![pair("q", "/q")],
            headers: vec![pair("x-h", "/h")],
            body: Some(body),
        })
    };
    let smtp = d::tool_definition::Template::Smtp(d::SmtpTemplate {
        host: "mail.example.com".to_owned(),
        port: 25,
        security: d::SmtpSecurity::Starttls.into(),
        from: "a@example.com".to_owned(),
        to: vec![arg("/to")],
        subject: Some(arg("/s")),
        body: Some(arg("/b")),
    });
    let postgres = d::tool_definition::Template::Postgres(d::PostgresTemplate {
        host: "db.example.com".to_owned(),
        port: 5432,
        security: d::PostgresSecurity::Tls.into(),
        database: "d".to_owned(),
        statement: "SELECT $1, $2".to_owned(),
        parameters: vec![arg("/a"), arg("/b")],
        read_only: true,
        max_rows: 1,
    });
    [http(d::http_template::Body::Json(json)), http(d::http_template::Body::Form(form)), smtp, postgres]
        .into_iter()
        .filter_map(|template| {
            let message = d::ToolDefinition {
                tool: "t".to_owned(),
                summary: "s".to_owned(),
                effect: d::Effect::Write.into(),
                risk: d::Risk::Low.into(),
                reversibility: d::Reversibility::Reversible.into(),
                attestation: d::Attestation::Auto.into(),
                input_schema: "{}".to_owned(),
                template: Some(template),
                tenant_scope: Some(d::TenantScope { argument: "/t".to_owned(), pattern: "{tenant}/*".to_owned() }),
                timeout_ms: 1,
                max_response_bytes: 1,
                return_policy: d::ReturnPolicy::Agent.into(),
                ..d::ToolDefinition::default()
            };
            Definition::verify(&message.encode_to_vec()).ok()
        })
        .collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((pick, rest)) = data.split_first() else { return };
    assert_eq!(BUILT_IN.len(), 3);
    let (definition, action) = match BUILT_IN.get(usize::from(*pick)) {
        Some(definition) => (definition.clone(), rest),
        None => {
            let Some((length, rest)) = rest.split_at_checked(2) else { return };
            let length = usize::from(length[0]) << 8 | usize::from(length[1]);
            let Some((bytes, action)) = rest.split_at_checked(length.min(rest.len())) else { return };
            let _ = verify_prepared(bytes);
            let Ok(definition) = Definition::verify(bytes) else { return };
            assert_eq!(definition.message().encode_to_vec(), bytes);
            (definition, action)
        }
    };
    let frozen = verify_action(action)
        .or_else(|_| freeze_action(definition.tool(), action, "", Some(definition.digest().as_bytes())));
    let Ok(frozen) = frozen else { return };
    let _ = tenant_scope(&definition, &frozen, "t-green");
    let first = prepare(&definition, &frozen);
    assert_eq!(first, prepare(&definition, &frozen));
    if let Ok(prepared) = first {
        let again = verify_prepared(prepared.bytes()).expect("own bytes read back");
        assert_eq!(again, prepared);
        assert_eq!(prepared.destination(), definition.destination());
        let text = request_text(&prepared);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
});
