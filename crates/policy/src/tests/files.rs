//! Files and bytes: attack rows S27 and S28.

use exequatur_proto::policy::v1 as proto;
use prost::Message as _;

use crate::{PolicyError, RuleSet, file};

fn broken(text: &str, line: usize, message: &str) {
    let e = file::read(text).expect_err(text);
    assert!(e.message.contains(message), "{text}: {e}");
    assert_eq!(e.line, line, "{text}: {e}");
}

#[test]
fn s27_mode() {
    broken("mode: Observ\nrules:\n  - {tool: a, action: deny}\n", 1, "did you mean `observe`?");
    broken("mode: ENFORCE\nrules:\n  - {tool: a, action: deny}\n", 1, "did you mean `enforce`?");
    broken("Mode: observe\nrules:\n  - {tool: a, action: deny}\n", 1, "did you mean `mode`?");
    let set = file::read("rules:\n  - {tool: a, action: deny}\n").unwrap();
    assert_eq!(set.message().mode(), proto::Mode::Enforce);
}

#[test]
fn s28_what_is_incomplete_or_mistyped_is_refused_whole() {
    broken("", 1, "empty");
    broken("rules: []", 1, "the list of rules is empty");
    broken("rules:", 1, "must be a list, is nothing");
    broken("mode: enforce", 1, "`rules` is missing");
    broken("rules:\n  - {tool: a, action: auto-approve}\n", 2, "did you mean `auto_approve`?");
    broken("rules:\n  - {tool: a, action: approve}\n", 2, "is not a word here");
    broken("rules:\n  - {action: deny}\n", 2, "`tool` is missing");
    broken("rules:\n  - {tools: a, action: deny}\n", 2, "did you mean `tool`?");
    broken("rules:\n  - {tool: a}\n", 2, "`action` is missing");
    broken("rules:\n  - {tool: a, acton: deny}\n", 2, "did you mean `action`?");
    broken("rules:\n  - {tool: '', action: deny}\n", 2, "a tool is named by");
    broken("rules:\n  - {tool: 'a b', action: deny}\n", 2, "a tool is named by");
    broken("rules:\n  - {tool: '[ab]', action: deny}\n", 2, "a tool is named by");
    broken("rules:\n  - {tool: 'a***', action: deny}\n", 2, "more than two");
    broken("rules:\n  - {tool: a, args_mach: {v: 1}, action: deny}\n", 2, "did you mean `args_match`?");
    broken("rules:\n  - {tool: a, args_match: {}, action: deny}\n", 2, "leave it out");
    broken("rules:\n  - {tool: a, args_match: {v: []}, action: deny}\n", 2, "nothing could match");
    broken("rules:\n  - {tool: a, args_match: {v: {w: 1}}, action: deny}\n", 2, "`w` is not a key here");
    broken("rules:\n  - {tool: a, args_match: {v..w: 1}, action: deny}\n", 2, "none empty");
    broken("rules:\n  - {tool: a, args_match: {v: 1e400}, action: deny}\n", 2, "cannot be an argument");
    broken("rules:\n  - {tool: a, args_match: {v: 010}, action: deny}\n", 2, "quote it");
    broken(
        "rules:\n  - {tool: a, action: deny}\n  - {tool: b, action: deny, whem: 'true'}\n",
        3,
        "`whem` is not a key here, did you mean `when`?",
    );
    broken(
        "rules:\n  - {tool: a, action: deny, id: x}\n  - {tool: a, action: deny, id: x}\n",
        3,
        "another rule has the id `x`",
    );
    broken("rules:\n  - {tool: a, action: deny, id: default}\n", 2, "what no rule matches");
    broken("default: auto_approve\nrules:\n  - {tool: a, action: deny}\n", 1, "never approved");
    broken("rules:\n  - {tool: a, action: require_human, expires: 24}\n", 2, "one of s, m, h, d");
    broken("rules:\n  - {tool: a, action: require_human, expires: 0s}\n", 2, "1 second to 366 days");
    broken("rules:\n  - {tool: a, action: require_human, window: never}\n", 2, "one of s, m, h, d");
    broken("rules:\n  - {tool: a, action: require_human, window: 8d}\n", 2, "1 second to 7 days");
    broken("rules:\n  - {tool: a, action: deny, window: 1h}\n", 2, "only with `action: require_human`");
    broken("rules:\n  - {tool: a, action: deny, reason: \"a\\u202eb\"}\n", 2, "hidden characters");
    broken("broker:\n  rules:\n    - {tool: a, action: deny}\nextra: 1\n", 4, "`extra` is not a key here");
    let mut twenty = "rules:\n".to_owned();
    for i in 0..20 {
        let action = if i == 13 { "alow" } else { "deny" };
        twenty.push_str(&format!("  - {{tool: t{i}, action: {action}}}\n"));
    }
    broken(&twenty, 15, "`alow` is not a word here");
    assert_eq!(file::read(&twenty.replace("alow", "deny")).unwrap().message().rules.len(), 20);
}

