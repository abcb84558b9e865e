//! What a person sees: safe for every code point, and never the same for two different things.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    reason = "tests may stop at once"
)]

mod common;

use std::collections::HashSet;

use common::*;
use exequatur_canonical::display::{WarningCode, action_text, escape, plan_text, warnings_for_action};
use exequatur_canonical::*;
use proptest::prelude::*;
use unicode_general_category::{GeneralCategory as G, get_general_category};

fn shown(arguments: &str, rationale: &str) -> String {
    action_text(&freeze_action("demo.echo", arguments.as_bytes(), rationale, None).unwrap())
}

/// Default_Ignorable_Code_Point, derived by its definition in UCD 16.0's DerivedCoreProperties.txt from other
/// properties where the crates at hand know them, and otherwise listed.
fn is_default_ignorable(c: char) -> bool {
    let code = u32::from(c);
    let other = [0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0].contains(&code)
        || (0xfff0..=0xfff8).contains(&code)
        || (0xe0000..=0xe0fff).contains(&code);
    let variation_selector = matches!(code, 0x180b..=0x180d | 0x180f | 0xfe00..=0xfe0f | 0xe0100..=0xe01ef);
    let prepended = matches!(code, 0x600..=0x605 | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x110bd | 0x110cd);
    let annotation = matches!(code, 0xfff9..=0xfffb);
    let hieroglyph = matches!(code, 0x13430..=0x1343f);
    let format = get_general_category(c) == G::Format && !prepended && !annotation && !hieroglyph;
    other || variation_selector || format
}

#[test]
fn every_code_point_is_shown_by_the_rule() {
    let mut texts = HashSet::new();
    let mut raw = 0_u32;
    for c in (0..=0x10_ffff).filter_map(char::from_u32) {
        let text = escape(&c.to_string());
        let hides = matches!(
            get_general_category(c),
            G::Control
                | G::Format
                | G::LineSeparator
                | G::ParagraphSeparator
                | G::PrivateUse
                | G::Unassigned
                | G::Surrogate
        ) || (get_general_category(c) == G::SpaceSeparator && c != ' ')
            || (u32::from(c) & 0xfffe == 0xfffe)
            || (0xfdd0..=0xfdef).contains(&u32::from(c))
            || is_default_ignorable(c);
        let expected = match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if hides => format!("\\u{{{:x}}}", u32::from(c)),
            c => c.to_string(),
        };
        assert_eq!(text, expected, "U+{:04X}", u32::from(c));
        raw += u32::from(text.chars().eq([c]));
        assert!(texts.insert(text), "U+{:04X}", u32::from(c));
    }
    assert_eq!(texts.len(), 0x11_0000 - 0x800);
    assert!(raw > 100_000, "letters of the world's scripts are shown as they are: {raw}");
}

#[test]
fn no_neighbour_changes_how_a_code_point_is_shown() {
    for c in (0..=0x10_ffff).filter_map(char::from_u32) {
        assert_eq!(
            escape(&format!("a{c}b")),
            format!("a{}b", escape(&c.to_string())),
            "U+{:04X}",
            u32::from(c)
        );
    }
}

#[test]
fn long_runs_of_spaces_are_counted() {
    assert_eq!(escape(&" ".repeat(8)), " ".repeat(8));
    assert_eq!(escape(&format!("a{}b", " ".repeat(9))), "a\\s{9}b");
    assert_eq!(escape(&" ".repeat(500)), "\\s{500}");
    // The mark itself cannot be sent.
    assert_eq!(escape("\\s{9}"), "\\\\s{9}");
    let all: HashSet<String> = (0..200).map(|n| escape(&" ".repeat(n))).collect();
    assert_eq!(all.len(), 200);
}

#[test]
fn a_card_reads_well() {
    let frozen = freeze_action(
        "mail.send",
        br#"{"to":"dana@example.org","body":"Dear Dana,\nsee you.\n","tags":["a",1,1.0,null,[],{}],"size":{"w":18446744073709551615}}"#,
        "weekly roster",
        Some(&[0xab; 32]),
    )
    .unwrap();
    let expected = r#"tool        "mail.send"
definition  abababababababababababababababababababababababababababababababab
rationale   "weekly roster"
arguments   {
  "body": "Dear Dana,\u{a}
    | see you.\u{a}"
  "size": {
    "w": 18446744073709551615
  }
  "tags": [
    "a"
    1
    1.0
    null
    []
    {}
  ]
  "to": "dana@example.org"
}
"#;
    assert_eq!(action_text(&frozen), expected);
}

