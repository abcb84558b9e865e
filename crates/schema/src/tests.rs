//! Tests of compiling, checking and filling.

use exequatur_canonical::{Object, Value, read_arguments};

use crate::Schema;

fn args(text: &str) -> Object {
    read_arguments(text.as_bytes()).unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::compile(text).unwrap()
}

#[test]
fn a_violation_names_the_path_and_not_the_value() {
    let s = schema(
        r#"{"type":"object","properties":{"to":{"type":"array","items":{"type":"string","maxLength":3}}},"required":["to"],"additionalProperties":false}"#,
    );
    assert!(s.validate(&args(r#"{"to":["abc"]}"#)).is_ok());
    let v = s.validate(&args(r#"{"to":["abc","secret"]}"#)).unwrap_err();
    assert_eq!(v.pointer, "/to/1");
    assert!(!v.message.contains("secret"), "{v}");
    let v = s.validate(&args("{}")).unwrap_err();
    assert_eq!(v.pointer, "");
    assert!(v.message.contains("to"), "{v}");
    assert!(s.validate(&args(r#"{"to":[],"URL":1}"#)).unwrap_err().message.contains("URL"));
}

#[test]
fn a_message_is_short_however_long_the_names_are() {
    let s = schema(r#"{"properties":{"a":{}},"additionalProperties":false}"#);
    let v = s.validate(&args(&format!(r#"{{"{}":1}}"#, "é".repeat(100_000)))).unwrap_err();
    assert!(v.message.len() < 600 && v.message.contains('é'), "{}", v.message.len());
}

#[test]
fn the_first_violation_is_always_the_same() {
    let text = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["d","e"]}"#;
    let value = args(r#"{"c":1,"b":1,"a":1}"#);
    let first = schema(text).validate(&value).unwrap_err();
    for _ in 0..20 {
        assert_eq!(schema(text).validate(&value).unwrap_err(), first);
    }
}

#[test]
fn numbers_keep_their_exact_value() {
    let s = schema(r#"{"properties":{"n":{"type":"integer","maximum":9007199254740992}}}"#);
    assert!(s.validate(&args(r#"{"n":9007199254740992}"#)).is_ok());
    assert!(s.validate(&args(r#"{"n":9007199254740993}"#)).is_err());
    assert!(s.validate(&args(r#"{"n":18446744073709551615}"#)).is_err());
    // JSON Schema counts 1.0 as an integer; what is frozen and placed stays 1.0.
    assert!(s.validate(&args(r#"{"n":1.0}"#)).is_ok());
    assert!(s.validate(&args(r#"{"n":1.5}"#)).is_err());
    assert!(s.validate(&args(r#"{"n":"1"}"#)).is_err());
}

#[test]
fn formats_are_asserted_and_unknown_ones_refused() {
    let s = schema(r#"{"properties":{"at":{"type":"string","format":"date-time"},"to":{"format":"email"}}}"#);
    assert!(s.validate(&args(r#"{"at":"2026-01-01T00:00:00Z","to":"a@example.org"}"#)).is_ok());
    assert!(s.validate(&args(r#"{"at":"tomorrow"}"#)).is_err());
    assert!(s.validate(&args(r#"{"to":"nobody"}"#)).is_err());
    assert!(Schema::compile(r#"{"properties":{"x":{"format":"emial"}}}"#).is_err());
}

#[test]
fn unusable_schemas_are_refused() {
    for text in [
        "[]",
        "{",
        "true",
        r#"{"type":"strin"}"#,
        r#"{"type":"object","type":"string"}"#,
        r#"{"$ref":"https://example.org/s.json"}"#,
        r#"{"properties":{"a":{"$ref":"other.json#/x"}}}"#,
        r##"{"$ref":"#"}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"$ref":"#/$defs/none"}"##,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#,
        r#"{"properties":{"a":{"$id":"x"}}}"#,
        r#"{"properties":{"a":{"pattern":"(a+)\\1"}}}"#,
        r#"{"properties":{"a":{"pattern":"("}}}"#,
    ] {
        assert!(Schema::compile(text).is_err(), "{text}");
    }
    let counter = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.org/t","$defs":{"a":{"type":"string","pattern":"^a+$"}},"properties":{"x":{"$ref":"#/$defs/a"}}}"##;
    let s = schema(counter);
    assert!(s.validate(&args(r#"{"x":"aaa"}"#)).is_ok());
    assert!(s.validate(&args(r#"{"x":"b"}"#)).is_err());
}

#[test]
fn a_tree_schema_that_refers_to_itself_below_works() {
    let s = schema(
        r##"{"type":"object","properties":{"v":{"type":"integer","default":1},"next":{"$ref":"#"}}}"##,
    );
    assert!(s.validate(&args(r#"{"next":{"next":{"v":2}}}"#)).is_ok());
    assert!(s.validate(&args(r#"{"next":{"next":{"v":"2"}}}"#)).is_err());
    let (_, filled) = s.fill_defaults(&args(r#"{"next":{"next":{"v":2}}}"#));
    assert_eq!(filled, ["/next/v", "/v"]);
}

#[test]
fn defaults_are_filled_where_the_page_says() {
    let s = schema(
        r##"{"$defs":{"opt":{"properties":{"lang":{"default":"en"}}}},
        "properties":{
          "to":{"type":"string"},
          "n":{"default":18446744073709551615},
          "d":{"default":1.0},
          "a/b":{"default":null},
          "deep":{"properties":{"x":{"default":{"y":1}}},"default":{}},
          "opt":{"$ref":"#/$defs/opt"},
          "list":{"items":{"properties":{"q":{"default":1}}}}},
        "anyOf":[{"properties":{"any":{"default":1}}},{"properties":{"z":{"default":1}}}],
        "allOf":[{"properties":{"all":{"default":1}}}],
        "if":{"properties":{"iff":{"default":1}}}}"##,
    );
    let (object, filled) = s.fill_defaults(&args(r#"{"to":"x"}"#));
    assert_eq!(filled, ["/a~1b", "/d", "/deep", "/n"]);
    assert_eq!(object, args(r#"{"a/b":null,"d":1.0,"deep":{},"n":18446744073709551615,"to":"x"}"#));

    let (object, filled) =
        s.fill_defaults(&args(r#"{"n":1,"d":1,"a/b":1,"deep":{},"opt":{},"list":[{},{"q":2},3]}"#));
    assert_eq!(filled, ["/deep/x", "/list/0/q", "/opt/lang"]);
    assert_eq!(object.pointer("/deep/x/y"), Some(&Value::Int(1)));
    assert_eq!(object.pointer("/list/0/q"), Some(&Value::Int(1)));

    // A value that is there is never changed, also when it is null.
    let whole = args(r#"{"n":null,"d":2,"a/b":1,"deep":null}"#);
    let (object, filled) = s.fill_defaults(&whole);
    assert!(filled.is_empty());
    assert_eq!(object, whole);
}

#[test]
fn results_are_checked_without_repeating_them() {
    let s = schema(
        r#"{"type":"object","required":["id"],"additionalProperties":false,"properties":{"id":{"type":"integer"}}}"#,
    );
    assert!(s.validate_json(br#"{"id":1}"#).is_ok());
    for text in [&br#"{"id":"hunter2"}"#[..], br#"{"id":1,"hunter2":1}"#, b"hunter2", b"", b"[]"] {
        let v = s.validate_json(text).unwrap_err();
        assert!(!v.to_string().contains("hunter2"), "{v}");
    }
    assert!(s.validate_json("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn bytes_are_no_json() {
    let mut object = Object::default();
    object.insert("b".to_owned(), Value::Bytes(vec![1])).unwrap();
    assert!(schema("{}").validate(&object).is_err());
}

#[test]
fn property_names_are_those_of_the_top() {
    let s = schema(r#"{"properties":{"b":{"properties":{"x":{}}},"a":{}}}"#);
    assert_eq!(s.property_names(), ["a", "b"]);
    assert!(schema("{}").property_names().is_empty());
}
