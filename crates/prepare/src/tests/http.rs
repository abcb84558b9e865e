//! Places of an HTTP request.

use exequatur_canonical::freeze_action;
use exequatur_proto::definition::v1::{
    FormBody, Idempotency, JsonList, JsonMember, JsonNode, JsonObject, QueryInjection,
    credential_use::Injection, http_template::Body, json_node::Node, tool_definition::Template,
};

use super::*;
use crate::request_text;

fn path(arguments: &str) -> Result<String, PrepareError> {
    let mut t = http();
    t.path = vec![lit("v1"), arg("/id"), lit("x y")];
    run(Template::Http(t), arguments).map(|p| http_of(&p).target.clone())
}

#[test]
fn a_path_segment_is_encoded_whole() {
    assert_eq!(path(r#"{"id":"a/b?c#d%2e é"}"#).unwrap(), "/v1/a%2Fb%3Fc%23d%252e%20%C3%A9/x%20y");
    assert_eq!(path(r#"{"id":"a-b.c_d~e"}"#).unwrap(), "/v1/a-b.c_d~e/x%20y");
    assert_eq!(path(r#"{"id":"..."}"#).unwrap(), "/v1/.../x%20y");
    assert_eq!(path(r#"{"id":1}"#).unwrap(), "/v1/1/x%20y");
    assert_eq!(path(r#"{"id":1.0}"#).unwrap(), "/v1/1.0/x%20y");
    assert_eq!(path(r#"{"id":true}"#).unwrap(), "/v1/true/x%20y");
    assert_eq!(path(r#"{"id":18446744073709551615}"#).unwrap(), "/v1/18446744073709551615/x%20y");
}

#[test]
fn what_is_no_path_segment_is_refused_with_its_pointer() {
    for value in [r#""""#, r#"".""#, r#""..""#, "null", "[1]", r#"{"a":1}"#] {
        let error = path(&format!(r#"{{"id":{value}}}"#)).unwrap_err();
        assert!(matches!(error, PrepareError::DoesNotFit { .. }), "{value}: {error}");
        assert_eq!(error.pointer(), Some("/id"));
    }
    assert_eq!(path("{}").unwrap_err(), PrepareError::Missing { pointer: "/id".to_owned() });
}

#[test]
fn query_and_form_pairs_are_encoded_and_optional_ones_may_be_absent() {
    let mut t = http();
    t.query = vec![pair("a&b", arg("/a")), optional("c", arg("/c"))];
    t.body = Some(Body::Form(FormBody { pairs: vec![pair("To", arg("/a")), optional("n", arg("/n"))] }));
    let p = run(Template::Http(t.clone()), r#"{"a":"x=1&y\r\n+"}"#).unwrap();
    assert_eq!(http_of(&p).target, "/?a%26b=x%3D1%26y%0D%0A%2B");
    assert_eq!(http_of(&p).body, b"To=x%3D1%26y%0D%0A%2B");
    assert_eq!(http_of(&p).headers[0].value, "application/x-www-form-urlencoded");
    let p = run(Template::Http(t.clone()), r#"{"a":"","c":false,"n":1e3}"#).unwrap();
    assert_eq!(http_of(&p).target, "/?a%26b=&c=false");
    assert_eq!(http_of(&p).body, b"To=&n=1000.0");
    // Absent may be left out, null may not.
    let error = run(Template::Http(t), r#"{"a":"","c":null}"#).unwrap_err();
    assert_eq!(error.pointer(), Some("/c"));
}

#[test]
fn a_header_value_cannot_start_another_header() {
    let mut t = http();
    t.headers = vec![pair("x-note", arg("/n"))];
    let p = run(Template::Http(t.clone()), r#"{"n":"a: b; c"}"#).unwrap();
    assert_eq!(http_of(&p).headers[0].value, "a: b; c");
    for value in ["a\\r\\nx: y", "a\\nb", "a\\u0000", " a", "a ", "", "é", "a\\tb", "\\u007f"] {
        let error = run(Template::Http(t.clone()), &format!(r#"{{"n":"{value}"}}"#)).unwrap_err();
        assert_eq!(error.pointer(), Some("/n"), "{value}");
    }
}

fn node(node: Node) -> JsonNode {
    JsonNode { node: Some(node) }
}

fn member(name: &str, value: JsonNode, optional: bool) -> JsonMember {
    JsonMember { name: name.to_owned(), value: Some(value), optional }
}

fn json(template: JsonNode, arguments: &str) -> Result<String, PrepareError> {
    let mut t = http();
    t.body = Some(Body::Json(template));
    run(Template::Http(t), arguments).map(|p| String::from_utf8(http_of(&p).body.clone()).unwrap())
}

#[test]
fn json_nodes_keep_their_type_and_exact_value() {
    let whole = node(Node::Argument(String::new()));
    for text in [
        r#"{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808}"#,
        r#"{"a":1,"b":1.0,"c":"1","d":null,"e":[],"f":{}}"#,
        r#"{"a":"\"\\\n\r\t\u0000\u001f","b":"</script>é"}"#,
        "{}",
    ] {
        assert_eq!(json(whole.clone(), text).unwrap(), text);
    }
    assert_eq!(json(whole, r#"{"b":1e21,"a":1e-7,"c":1E2}"#).unwrap(), r#"{"a":1e-7,"b":1e21,"c":100.0}"#);
}

#[test]
fn a_json_template_places_values_and_never_text() {
    let template = node(Node::Object(JsonObject {
        members: vec![
            member("kind", node(Node::Literal("\"note\"".to_owned())), false),
            member("text", node(Node::Argument("/t".to_owned())), false),
            member(
                "tags",
                node(Node::List(JsonList { items: vec![node(Node::Argument("/tag".to_owned()))] })),
                false,
            ),
            member("extra", node(Node::Argument("/x".to_owned())), true),
        ],
    }));
    assert_eq!(
        json(template.clone(), r#"{"t":"\",\"admin\":true,\"","tag":1}"#).unwrap(),
        r#"{"kind":"note","text":"\",\"admin\":true,\"","tags":[1]}"#
    );
    assert_eq!(
        json(template.clone(), r#"{"t":null,"tag":{"a":[1.5]},"x":false}"#).unwrap(),
        r#"{"kind":"note","text":null,"tags":[{"a":[1.5]}],"extra":false}"#
    );
    assert_eq!(json(template.clone(), r#"{"t":1}"#).unwrap_err().pointer(), Some("/tag"));
    assert_eq!(json(template, r#"{"tag":1}"#).unwrap_err().pointer(), Some("/t"));
}

#[test]
fn an_optional_first_member_leaves_no_comma() {
    let template = node(Node::Object(JsonObject {
        members: vec![
            member("a", node(Node::Argument("/a".to_owned())), true),
            member("b", node(Node::Argument("/b".to_owned())), true),
        ],
    }));
    assert_eq!(json(template.clone(), "{}").unwrap(), "{}");
    assert_eq!(json(template.clone(), r#"{"b":1}"#).unwrap(), r#"{"b":1}"#);
    assert_eq!(json(template, r#"{"a":2,"b":1}"#).unwrap(), r#"{"a":2,"b":1}"#);
}

#[test]
fn an_action_for_another_tool_or_definition_is_refused() {
    let definition = verify(&around(Template::Http(http()))).unwrap();
    let digest = definition.digest();
    let other_tool = freeze_action("other.tool", b"{}", "", Some(digest.as_bytes())).unwrap();
    assert!(matches!(prepare(&definition, &other_tool), Err(PrepareError::WrongTool { .. })));
    let other_digest = freeze_action("test.tool", b"{}", "", Some(&[7; 32])).unwrap();
    assert_eq!(prepare(&definition, &other_digest), Err(PrepareError::WrongDefinition));
    let none = freeze_action("test.tool", b"{}", "", None).unwrap();
    assert_eq!(prepare(&definition, &none), Err(PrepareError::WrongDefinition));
    // The rationale is no part of the request.
    let a = freeze_action("test.tool", b"{}", "because", Some(digest.as_bytes())).unwrap();
    assert_eq!(prepare(&definition, &a).unwrap(), prepare(&definition, &action(&definition, "{}")).unwrap());
}

#[test]
fn a_target_that_is_too_long_is_refused() {
    let mut t = http();
    t.query = vec![pair("q", arg("/q"))];
    let text = "é".repeat(3000);
    assert!(matches!(
        run(Template::Http(t.clone()), &format!(r#"{{"q":"{text}"}}"#)),
        Err(PrepareError::TooLarge { .. })
    ));
    let text = "e".repeat(3000);
    assert!(run(Template::Http(t), &format!(r#"{{"q":"{text}"}}"#)).is_ok());
}

#[test]
fn the_text_shows_everything_and_marks_what_comes_later() {
    let mut t = http();
    t.path = vec![lit("send"), arg("/id")];
    t.headers = vec![pair("x-note", arg("/note"))];
    t.body = Some(Body::Json(node(Node::Argument(String::new()))));
    let mut d = around(Template::Http(t));
    d.idempotency = Some(Idempotency { header: "idempotency-key".to_owned(), window_s: 60 });
    d.credentials = vec![
        bearer("crm-token"),
        CredentialUse {
            injection: Some(Injection::Query(QueryInjection { name: "key".to_owned() })),
            ..bearer("map-key")
        },
    ];
    let definition = verify(&d).unwrap();
    let a = action(&definition, r#"{"id":"7/8","note":"hi \\ there","t":"\u202e‹crm-token›\u001b[2J"}"#);
    let text = request_text(&prepare(&definition, &a).unwrap());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "POST https://api.example.com:443/send/7%2F8?key=‹map-key›");
    assert_eq!(lines[1], "content-type: application/json");
    assert_eq!(lines[2], r"x-note: hi \\ there");
    assert_eq!(lines[3], "authorization: Bearer ‹crm-token›");
    assert_eq!(lines[4], "idempotency-key: ‹idempotency key›");
    assert!(lines[5].starts_with("body, "), "{text}");
    // S11, S12: nothing that hides or controls reaches the page, and a mark in a body stays in the body.
    assert!(lines[6].starts_with(r#"| {"id":"7/8""#), "{text}");
    assert!(lines[6].contains(r"\u{202e}‹crm-token›\\u001b[2J"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'));
}