#[test]
fn a_header_reads_well() {
    let header = PlanHeader {
        tenant: "acme".into(),
        run: "r".into(),
        agent: "reggie".into(),
        plan: "p".into(),
        proposed_at: Timestamp { seconds: 1_767_225_600, nanos: 5 },
        context: "weekly\nroster".into(),
        action_digests: vec![Digest::new([0x11; 32])],
        continue_on_failure: true,
        allow_partial: false,
        realm: "example.org".into(),
        owner: "dana".into(),
    };
    let expected = r#"realm       "example.org"
tenant      "acme"
plan        "p"
run         "r"
agent       "reggie"
owner       "dana"
context     "weekly\u{a}
            | roster"
proposed at 2026-01-01T00:00:00.000000005Z
on failure  go on
selection   all or nothing
action 0    1111111111111111111111111111111111111111111111111111111111111111
"#;
    assert_eq!(plan_text(&freeze_plan(header).unwrap()), expected);
}

#[test]
fn moments_are_shown_right_and_apart() {
    let at = |seconds, nanos| {
        let header = PlanHeader {
            proposed_at: Timestamp { seconds, nanos },
            action_digests: vec![Digest::new([0; 32])],
            ..PlanHeader::default()
        };
        let text = plan_text(&freeze_plan(header).unwrap());
        text.lines().find_map(|l| l.strip_prefix("proposed at ")).unwrap().to_owned()
    };
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
        (-62_135_596_801, "-62135596801 s and 0 ns after 1970-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "253402300800 s and 0 ns after 1970-01-01T00:00:00Z"),
    ] {
        assert_eq!(at(seconds, 0), expected);
    }
    assert_eq!(at(-1, 999_999_999), "1969-12-31T23:59:59.999999999Z");
    let days: HashSet<String> = (-800_000..800_000).step_by(97).map(|day| at(day * 86_400, 0)).collect();
    assert_eq!(days.len(), 1_600_000_usize.div_ceil(97));
}

#[test]
fn kinds_are_told_apart() {
    let values = [
        "1",
        "1.0",
        "\"1\"",
        "0",
        "0.0",
        "null",
        "\"null\"",
        "true",
        "\"true\"",
        "\"\"",
        "[]",
        "{}",
        "\"[]\"",
        "[[]]",
        "[{}]",
        "[\"\"]",
        "[null]",
        "9223372036854775808",
        "9223372036854776000.0",
        "\"9223372036854775808\"",
        "1e21",
        "\"1e21\"",
        "\" \"",
        "\"\\n\"",
        "\"\\\\n\"",
        "\"\\\\u{a}\"",
        "\"bytes(00)\"",
    ];
    let mut texts: HashSet<String> = values.iter().map(|v| shown(&format!("{{\"a\":{v}}}"), "")).collect();
    let mut bytes = Object::new();
    bytes.insert("a", Value::Bytes(vec![0])).unwrap();
    let bytes =
        Action { tool: "demo.echo".into(), arguments: bytes, rationale: String::new(), tool_digest: None };
    texts.insert(action_text(&freeze_value_action(bytes).unwrap()));
    texts.insert(shown("{}", ""));
    texts.insert(shown("{}", "none"));
    texts.insert(action_text(&freeze_action("demo.echo", b"{}", "", Some(&[0; 32])).unwrap()));
    assert_eq!(texts.len(), values.len() + 4);
}

#[test]
fn a_string_cannot_forge_a_line() {
    let forged = "x\"\n}\ntool        \"files.delete\"\n  \"to\": \"";
    let text = shown("{}", forged);
    assert_eq!(text.lines().filter(|l| l.starts_with("tool")).count(), 1);
    assert!(text.lines().skip(3).take(3).all(|l| l.starts_with("            | ")), "{text}");
}

#[test]
fn an_error_shows_no_raw_pointer() {
    let error = read_arguments("{\"a\u{202e}\u{9b}\":[-0]}".as_bytes()).unwrap_err();
    assert_eq!(error.pointer.as_deref(), Some("/a\u{202e}\u{9b}/0"));
    assert!(error.to_string().starts_with("NEGATIVE_ZERO at `/a\\u{202e}\\u{9b}/0`: "), "{error}");
}

fn codes(arguments: &str, rationale: &str, known: Option<&[String]>) -> Vec<(WarningCode, String)> {
    let frozen = freeze_action("demo.echo", arguments.as_bytes(), rationale, None).unwrap();
    warnings_for_action(&frozen, known).into_iter().map(|w| (w.code, w.place)).collect()
}