#[test]
fn equal_files_give_equal_bytes() {
    let a = file::read("mode: enforce\nrules:\n  - {tool: a, action: deny}\n").unwrap();
    let b = file::read("broker:\n  rules:\n    - action: deny\n      tool: 'a'\n").unwrap();
    assert_eq!(a.bytes(), b.bytes());
    assert_eq!(a.digest(), exequatur_canonical::rule_set_digest(a.bytes()));
    assert_eq!(RuleSet::verify(a.bytes()).unwrap(), a);
}

#[test]
fn bytes_are_checked_as_strictly_as_files() {
    let good =
        file::read("rules:\n  - {tool: a, args_match: {v: ['x*', 1]}, action: require_human}\n").unwrap();
    let refused = |change: &dyn Fn(&mut proto::RuleSet)| {
        let mut message = good.message().clone();
        change(&mut message);
        let error = RuleSet::verify(&message.encode_to_vec()).unwrap_err();
        assert!(matches!(error, PolicyError::Invalid { .. }), "{error}");
    };
    refused(&|s| s.mode = 0);
    refused(&|s| s.mode = 7);
    refused(&|s| s.default_verdict = 0);
    refused(&|s| s.default_verdict = proto::Verdict::AutoApprove.into());
    refused(&|s| s.rules.clear());
    refused(&|s| s.rules.push(s.rules[0].clone()));
    refused(&|s| s.rules[0].id.clear());
    refused(&|s| s.rules[0].tool.clear());
    refused(&|s| s.rules[0].verdict = 0);
    refused(&|s| s.rules[0].verdict = 9);
    refused(&|s| s.rules[0].expires_s = 0);
    refused(&|s| s.rules[0].never_expires = true);
    refused(&|s| s.rules[0].window_s = 0);
    refused(&|s| s.rules[0].reason = "a\nb".to_owned());
    refused(&|s| s.rules[0].args_match[0].path = "a..b".to_owned());
    refused(&|s| s.rules[0].args_match[0].any_of.clear());
    refused(&|s| s.rules[0].args_match[0].any_of[0].pattern = None);
    refused(&|s| {
        s.rules[0].args_match[0].any_of[0].pattern = Some(proto::pattern::Pattern::Glob("a\\".to_owned()))
    });
    refused(&|s| {
        let nan = exequatur_proto::action::v1::value::Kind::DoubleValue(f64::NAN);
        s.rules[0].args_match[0].any_of[1].pattern =
            Some(proto::pattern::Pattern::Scalar(exequatur_proto::action::v1::Value { kind: Some(nan) }));
    });
    assert_eq!(
        RuleSet::verify(&[good.bytes(), &[0xfa, 0x3f, 0x00]].concat()),
        Err(PolicyError::NotCanonical)
    );
    assert_eq!(RuleSet::verify(&vec![0; (1 << 20) + 1]), Err(PolicyError::TooLarge((1 << 20) + 1)));
}
