//! Attack rows S21 and S22 with their counter-cases, on raw bytes.
#![allow(clippy::unwrap_used, reason = "tests may stop at once")]

use exequatur_proto::plan::v1::{ProposePlanRequest, ToolCall};
use prost::{Message as _, Name as _};

use crate::check;

fn request() -> Vec<u8> {
    ProposePlanRequest {
        context: "c".into(),
        idempotency_key: "k".into(),
        actions: vec![ToolCall { tool: "files.read".into(), ..Default::default() }],
        ..Default::default()
    }
    .encode_to_vec()
}

fn field(tag: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut out);
    out
}

fn path_of(bytes: &[u8]) -> String {
    check(&ProposePlanRequest::full_name(), bytes).unwrap_err().path
}

#[test]
fn a_plain_request_passes_in_any_field_order() {
    check(&ProposePlanRequest::full_name(), &request()).unwrap();
    let reordered = [field(6, &field(1, b"files.read")), field(2, b"k"), field(1, b"c")].concat();
    check(&ProposePlanRequest::full_name(), &reordered).unwrap();
}

#[test]
fn an_unknown_field_is_refused_with_its_path_also_when_nested() {
    assert_eq!(path_of(&[request(), field(9999, b"x")].concat()), "9999");
    assert_eq!(path_of(&field(6, &field(77, b"x"))), "actions.77");
}

#[test]
fn a_singular_field_set_twice_is_refused() {
    let twice = [field(1, b"files.read"), field(1, b"files.delete")].concat();
    assert_eq!(path_of(&field(6, &twice)), "actions.tool");
    // Two actions are a list: no fault.
    let list = [field(6, &field(1, b"a")), field(6, &field(1, b"b"))].concat();
    check(&ProposePlanRequest::full_name(), &list).unwrap();
}

#[test]
fn a_oneof_set_twice_is_refused() {
    use exequatur_proto::approval::v1::DecideRequest;
    let both = [field(4, b""), field(5, b"")].concat();
    let name = DecideRequest::full_name();
    assert_eq!(check(&name, &both).unwrap_err().what, "repeated singular field");
    check(&name, &field(4, b"")).unwrap();
}

#[test]
fn deep_nesting_and_cut_bytes_are_refused_quickly() {
    use exequatur_proto::action::v1::Value;
    let mut deep = Vec::new();
    for _ in 0..5000 {
        deep = field(8, &field(1, &deep));
    }
    assert_eq!(check(&Value::full_name(), &deep).unwrap_err().what, "nested too deep");
    let cut = request();
    let cut = cut.get(..cut.len() - 3).unwrap();
    assert_eq!(check(&ProposePlanRequest::full_name(), cut).unwrap_err().what, "malformed bytes");
}
