//! Evaluation: attack rows S23, S24, S25, the seed's example, order, modes and cost.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::{Mode, RuleSet, stricter};
use Verdict::{AutoApprove, Deny, RequireHuman};

const SEED: &str = r#"
broker:
  mode: enforce  # enforce | observe
  rules:
    - tool: "kubectl_get"
      action: auto_approve
    - tool: "kubectl_*"
      args_match: { verb: ["delete", "drain", "scale"] }
      action: require_human
    - tool: "send_email"
      action: deny
    - tool: "webfetch"
      args_match: { url: "https://*.internal.example.com/*" }
      action: auto_approve
    - tool: "*"
      action: require_human  # default: humans review unknown actions
"#;

#[test]
fn the_example_of_the_first_day_works_as_it_stands() {
    assert_eq!(says(SEED, "kubectl_get", "{}"), AutoApprove);
    let e = ask(SEED, "kubectl_apply", r#"{"verb":"drain"}"#);
    assert_eq!((e.verdict, e.rule.as_str()), (RequireHuman, "rule-2"));
    let e = ask(SEED, "kubectl_apply", r#"{"verb":"get"}"#);
    assert_eq!((e.verdict, e.rule.as_str()), (RequireHuman, "rule-5"));
    assert_eq!(says(SEED, "send_email", "{}"), Deny);
    assert_eq!(says(SEED, "webfetch", r#"{"url":"https://a.internal.example.com/x/y"}"#), AutoApprove);
    assert_eq!(says(SEED, "webfetch", r#"{"url":"https://a.example.net/"}"#), RequireHuman);
}

#[test]
fn an_approving_url_pattern_cannot_be_stretched_over_another_host() {
    for url in [
        "https://evil.example/a.internal.example.com/",
        "https://evil.example?.internal.example.com/",
        "https://evil.example#.internal.example.com/",
        "https://evil.example\\\\.internal.example.com/",
        "https://u@evil.example:1/.internal.example.com/",
        "https://a@b.internal.example.com/",
        "https://evil.example%2f.internal.example.com/",
        "https://evil.example\\n.internal.example.com/",
        "https://evil.example\u{ff0f}.internal.example.com/",
        "https://a.internal.example.com/../x",
        "HTTPS://a.internal.example.com/x",
    ] {
        assert_eq!(says(SEED, "webfetch", &format!(r#"{{"url":"{url}"}}"#)), RequireHuman, "{url}");
    }
    // In a rule that denies, the same pattern reaches wide.
    let deny = r#"
default: require_human
rules:
  - {tool: webfetch, args_match: {url: "https://*.evil.example/*"}, action: deny}
"#;
    assert_eq!(says(deny, "webfetch", r#"{"url":"https://u@x/a.evil.example/../y"}"#), Deny);
    assert_eq!(says(deny, "webfetch", r#"{"url":"https://good.example/"}"#), RequireHuman);
}

#[test]
fn s23_names_are_exact() {
    let rules = r#"
rules:
  - {tool: mail_send, action: deny}
  - {tool: "*", action: auto_approve}
"#;
    assert_eq!(says(rules, "mail_send", "{}"), Deny);
    // The other spellings are unknown to the register, which refuses them before any rule; the
    // rules themselves do not fold them together.
    for other in ["Mail_Send", "mail_send.", "mail-send"] {
        assert_eq!(ask(rules, other, "{}").rule, "rule-2");
    }
    assert!(exequatur_canonical::freeze_action("mail_send ", b"{}", "", None).is_err());
}

#[test]
fn s24_a_wrong_shape_is_never_approved() {
    let rules = r#"
rules:
  - {tool: k, args_match: {verb: [delete, drain]}, action: require_human}
  - {tool: k, action: auto_approve}
"#;
    for arguments in [
        r#"{"verb":["get","delete"]}"#,
        r#"{"verb":{"v":"delete"}}"#,
        r#"{"verb":null}"#,
        r#"{"verb":1}"#,
        "{}",
    ] {
        let e = ask(rules, "k", arguments);
        assert_eq!(e.verdict, RequireHuman, "{arguments}");
        assert_eq!(e.rule, "rule-1");
        assert!(e.error.unwrap().contains("`verb`"), "{arguments}");
    }
    assert_eq!(says(rules, "k", r#"{"verb":"delete"}"#), RequireHuman);
    let e = ask(rules, "k", r#"{"verb":"get"}"#);
    assert_eq!((e.verdict, e.error), (AutoApprove, None));
}

#[test]
fn a_rule_that_cannot_be_decided_still_lets_a_later_rule_deny() {
    let rules = r#"
rules:
  - {tool: k, args_match: {verb: delete}, action: deny}
  - {tool: k, args_match: {ns: prod}, action: deny}
  - {tool: k, action: auto_approve}
"#;
    assert_eq!(says(rules, "k", r#"{"ns":"prod"}"#), Deny);
    assert_eq!(says(rules, "k", r#"{"ns":"test"}"#), RequireHuman);
    assert_eq!(says(rules, "k", r#"{"ns":"test","verb":"get"}"#), AutoApprove);
    let default = "rules:\n  - {tool: k, args_match: {verb: delete}, action: require_human}";
    let e = ask(default, "k", "{}");
    assert_eq!((e.verdict, e.rule.as_str()), (Deny, "default"));
    assert!(e.error.is_some());
}

#[test]
fn one_condition_that_surely_fails_settles_a_rule() {
    let rules = r#"
rules:
  - {tool: k, args_match: {verb: delete, ns: prod}, action: deny}
  - {tool: k, action: auto_approve}
"#;
    assert_eq!(says(rules, "k", r#"{"verb":"get"}"#), AutoApprove);
    assert_eq!(says(rules, "k", r#"{"verb":"delete"}"#), RequireHuman);
    assert_eq!(says(rules, "k", r#"{"verb":"delete","ns":"prod"}"#), Deny);
}

#[test]
fn s25_missing_in_an_approving_rule_is_no_match() {
    for default in ["deny", "require_human"] {
        let rules = format!(
            "default: {default}\nrules:\n  - {{tool: fetch, args_match: {{url: \"https://docs.example.org/*\"}}, action: auto_approve}}\n"
        );
        for arguments in [
            "{}",
            r#"{"URL":"https://docs.example.org/a"}"#,
            r#"{"url":""}"#,
            r#"{"url":null}"#,
            r#"{"url":["https://docs.example.org/a"]}"#,
        ] {
            let e = ask(&rules, "fetch", arguments);
            assert_eq!((e.verdict.as_str(), e.rule.as_str()), (default, "default"), "{arguments}");
        }
        assert_eq!(says(&rules, "fetch", r#"{"url":"https://docs.example.org/a/b?c"}"#), AutoApprove);
    }
}

#[test]
fn scalars_match_by_type_and_exact_value() {
    let rules = |pattern: &str| {
        format!("rules:\n  - {{tool: t, args_match: {{v: {pattern}}}, action: auto_approve}}\n")
    };
    for (pattern, yes, no) in [
        ("1", "1", r#""1""#),
        ("1", "1", "1.0"),
        ("1.0", "1.0", "1"),
        ("18446744073709551615", "18446744073709551615", "18446744073709551614"),
        ("9007199254740993", "9007199254740993", "9007199254740992"),
        ("true", "true", r#""true""#),
        ("null", "null", "false"),
        ("'*'", r#""anything""#, "1"),
        ("a", r#""a""#, r#""A""#),
        ("'a\\*'", r#""a*""#, r#""ab""#),
        ("[1, x, true]", r#""x""#, r#""y""#),
    ] {
        assert_eq!(says(&rules(pattern), "t", &format!(r#"{{"v":{yes}}}"#)), AutoApprove, "{pattern} {yes}");
        assert_eq!(says(&rules(pattern), "t", &format!(r#"{{"v":{no}}}"#)), Deny, "{pattern} {no}");
    }
    // A number of another type leaves a denying rule undecided.
    let deny =
        "rules:\n  - {tool: t, args_match: {v: 1}, action: deny}\n  - {tool: t, action: auto_approve}\n";
    assert_eq!(says(deny, "t", r#"{"v":1.0}"#), RequireHuman);
    assert_eq!(says(deny, "t", r#"{"v":2}"#), AutoApprove);
}

#[test]
fn paths_walk_into_objects_only() {
    let rules = r#"
rules:
  - {tool: t, args_match: {"a.b": x, "c\\.d": y}, action: auto_approve}
"#;
    assert_eq!(says(rules, "t", r#"{"a":{"b":"x"},"c.d":"y"}"#), AutoApprove);
    for arguments in [
        r#"{"a.b":"x","c.d":"y"}"#,
        r#"{"a":[{"b":"x"}],"c.d":"y"}"#,
        r#"{"a":{"b":"x"},"c":{"d":"y"}}"#,
        r#"{"a":"x","c.d":"y"}"#,
    ] {
        assert_eq!(says(rules, "t", arguments), Deny, "{arguments}");
    }
}

#[test]
fn text_that_is_too_long_for_a_pattern_is_not_decided() {
    let rules =
        "rules:\n  - {tool: t, args_match: {v: 'x*'}, action: deny}\n  - {tool: t, action: auto_approve}\n";
    let long = "y".repeat(16 * 1024 + 1);
    assert_eq!(says(rules, "t", &format!(r#"{{"v":"{long}"}}"#)), RequireHuman);
    assert_eq!(says(rules, "t", &format!(r#"{{"v":"{}"}}"#, &long[1..])), AutoApprove);
    let slow = format!(
        "rules:\n  - {{tool: t, args_match: {{v: '{}b'}}, action: deny}}\n  - {{tool: t, action: auto_approve}}\n",
        "*a".repeat(500)
    );
    let start = Instant::now();
    assert_eq!(says(&slow, "t", &format!(r#"{{"v":"{}"}}"#, "a".repeat(16 * 1024))), AutoApprove);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn observe_lets_through_only_what_can_be_undone() {
    let rules = "mode: observe\nrules:\n  - {tool: a, action: deny}\n  - {tool: b, action: require_human}\n  - {tool: c, action: auto_approve}\n";
    let set = file::read(rules).unwrap();
    let compiled = Compiled::new(&set);
    for (tool, enforce) in [("a", Deny), ("b", RequireHuman), ("c", AutoApprove), ("d", Deny)] {
        let undoable = evaluate(&compiled, tool, &args("{}"), false);
        assert_eq!(
            (undoable.verdict, undoable.enforce_verdict, undoable.mode),
            (AutoApprove, enforce, Mode::Observe)
        );
        let irreversible = evaluate(&compiled, tool, &args("{}"), true);
        assert_eq!((irreversible.verdict, irreversible.enforce_verdict), (enforce, enforce));
    }
    let named = Compiled::new(&file::read(&format!("observe_irreversible: true\n{rules}")).unwrap());
    assert_eq!(evaluate(&named, "a", &args("{}"), true).verdict, AutoApprove);
    // In enforce mode the word changes nothing.
    let enforce = format!("observe_irreversible: true\n{}", rules.replace("observe\n", "enforce\n"));
    assert_eq!(
        evaluate(&Compiled::new(&file::read(&enforce).unwrap()), "a", &args("{}"), false).verdict,
        Deny
    );
}

#[test]
fn times_come_from_the_rule() {
    let rules = "default: require_human\nrules:\n  - {tool: a, action: require_human, expires: never, window: 1h}\n  - {tool: b, action: require_human, expires: 2d}\n";
    let a = ask(rules, "a", "{}");
    assert_eq!((a.expires, a.window), (None, Duration::from_secs(3600)));
    let b = ask(rules, "b", "{}");
    assert_eq!((b.expires, b.window), (Some(Duration::from_secs(172_800)), Duration::from_secs(900)));
    let c = ask(rules, "c", "{}");
    assert_eq!((c.expires, c.window), (Some(Duration::from_secs(86_400)), Duration::from_secs(900)));
}

#[test]
fn strictness_is_an_order() {
    assert!(AutoApprove < RequireHuman && RequireHuman < Deny);
    for (a, b, out) in
        [(AutoApprove, Deny, Deny), (RequireHuman, AutoApprove, RequireHuman), (Deny, Deny, Deny)]
    {
        assert_eq!(stricter(a, b), out);
        assert_eq!(stricter(b, a), out);
    }
}

fn examined(rules: &Compiled, tool: &str) -> usize {
    let arguments = args("{}");
    crate::decide(rules, &Call::new(tool, &arguments)).examined
}

#[test]
fn cost_does_not_grow_with_rules_that_a_call_cannot_reach() {
    let rules = |n: usize| {
        let mut text = "rules:\n".to_owned();
        for i in 0..n {
            let tool = match i % 3 {
                0 => format!("t{i}.x"),
                1 => format!("t{i}.*"),
                _ => format!("'*.t{i}'"),
            };
            text.push_str(&format!("  - {{tool: {tool}, action: deny}}\n"));
        }
        text.push_str("  - {tool: mine, action: auto_approve}\n");
        Compiled::new(&file::read(&text).unwrap())
    };
    let (small, large) = (rules(3), rules(9000));
    assert_eq!(examined(&small, "mine"), 1);
    assert_eq!(examined(&large, "mine"), 1);
    assert_eq!(examined(&large, "t4.y"), 1);
    assert_eq!(examined(&large, "y.t5"), 1);
    let time = |c: &Compiled| {
        let start = Instant::now();
        for _ in 0..2000 {
            assert_eq!(evaluate(c, "mine", &args("{}"), true).verdict, AutoApprove);
        }
        start.elapsed()
    };
    let (a, b) = (time(&small), time(&large));
    assert!(b < a * 10 + Duration::from_millis(200), "{a:?} against {b:?}");
}

fn slow_match(glob: &str, text: &str) -> bool {
    fn go(g: &[char], t: &[char]) -> bool {
        match g.split_first() {
            None => t.is_empty(),
            Some(('*', rest)) => (0..=t.len()).any(|i| go(rest, &t[i..])),
            Some((c, rest)) => t.first() == Some(c) && go(rest, &t[1..]),
        }
    }
    go(&glob.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn the_index_finds_what_a_walk_over_all_rules_finds(
        globs in proptest::collection::vec("(a|b|\\.){0,2}\\*?(a|b|\\.){0,2}\\*?(a|b){0,2}", 1..12),
        tool in "[ab][ab.]{0,5}",
    ) {
        let globs: Vec<&String> = globs.iter().filter(|g| !g.is_empty() && !g.starts_with('.') && !g.contains("***")).collect();
        prop_assume!(!globs.is_empty());
        let text: String = globs.iter().map(|g| format!("  - {{tool: '{g}', action: deny}}\n")).collect();
        let compiled = Compiled::new(&file::read(&format!("rules:\n{text}")).unwrap());
        let found = evaluate(&compiled, &tool, &args("{}"), true).rule;
        let first = globs.iter().position(|g| slow_match(g, &tool));
        let wanted = first.map_or("default".to_owned(), |i| format!("rule-{}", i + 1));
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = RuleSet::verify(&bytes);
    }
}
