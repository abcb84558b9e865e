//! Attack rows S11, S12, S14 to S22 at the level of text and bytes, each with its counter-case.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

use std::time::{Duration, Instant};

use exequatur_canonical::display::{WarningCode, action_text, warnings_for_action};
use exequatur_canonical::*;

fn freeze(arguments: &str) -> Result<FrozenAction, CanonicalError> {
    freeze_action("demo.echo", arguments.as_bytes(), "", None)
}

fn code(arguments: &str) -> ErrorCode {
    freeze(arguments).unwrap_err().code
}

fn at(arguments: &str) -> (ErrorCode, String) {
    let error = freeze(arguments).unwrap_err();
    (error.code, error.pointer.unwrap_or_default())
}

#[test]
fn s11_a_reordered_recipient_is_seen() {
    let frozen = freeze("{\"recipient\":\"ops\u{202e}gro.elpmaxe@team\"}").unwrap();
    let text = action_text(&frozen);
    assert!(text.contains(r"ops\u{202e}gro.elpmaxe@team"));
    assert!(!text.contains('\u{202e}'));
    let warnings = warnings_for_action(&frozen, None);
    assert!(warnings.iter().any(|w| w.code == WarningCode::BidiControl && w.place == "/arguments/recipient"));
    // The digest is over what was sent, escaped or not.
    assert_eq!(frozen, freeze(r#"{"recipient":"ops\u202egro.elpmaxe@team"}"#).unwrap());
    assert_ne!(frozen.digest(), freeze(r#"{"recipient":"opsgro.elpmaxe@team"}"#).unwrap().digest());

    let plain = freeze(r#"{"recipient":"ops@team.example.org"}"#).unwrap();
    assert!(action_text(&plain).contains("\"ops@team.example.org\""));
    assert_eq!(warnings_for_action(&plain, None), []);
}

#[test]
fn s12_no_control_reaches_a_terminal() {
    let rationale = "routine\u{1b}[2J\u{1b}[1;1HApproved by policy";
    let frozen = freeze_action("demo.echo", "{\"r\":\"\u{9b}31mdone\"}".as_bytes(), rationale, None).unwrap();
    let text = action_text(&frozen);
    assert!(text.contains(r"routine\u{1b}[2J\u{1b}[1;1HApproved by policy"));
    assert!(text.contains(r"\u{9b}31mdone"));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    let hidden = warnings_for_action(&frozen, None);
    assert_eq!(hidden.iter().filter(|w| w.code == WarningCode::HiddenCharacter).count(), 2);

    let plain = freeze_action("demo.echo", b"{}", "routine [2J", None).unwrap();
    assert!(action_text(&plain).contains("\"routine [2J\""));
}

#[test]
fn s14_a_name_twice_is_refused() {
    assert_eq!(at(r#"{"amount":5,"amount":5000}"#), (ErrorCode::DuplicateName, "/amount".into()));
    assert_eq!(
        at(r#"{"a":{"b":[{"c":[0,{"amount":5,"amount":5000}]}]}}"#),
        (ErrorCode::DuplicateName, "/a/b/0/c/1/amount".into())
    );
    assert_eq!(at(r#"{"amount":5,"am\u006funt":5000}"#).0, ErrorCode::DuplicateName);
    assert!(freeze(r#"{"a":{"amount":5},"b":[{"amount":5000},{"amount":5000}]}"#).is_ok());
}

#[test]
fn s15_integers_are_exact() {
    let big = freeze(r#"{"account":9007199254740993}"#).unwrap();
    let near = freeze(r#"{"account":9007199254740992}"#).unwrap();
    assert_ne!(big.digest(), near.digest());
    assert!(action_text(&big).contains("9007199254740993"));
    assert_eq!(big.action().arguments.get("account"), Some(&Value::Int(9_007_199_254_740_993)));
    assert_eq!(at(r#"{"account":18446744073709551616}"#), (ErrorCode::NumberOutOfRange, "/account".into()));
    let most = freeze(r#"{"account":18446744073709551615}"#).unwrap();
    assert_eq!(most.action().arguments.get("account"), Some(&Value::Uint(u64::MAX)));
    assert!(action_text(&most).contains("18446744073709551615"));
}

#[test]
fn s16_no_number_becomes_infinite_or_zero() {
    assert_eq!(code(r#"{"rate":1e400}"#), ErrorCode::NumberOutOfRange);
    assert_eq!(code(r#"{"rate":-1e400}"#), ErrorCode::NumberOutOfRange);
    assert_eq!(code(r#"{"rate":1e-400}"#), ErrorCode::NumberNotExact);
    assert_eq!(code(r#"{"rate":1.7976931348623159e308}"#), ErrorCode::NumberOutOfRange);
    assert_eq!(code(r#"{"rate":2e-324}"#), ErrorCode::NumberNotExact);
    assert_eq!(code(r#"{"rate":3e-324}"#), ErrorCode::NumberNotExact);
    assert!(freeze(r#"{"rate":1.7976931348623157e308,"least":5e-324}"#).is_ok());
}

#[test]
fn s17_names_ascend_by_utf8_bytes() {
    // U+E000 is EE 80 80 and U+10400 is F0 90 90 80; UTF-16 would have them the other way round.
    let frozen = freeze(r#"{"\ud801\udc00":1,"\ue000":2}"#).unwrap();
    let names: Vec<&str> = frozen.action().arguments.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["\u{e000}", "\u{10400}"]);
    assert_eq!(frozen, freeze(r#"{"\ue000":2,"\ud801\udc00":1}"#).unwrap());
    let text = action_text(&frozen);
    assert!(text.find(r"\u{e000}").unwrap() < text.find('\u{10400}').unwrap());
    let find = |needle: &[u8]| frozen.bytes().windows(needle.len()).position(|w| w == needle).unwrap();
    assert!(find("\u{e000}".as_bytes()) < find("\u{10400}".as_bytes()));
}

#[test]
fn s18_half_a_surrogate_pair_is_refused() {
    for note in [r"\ud83d", r"\ude00\ud83d", r"\ud83dx", r"\ud83d\n", r"\ud83d\ud83d\ude00", r"a\udfff"] {
        assert_eq!(
            at(&format!("{{\"note\":\"{note}\"}}")),
            (ErrorCode::LoneSurrogate, "/note".into()),
            "{note}"
        );
    }
    let raw = freeze_action("demo.echo", b"{\"note\":\"\xed\xa0\xbd\"}", "", None).unwrap_err();
    assert_eq!(raw.code, ErrorCode::InvalidUtf8);
    let whole = freeze(r#"{"note":"\ud83d\ude00"}"#).unwrap();
    assert_eq!(whole.action().arguments.get("note").unwrap().as_str(), Some("\u{1f600}"));
    assert_eq!(whole, freeze("{\"note\":\"\u{1f600}\"}").unwrap());
}

#[test]
fn s19_zeros_by_the_table() {
    for text in ["-0", "-0.0", "-0e5", "-0.000E-99999999999999999999999"] {
        assert_eq!(code(&format!("{{\"k\":{text}}}")), ErrorCode::NegativeZero, "{text}");
    }
    assert_eq!(code(r#"{"k":-1e-999}"#), ErrorCode::NumberNotExact);
    let int = freeze(r#"{"k":0}"#).unwrap();
    let double = freeze(r#"{"k":0.0}"#).unwrap();
    assert_ne!(int.digest(), double.digest());
    assert_ne!(action_text(&int), action_text(&double));
    for text in ["0e5", "0.000", "0E-7", "0e99999999999999999999999"] {
        assert_eq!(freeze(&format!("{{\"k\":{text}}}")).unwrap(), double, "{text}");
    }
}

/// Fails if the work takes longer than a row allows. The best of five, as a busy machine may stop any one.
fn within<T>(limit: Duration, work: impl Fn() -> T) -> T {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let result = work();
        best = best.min(start.elapsed());
        if best < limit {
            return result;
        }
    }
    panic!("took {best:?}");
}

#[test]
fn s20_depth_is_bounded_and_fast() {
    const LIMIT: Duration = Duration::from_millis(50);
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let text = format!("{{\"a\":{}", open.repeat(20_000));
        assert_eq!(within(LIMIT, || code(&text)), ErrorCode::TooDeep);
    }
    assert_eq!(within(LIMIT, || code(&"[".repeat(20_000))), ErrorCode::TooDeep);

    // A value nested 5,000 deep on the wire, lengths right at every level.
    let nested = |depth: usize| {
        let mut value = vec![0x42, 0x00];
        for _ in 1..depth {
            value = wire(0x42, &wire(0x0a, &value));
        }
        let field = [wire(0x0a, b"a"), wire(0x12, &value)].concat();
        [wire(0x0a, b"demo.echo"), wire(0x12, &wire(0x0a, &field))].concat()
    };
    let deep = nested(5_000);
    assert_eq!(within(LIMIT, || verify_action(&deep)).unwrap_err().code, ErrorCode::NotCanonical);

    let fits = format!("{{\"a\":{}{}}}", "[".repeat(31), "]".repeat(31));
    let frozen = freeze(&fits).unwrap();
    assert_eq!(frozen.bytes(), nested(31));
    assert_eq!(verify_action(frozen.bytes()).unwrap(), frozen);
    assert_eq!(verify_action(&nested(32)).unwrap_err().code, ErrorCode::NotCanonical);
    assert_eq!(code(&format!("{{\"a\":{}{}}}", "[".repeat(32), "]".repeat(32))), ErrorCode::TooDeep);
}

#[test]
fn s20_values_built_too_deep_are_refused() {
    let mut value = Value::Null;
    for _ in 0..200 {
        value = Value::List(vec![value]);
    }
    let mut arguments = Object::new();
    arguments.insert("a", value).unwrap();
    let action = Action { tool: "demo.echo".into(), arguments, rationale: String::new(), tool_digest: None };
    assert_eq!(freeze_value_action(action).unwrap_err().code, ErrorCode::TooDeep);
}

#[test]
fn long_input_is_answered_in_linear_time() {
    const LIMIT: Duration = Duration::from_secs(5);
    let digits = "9".repeat(3_000_000);
    assert_eq!(within(LIMIT, || code(&format!("{{\"n\":{digits}}}"))), ErrorCode::NumberOutOfRange);
    assert_eq!(within(LIMIT, || code(&format!("{{\"n\":0.{digits}}}"))), ErrorCode::NumberNotExact);
    assert_eq!(within(LIMIT, || code(&format!("{{\"n\":1e{digits}}}"))), ErrorCode::NumberOutOfRange);
    assert_eq!(within(LIMIT, || code(&format!("{{\"n\":1e-{digits}}}"))), ErrorCode::NumberNotExact);
    let zeros = "0".repeat(1_000_000);
    let one = freeze(r#"{"n":1.0}"#).unwrap();
    assert_eq!(within(LIMIT, || freeze(&format!("{{\"n\":0.{zeros}1e1000001}}"))).unwrap(), one);
    assert_eq!(within(LIMIT, || freeze(&format!("{{\"n\":1{zeros}e-1000000}}"))).unwrap(), one);
    assert_eq!(within(LIMIT, || freeze(&format!("{{\"n\":1.{zeros}}}"))).unwrap(), one);
    let names: Vec<String> = (0..60_000).rev().map(|n| format!("\"{n:05}\":1")).collect();
    assert!(within(LIMIT, || freeze(&format!("{{{}}}", names.join(",")))).is_ok());
}

#[test]
fn an_action_may_fill_its_limit_and_no_more() {
    // Tag and length of tool, arguments, field, value and string take the rest.
    let whole = |n: usize| freeze(&format!("{{\"a\":\"{}\"}}", "x".repeat(n)));
    let overhead = whole(1_000_000).unwrap().bytes().len() - 1_000_000;
    let full = whole(MAX_ACTION_BYTES - overhead).unwrap();
    assert_eq!(full.bytes().len(), MAX_ACTION_BYTES);
    assert_eq!(verify_action(full.bytes()).unwrap(), full);
    assert_eq!(whole(MAX_ACTION_BYTES - overhead + 1).unwrap_err().code, ErrorCode::TooLarge);
}

fn wire(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let mut n = content.len();
    while n > 0x7f {
        out.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
        n >>= 7;
    }
    out.push(u8::try_from(n).unwrap());
    out.extend_from_slice(content);
    out
}

fn refused(parts: &[Vec<u8>]) {
    assert_eq!(verify_action(&parts.concat()).unwrap_err().code, ErrorCode::NotCanonical);
}

#[test]
fn s21_wire_order_and_unknown_fields() {
    let (tool, arguments, reason) = (wire(0x0a, b"demo.echo"), wire(0x12, b""), wire(0x1a, b"why"));
    assert!(verify_action(&[tool.clone(), arguments.clone(), reason.clone()].concat()).is_ok());
    refused(&[tool.clone(), reason.clone(), arguments.clone()]);
    refused(&[arguments.clone(), tool.clone()]);
    // Field 9999, length-delimited, holding "x": tag FA F0 04.
    refused(&[tool.clone(), arguments.clone(), vec![0xfa, 0xf0, 0x04, 0x01, b'x']]);
    let member = |name: &[u8]| wire(0x0a, &[wire(0x0a, name), wire(0x12, &[0x18, 0x02])].concat());
    let pair = |a: &[u8], b: &[u8]| wire(0x12, &[member(a), member(b)].concat());
    assert!(verify_action(&[tool.clone(), pair(b"a", b"b")].concat()).is_ok());
    refused(&[tool.clone(), pair(b"b", b"a")]);
    refused(&[tool, pair(b"a", b"a")]);
    assert_eq!(freeze(r#"{"b":1,"a":1}"#).unwrap(), freeze(r#"{"a":1,"b":1}"#).unwrap());
}

#[test]
fn s22_a_field_twice_is_refused() {
    let arguments = wire(0x12, b"");
    refused(&[wire(0x0a, b"files.read"), wire(0x0a, b"files.delete"), arguments.clone()]);
    let with = |value: &[u8]| {
        [wire(0x0a, b"demo.echo"), wire(0x12, &wire(0x0a, &[wire(0x0a, b"a"), wire(0x12, value)].concat()))]
            .concat()
    };
    refused(&[with(&[0x18, 0x02, 0x32, 0x01, b'x'])]);
    refused(&[with(&[0x18, 0x02, 0x18, 0x04])]);
    assert_eq!(verify_action(&with(&[0x18, 0x02])).unwrap(), freeze(r#"{"a":1}"#).unwrap());
    refused(&[wire(0x0a, b"demo.echo"), arguments.clone(), arguments]);
}

#[test]
fn plan_headers_keep_the_same_subset() {
    let header = |count: usize, nanos: i32| PlanHeader {
        tenant: "acme".into(),
        proposed_at: Timestamp { seconds: 1, nanos },
        action_digests: vec![Digest::new([7; 32]); count],
        ..PlanHeader::default()
    };
    for (count, nanos) in [(0, 0), (257, 0), (1, -1), (1, 1_000_000_000)] {
        assert!(freeze_plan(header(count, nanos)).is_err(), "{count} {nanos}");
    }
    assert!(freeze_plan(header(256, 999_999_999)).is_ok());

    let (tenant, time, digest) = (wire(0x0a, b"acme"), wire(0x2a, &[0x08, 0x01]), wire(0x3a, &[7; 32]));
    let plan = |parts: &[&[u8]]| verify_plan(&parts.concat());
    assert_eq!(plan(&[&tenant, &time, &digest]).unwrap(), freeze_plan(header(1, 0)).unwrap());
    let wrong: [&[&[u8]]; 15] = [
        &[],
        &[&tenant, &digest],
        &[&tenant, &time],
        &[&time, &tenant, &digest],
        &[&tenant, &tenant, &time, &digest],
        &[&tenant, &time, &wire(0x3a, &[7; 31])],
        &[&tenant, &time, &digest, &[0x40, 0x00]],
        &[&tenant, &time, &digest, &[0x40, 0x02]],
        &[&tenant, &time, &digest, &[0x48, 0x81, 0x00]],
        &[&tenant, &time, &digest, &[0x52, 0x00]],
        &[&tenant, &time, &digest, &[0x60, 0x01]],
        &[&tenant, &wire(0x2a, &[0x08, 0x00]), &digest],
        &[&tenant, &wire(0x2a, &[0x10, 0x01, 0x08, 0x01]), &digest],
        &[&tenant, &wire(0x2a, &[0x10, 0x80, 0x94, 0xeb, 0xdc, 0x03]), &digest],
        &[&wire(0x0a, &[0xff]), &time, &digest],
    ];
    for (n, parts) in wrong.iter().enumerate() {
        assert_eq!(plan(parts).unwrap_err().code, ErrorCode::NotCanonical, "{n}");
    }
    let many: Vec<u8> =
        [tenant, time].concat().into_iter().chain((0..257).flat_map(|_| digest.clone())).collect();
    assert!(verify_plan(&many).is_err());
}

#[test]
fn one_error_in_the_order_of_the_table() {
    let freeze = |tool: &str, json: &[u8], digest: &[u8]| {
        freeze_action(tool, json, "", Some(digest)).unwrap_err().code
    };
    assert_eq!(freeze("a b", b"\xff", &[0]), ErrorCode::InvalidToolName);
    assert_eq!(freeze("a", b"[-0,\xff", &[0]), ErrorCode::InvalidUtf8);
    assert_eq!(freeze("a", b"[-0", &[0]), ErrorCode::NegativeZero);
    assert_eq!(freeze("a", b"[1", &[0]), ErrorCode::InvalidJson);
    assert_eq!(freeze("a", b"[1]", &[0]), ErrorCode::NotAnObject);
    assert_eq!(freeze("a", b"{}", &[0]), ErrorCode::InvalidToolDigest);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ACTION_BYTES));
    assert_eq!(freeze("a", large.as_bytes(), &[0]), ErrorCode::InvalidToolDigest);
    assert_eq!(freeze("a", large.as_bytes(), &[]), ErrorCode::TooLarge);
    // Left to right, a duplicate once its second value has been read.
    assert_eq!(freeze("a", b"{\"k\":1,\"k\":-0}", &[]), ErrorCode::NegativeZero);
    assert_eq!(freeze("a", b"{\"k\":1,\"k\":01}", &[]), ErrorCode::DuplicateName);
    assert_eq!(freeze("a", b"{\"k\":1,\"k\":2 x", &[]), ErrorCode::DuplicateName);
    assert_eq!(freeze("a", b"{\"k\":1 x,\"k\":2}", &[]), ErrorCode::InvalidJson);
    assert_eq!(freeze("a", b"{\"k\":1e400e}", &[]), ErrorCode::NumberOutOfRange);
    for bad in ["-", "+1", ".5", "1.", "1e", "1e+", "01", "0x1", "1_0", "--1", "\u{ff11}"] {
        assert_eq!(freeze("a", format!("{{\"k\":{bad}}}").as_bytes(), &[]), ErrorCode::InvalidJson, "{bad}");
    }
}