#[test]
fn warnings_name_code_and_place() {
    use WarningCode::*;
    let one = |code, place: &str| vec![(code, place.to_owned())];
    assert_eq!(codes("{\"a\":\"plain\\nlines\\tand tabs\"}", "fine", None), []);
    assert_eq!(codes("{\"a\":\"日本語とカナ\",\"b\":\"Привет, мир\",\"c\":\"café\"}", "grüße", None), []);
    let both = [(MixedScript, "/arguments/a/1".to_owned()), (Confusable, "/arguments/a/1".to_owned())];
    assert_eq!(codes("{\"a\":[\"x\",\"p\u{430}ypal.com\"]}", "", None), both);
    assert_eq!(codes("{\"a\":\"\u{436}abc\"}", "", None), one(MixedScript, "/arguments/a"));
    assert_eq!(codes("{\"a\":\"\u{441}\u{43e}\u{440}\"}", "", None), one(Confusable, "/arguments/a"));
    assert_eq!(codes("{}", "e\u{301}", None), one(NotNfc, "/rationale"));
    assert_eq!(
        codes("{\"a/b\":{\"x\":\"pay\u{200b}pal\"}}", "", None),
        one(HiddenCharacter, "/arguments/a~1b/x")
    );
    assert_eq!(codes("{\"a\":\"\u{2800}\"}", "", None), one(HiddenCharacter, "/arguments/a"));
    assert_eq!(codes("{\"item1\":1,\"iteml\":2}", "", None), one(Confusable, "/arguments/iteml"));
    let known = ["to".to_owned(), "body".to_owned()];
    assert_eq!(codes("{\"to\":1,\"bcc\":2}", "", Some(&known)), one(UnknownArgument, "/arguments/bcc"));
    let frozen = freeze_action("demo.echo", "{\"t\u{43e}\":1}".as_bytes(), "", None).unwrap();
    let warnings = warnings_for_action(&frozen, Some(&known));
    assert!(
        warnings.iter().any(|w| w.code == UnknownArgument && w.message.ends_with("it looks like \"to\"")),
        "{warnings:?}"
    );
}

#[test]
fn warnings_are_bounded_whatever_is_sent() {
    let start = std::time::Instant::now();
    let items = vec!["\"e\u{301}\""; 50_000].join(",");
    let arguments = format!("{{\"{}\":[{items}]}}", "n".repeat(500_000));
    let frozen = freeze_action("demo.echo", arguments.as_bytes(), "", None).unwrap();
    let warnings = warnings_for_action(&frozen, None);
    // The name is too long to be named, so all its items count as one place.
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].place, "/arguments");
    let arguments = format!("{{\"n\":[{items}]}}");
    let frozen = freeze_action("demo.echo", arguments.as_bytes(), "", None).unwrap();
    let warnings = warnings_for_action(&frozen, None);
    assert_eq!(warnings.len(), display::MAX_WARNINGS + 1);
    assert_eq!(warnings.last().unwrap().code, WarningCode::MoreWarnings);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

// `PROPTEST_CASES` asks for more cases than the default of 256.
proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_texts_look_different(a in hard_text(), b in hard_text()) {
        prop_assert_eq!(escape(&a) == escape(&b), a == b);
    }

    #[test]
    fn two_actions_look_different(a in action(), b in action()) {
        let (a, b) = (freeze_value_action(a).unwrap(), freeze_value_action(b).unwrap());
        prop_assert_eq!(action_text(&a) == action_text(&b), a.bytes() == b.bytes());
    }

    #[test]
    fn an_action_changed_in_one_place_looks_different(a in action(), value in value(), text in hard_text(), which in 0..4) {
        let mut b = a.clone();
        match which {
            0 => b.rationale = text,
            1 => b.tool_digest = match a.tool_digest { None => Some(Digest::new([0; 32])), Some(_) => None },
            2 => { let _ = b.arguments.insert(text, value); }
            _ => if let Some((_, slot)) = b.arguments.iter_mut().next() { *slot = value },
        }
        let (a, b) = (freeze_value_action(a).unwrap(), freeze_value_action(b).unwrap());
        prop_assert_eq!(action_text(&a) == action_text(&b), a.bytes() == b.bytes());
    }

    #[test]
    fn a_header_changed_in_one_place_looks_different(a in header(), other in header(), which in 0..10) {
        let mut b = a.clone();
        match which {
            0 => b.tenant = other.tenant,
            1 => b.run = other.run,
            2 => b.agent = other.agent,
            3 => b.plan = other.plan,
            4 => b.proposed_at = other.proposed_at,
            5 => b.context = other.context,
            6 => b.action_digests = other.action_digests,
            7 => b.continue_on_failure = !a.continue_on_failure,
            8 => b.allow_partial = !a.allow_partial,
            _ => (b.realm, b.owner) = (a.owner.clone(), a.realm.clone()),
        }
        let (a, b) = (freeze_plan(a).unwrap(), freeze_plan(b).unwrap());
        prop_assert_eq!(plan_text(&a) == plan_text(&b), a.bytes() == b.bytes());
    }

    #[test]
    fn only_safe_characters_are_shown(action in action()) {
        let text = action_text(&freeze_value_action(action).unwrap());
        prop_assert!(text.chars().all(|c| c == '\n' || !display::is_hidden(c)));
    }
}
