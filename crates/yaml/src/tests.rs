//! Tests of the tree.

use crate::{FileError, Kind, read};

fn error(text: &str) -> FileError {
    read(text).expect_err(text)
}

#[test]
fn scalars_keep_their_type_and_exact_text() {
    let node = read("a: 1\nb: 1.50\nc: '1'\nd: true\ne: no\nf: ~\ng: 2010-04-01\nh: 1e3\ni: *").err();
    assert!(node.is_some(), "an alias is refused");
    let node = read("a: 1\nb: 1.50\nc: '1'\nd: true\ne: no\nf: ~\ng: 2010-04-01\nh: 1e3\ni: '*'").unwrap();
    assert_eq!(
        node.to_json(),
        r#"{"a":1,"b":1.50,"c":"1","d":true,"e":"no","f":null,"g":"2010-04-01","h":1e3,"i":"*"}"#
    );
}

#[test]
fn what_only_yaml_calls_a_number_is_refused() {
    for text in ["+1", "010", ".5", "1.", "0x1f", "0o17", "1_000", ".inf", "-.nan"] {
        assert!(error(&format!("a: {text}")).message.contains("quote it"), "{text}");
        assert!(matches!(&read(&format!("'{text}'")).unwrap().kind, Kind::Text(t) if t == text));
    }
    for text in ["1.2.3", "10.0.0.1", "e5", "--", "a_1", "0xyz", "1-2"] {
        assert!(matches!(&read(text).map(|n| n.kind), Ok(Kind::Text(_)) | Err(_)), "{text}");
    }
}

#[test]
fn errors_name_line_and_nearest_key() {
    let node = read("mode: enforce\nruels: []\n").unwrap();
    let mut map = node.map().unwrap();
    map.take("mode");
    map.take("rules");
    let e = map.done().unwrap_err();
    assert_eq!((e.line, e.column), (2, 1));
    assert!(e.message.contains("did you mean `rules`?"), "{e}");
}

#[test]
fn duplicates_anchors_tags_and_second_documents_are_refused() {
    assert_eq!(error("a: 1\nb: 2\na: 3\n").line, 3);
    assert!(error("a: &x 1\nb: *x\n").message.contains("anchors"));
    assert!(error("a: !!str 1\n").message.contains("tags"));
    assert!(error("---\na: 1\n---\nb: 1\n").message.contains("one document"));
    assert!(error("").message.contains("empty"));
    assert!(error("a: [1\nb: 2").line >= 1);
    assert!(error(&"[".repeat(20_000)).line == 1);
    assert!(error(&format!("{}{}", "[".repeat(41), "]".repeat(41))).message.contains("deep"));
    assert!(read(&format!("{}{}", "[".repeat(40), "]".repeat(40))).is_ok());
}

#[test]
fn a_wrong_word_names_the_nearest() {
    let node = read("x: Observ").unwrap();
    let mut map = node.map().unwrap();
    let e = map.need("x").unwrap().word(&[("enforce", 1), ("observe", 2)]).unwrap_err();
    assert!(e.message.contains("did you mean `observe`?"), "{e}");
    assert_eq!(e.line, 1);
}

#[test]
fn a_missing_key_that_was_mistyped_is_named() {
    let node = read("tols: x").unwrap();
    let e = node.map().unwrap().need("tool").unwrap_err();
    assert!(e.message.contains("did you mean `tool`?"), "{e}");
    let node = read("other: x").unwrap();
    assert!(node.map().unwrap().need("tool").unwrap_err().message.contains("missing"));
}
