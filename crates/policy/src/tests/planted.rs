//! Planted mistakes that `policy check` must find, and rules that it must not complain about.

use super::*;
use crate::{KnownTool, findings};

fn tools() -> Vec<KnownTool> {
    let tool = |name: &str, reversible, properties: &str| KnownTool {
        name: name.to_owned(),
        reversible,
        schema: args(&format!(
            r#"{{"type":"object","additionalProperties":false,"properties":{{{properties}}}}}"#
        )),
    };
    vec![
        tool("kube.get", true, r#""verb":{"type":"string","enum":["get","list"]},"ns":{"type":"string"}"#),
        tool(
            "mail.send",
            false,
            r#""to":{"type":"array","items":{"type":"string"}},"subject":{"type":"string"}"#,
        ),
        tool(
            "pay",
            false,
            r#""amount":{"type":"number"},"dry":{"type":"boolean"},"who":{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"}}}"#,
        ),
        tool("fetch", true, r#""url":{"type":"string"}"#),
    ]
}

fn codes(rules: &str) -> Vec<&'static str> {
    let set = file::read(&format!("rules:\n{rules}\n")).unwrap_or_else(|e| panic!("{rules}: {e}"));
    findings(&set, Some(&tools())).into_iter().map(|f| f.code).collect()
}

#[test]
fn every_planted_mistake_is_found() {
    let planted: &[(&str, &str)] = &[
        ("shadowed", "  - {tool: '*', action: require_human}\n  - {tool: pay, action: deny}"),
        ("shadowed", "  - {tool: 'k*', action: deny}\n  - {tool: kube.get, action: deny}"),
        ("shadowed", "  - {tool: '*.send', action: deny}\n  - {tool: mail.send, action: deny}"),
        ("shadowed", "  - {tool: pay, action: deny}\n  - {tool: pay, action: auto_approve}"),
        (
            "shadowed",
            "  - {tool: pay, args_match: {dry: [true, false]}, action: deny}\n  - {tool: pay, args_match: {dry: true}, action: deny}",
        ),
        (
            "shadowed",
            "  - {tool: fetch, args_match: {url: 'a*'}, action: deny}\n  - {tool: fetch, args_match: {url: 'ab*'}, action: deny}",
        ),
        (
            "shadowed",
            "  - {tool: fetch, args_match: {url: 'a*'}, action: deny}\n  - {tool: fetch, args_match: {url: 'abc'}, action: deny}",
        ),
        (
            "shadowed",
            "  - {tool: pay, when: 'args.amount > 1', action: deny}\n  - {tool: pay, when: 'args.amount > 1', args_match: {dry: true}, action: deny}",
        ),
        (
            "shadowed",
            "  - {tool: pay, agent: a, action: deny}\n  - {tool: pay, agent: a, args_match: {dry: true}, action: auto_approve}",
        ),
        (
            "shadowed",
            "  - {tool: pay, reversible: false, action: deny}\n  - {tool: pay, reversible: false, action: deny}",
        ),
        ("approves_all", "  - {tool: '*', action: auto_approve}"),
        ("approves_all", "  - {tool: '**', action: auto_approve}"),
        ("constant_when", "  - {tool: pay, when: '1 == 1', action: deny}"),
        ("constant_when", "  - {tool: pay, when: 'true', action: deny}"),
        (
            "open_host",
            "  - {tool: fetch, args_match: {url: 'https://docs.example.org*'}, action: auto_approve}",
        ),
        ("open_host", "  - {tool: fetch, args_match: {url: 'https://*'}, action: auto_approve}"),
        ("escapable", "  - {tool: fetch, args_match: {url: 'https://evil.example/*'}, action: deny}"),
        ("escapable", "  - {tool: fetch, args_match: {url: 'https://evil.example/'}, action: require_human}"),
        ("redundant_value", "  - {tool: fetch, args_match: {url: ['a*', abc]}, action: deny}"),
        ("redundant_value", "  - {tool: fetch, args_match: {url: [abc, abc]}, action: deny}"),
        ("unknown_tool", "  - {tool: pays, action: deny}"),
        ("unknown_tool", "  - {tool: Pay, action: deny}"),
        ("unknown_tool", "  - {tool: 'mail_*', action: deny}"),
        ("never_reversible", "  - {tool: pay, reversible: true, action: deny}"),
        ("unknown_argument", "  - {tool: pay, args_match: {amuont: 1}, action: deny}"),
        ("unknown_argument", "  - {tool: pay, args_match: {Amount: 1}, action: deny}"),
        ("unknown_argument", "  - {tool: pay, args_match: {who.ID: x}, action: deny}"),
        ("unknown_argument", "  - {tool: pay, when: 'args.amout > 1', action: deny}"),
        ("argument_type", "  - {tool: pay, args_match: {amount: '1'}, action: deny}"),
        ("argument_type", "  - {tool: pay, args_match: {dry: 'true'}, action: deny}"),
        ("argument_type", "  - {tool: mail.send, args_match: {to: a@example.org}, action: deny}"),
        ("argument_type", "  - {tool: mail.send, args_match: {subject: {any: x}}, action: deny}"),
        ("argument_type", "  - {tool: fetch, args_match: {url: {number: 1}}, action: deny}"),
        ("impossible_value", "  - {tool: kube.get, args_match: {verb: delete}, action: deny}"),
        ("impossible_value", "  - {tool: kube.get, args_match: {verb: [get, lst]}, action: deny}"),
        ("not_enforced", "  - {tool: pay, action: require_human, reviewers: [ann]}"),
        ("not_enforced", "  - {tool: pay, action: require_human, quorum: 2}"),
        ("not_enforced", "  - {tool: pay, action: deny, notify: ann}"),
        ("not_enforced", "  - {tool: pay, action: require_human, escalation: {after: 1h, to: ann}}"),
        ("not_enforced", "  - {tool: pay, action: auto_approve, rate: {count: 3, per: 1h}}"),
    ];
    assert!(planted.len() >= 30);
    for (code, rules) in planted {
        assert!(codes(rules).contains(code), "{code} in {rules}: {:?}", codes(rules));
    }
}

#[test]
fn right_rules_are_left_alone() {
    for rules in [
        "  - {tool: kube.get, args_match: {verb: get}, action: auto_approve}\n  - {tool: 'kube.*', action: require_human}\n  - {tool: '*', action: deny}",
        "  - {tool: mail.send, args_match: {to: {all: {email: '*@example.org'}}}, action: auto_approve}",
        "  - {tool: pay, args_match: {amount: {number: {max: 10}}}, action: auto_approve}\n  - {tool: pay, when: 'args.amount > 1000.0', action: deny}",
        "  - {tool: fetch, args_match: {url: {url: 'https://evil.example/*'}}, action: deny}\n  - {tool: fetch, args_match: {url: 'https://*.example.org/*'}, action: auto_approve}",
        // The pattern of a rule that approves reaches less than the same one in a rule that denies.
        "  - {tool: fetch, args_match: {url: 'a*b'}, action: auto_approve}\n  - {tool: fetch, args_match: {url: 'a*b'}, action: deny}",
        "  - {tool: pay, mode: observe, action: deny}\n  - {tool: pay, action: auto_approve}",
    ] {
        assert!(codes(rules).is_empty(), "{rules}: {:?}", codes(rules));
    }
}
