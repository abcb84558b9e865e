//! Properties over generated arguments: one request for one action, no two values look the same
//! on the wire, and nothing breaks out of its place.

use exequatur_proto::definition::v1::{
    FormBody, JsonMember, JsonNode, JsonObject, http_template::Body, json_node::Node,
    tool_definition::Template,
};
use proptest::prelude::*;

use super::*;
use crate::request_text;

fn everywhere() -> Vec<Template> {
    let mut path = http();
    path.path = vec![lit("v1"), arg("/v")];
    let mut query = http();
    query.query = vec![pair("q", arg("/v")), pair("z", lit("1"))];
    let mut header = http();
    header.headers = vec![pair("x-v", arg("/v"))];
    let mut form = http();
    form.body = Some(Body::Form(FormBody { pairs: vec![pair("v", arg("/v")), pair("z", lit("1"))] }));
    let mut json = http();
    let value = JsonNode { node: Some(Node::Argument("/v".to_owned())) };
    json.body = Some(Body::Json(JsonNode {
        node: Some(Node::Object(JsonObject {
            members: vec![JsonMember { name: "v".to_owned(), value: Some(value), optional: false }],
        })),
    }));
    let mut subject = smtp();
    (subject.to, subject.subject, subject.body) =
        (vec![lit("a@example.org")], Some(arg("/v")), Some(lit("x")));
    let mut body = smtp();
    (body.to, body.subject, body.body) = (vec![lit("a@example.org")], Some(lit("x")), Some(arg("/v")));
    let mut to = smtp();
    (to.subject, to.body, to.to) = (Some(lit("x")), Some(lit("x")), vec![arg("/v")]);
    let mut all: Vec<Template> = [path, query, header, form, json].into_iter().map(Template::Http).collect();
    all.extend([subject, body, to].into_iter().map(Template::Smtp));
    all.push(Template::Postgres(postgres()));
    all
}

/// JSON text of a value: mostly text of hostile characters, some scalars and containers.
fn value() -> impl Strategy<Value = String> {
    let hostile = proptest::collection::vec(
        prop_oneof![
            Just('\r'),
            Just('\n'),
            Just('\0'),
            Just('.'),
            Just('/'),
            Just('%'),
            Just('='),
            Just('?'),
            Just('&'),
            Just('"'),
            Just('\\'),
            Just(' '),
            Just('@'),
            Just(','),
            Just('\u{202e}'),
            Just('\u{85}'),
            any::<char>(),
            proptest::char::range('a', 'e'),
        ],
        0..12,
    );
    prop_oneof![
        8 => hostile.prop_map(|c| serde_json::to_string(&c.into_iter().collect::<String>()).unwrap()),
        2 => "[a-c.]{1,4}@[a-c]{1,3}\\.example".prop_map(|s| serde_json::to_string(&s).unwrap()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => any::<bool>().prop_map(|b| b.to_string()),
        1 => (1u32..1000).prop_map(|n| format!("{n}.5")),
        1 => Just("null".to_owned()),
        1 => Just(r#"["a"]"#.to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn distinct_values_have_distinct_wire_bytes(a in value(), b in value()) {
        for template in everywhere() {
            let one = run(template.clone(), &format!(r#"{{"v":{a}}}"#));
            let two = run(template.clone(), &format!(r#"{{"v":{b}}}"#));
            if let (Ok(one), Ok(two)) = (one, two) {
                let typed = matches!(&template, Template::Http(t) if matches!(t.body, Some(Body::Json(_))));
                // In a text place `1` and "1" are the same text by design; a person sees the type in
                // the action's own text. Recipients may be one address or a list of one.
                let text = |s: &str| s.trim_matches(|c| "[]\"".contains(c)).to_owned();
                if a == b {
                    prop_assert_eq!(one.wire_digest(), two.wire_digest());
                } else if typed || text(&a) != text(&b) {
                    prop_assert_ne!(one.bytes(), two.bytes(), "{} and {}", a, b);
                    prop_assert_ne!(request_text(&one), request_text(&two), "{} and {}", a, b);
                }
            }
        }
    }

    #[test]
    fn nothing_breaks_out_of_its_place(a in value()) {
        for template in everywhere() {
            let Ok(prepared) = run(template, &format!(r#"{{"v":{a}}}"#)) else { continue };
            match &prepared.request().request {
                Some(Request::Http(h)) => {
                    prop_assert!(h.target.bytes().all(|b| b.is_ascii_graphic()));
                    prop_assert!(h.target.split('/').count() <= 3);
                    for header in &h.headers {
                        prop_assert!(header.value.bytes().all(|b| b.is_ascii_graphic() || b == b' '));
                    }
                }
                Some(Request::Smtp(s)) => {
                    prop_assert_eq!(s.to.len(), 1);
                    let message = String::from_utf8(s.message.clone()).unwrap();
                    let (head, _) = message.split_once("\r\n\r\n").unwrap();
                    let names: Vec<&str> = head
                        .split("\r\n")
                        .filter(|l| !l.starts_with(' '))
                        .map(|l| l.split_once(':').unwrap().0)
                        .collect();
                    prop_assert_eq!(names, ["From", "To", "Subject", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]);
                    prop_assert!(!message.replace("\r\n", "").contains(['\r', '\n']));
                }
                Some(Request::Postgres(p)) => {
                    prop_assert_eq!(&p.statement, &postgres().statement);
                    prop_assert_eq!(p.parameters.len(), 1);
                }
                None => prop_assert!(false),
            }
            let text = request_text(&prepared);
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
            let hides = text.contains('\u{202e}');
            prop_assert!(!hides);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Definition::verify(&bytes);
        let _ = verify_prepared(&bytes);
    }
}
