//! Attack rows S20, S23 to S28 widened to kinds: tables of spellings that must not escape a rule that
//! denies, and must not be let through by one that approves, each with counter-cases.

use super::*;
use Verdict::{AutoApprove, Deny, RequireHuman};

/// One argument `v` under a rule that denies what matches and approves the rest, and under one that
/// approves what matches.
fn both(condition: &str, value: &str) -> (Verdict, Verdict) {
    let arguments = format!("{{\"v\":{value}}}");
    let deny = format!(
        "rules:\n  - {{tool: t, args_match: {{v: {condition}}}, action: deny}}\n  - {{tool: t, action: auto_approve}}\n"
    );
    let approve = format!(
        "default: require_human\nrules:\n  - {{tool: t, args_match: {{v: {condition}}}, action: auto_approve}}\n"
    );
    (says(&deny, "t", &arguments), says(&approve, "t", &arguments))
}

/// None may be approved by the rule that denies; none by the rule that approves.
fn no_escape(condition: &str, spellings: &[&str]) {
    for value in spellings {
        let (denied, approved) = both(condition, value);
        assert_ne!(denied, AutoApprove, "{condition} lets {value} through");
        assert_eq!(approved, RequireHuman, "{condition} approves {value}");
    }
}

/// What means the same and is written plainly.
fn same(condition: &str, spellings: &[&str]) {
    for value in spellings {
        assert_eq!(both(condition, value), (Deny, AutoApprove), "{condition} {value}");
    }
}

/// What surely means something else.
fn other(condition: &str, spellings: &[&str]) {
    for value in spellings {
        assert_eq!(both(condition, value), (AutoApprove, RequireHuman), "{condition} {value}");
    }
}

#[test]
fn urls() {
    let condition = "{url: 'https://evil.example/*'}";
    no_escape(
        condition,
        &[
            r#""https://me@evil.example/a""#,
            r#""https://me:pw@evil.example/a""#,
            r#""https://good.example@evil.example/a""#,
            r#""https://evil.example@good.example/a""#,
            r#""https://good.example\\@evil.example/a""#,
            r#""https://evil.example\\@good.example/a""#,
            r#""https://evil.example./a""#,
            r#""https://evil.example.:443/a""#,
            r#""https://evil.example:0443/a""#,
            r#""https://evil.example:/a""#,
            r#""https://%65vil.example/a""#,
            r#""https://evil%2eexample/a""#,
            r#""https://ev\til.example/a""#,
            r#""https://ev\nil.example/a""#,
            r#"" https://evil.example/a""#,
            r#""https://evil.example/a ""#,
            r#""https:/evil.example/a""#,
            r#""https:evil.example/a""#,
            r#""https:///evil.example/a""#,
            r#""https:\\\\evil.example\\a""#,
            r#""//evil.example/a""#,
            r#""evil.example/a""#,
            r#""https://ev\u00adil.example/a""#,
            r#""https://ev\u200bil.example/a""#,
            r#""https://evil\u3002example/a""#,
            r#""https://evil\uff0eexample/a""#,
            r#""https://\uff45vil.example/a""#,
            r#""https://evil.example/../a""#,
            r#""https://evil.example/%2e%2e/a""#,
            r#""https://evil.example/b/..%2fa""#,
            r#""https://evil.example/b%252fa""#,
            r#""https://evil.example//a""#,
            r#""https://evil.example/./a""#,
            r#""https://evil.example/a%00b""#,
            r#""https://evil.example/a%5cb""#,
            r#""\thttps://evil.example/a""#,
            r#""https://evil.example\\a""#,
            r#""https://\u2460evil.example@evil.example/a""#,
            r#""https://user%40good.example@evil.example/""#,
            r#""""#,
            "null",
            r#"["https://evil.example/a"]"#,
            r#"{"url":"https://evil.example/a"}"#,
        ],
    );
    same(
        condition,
        &[
            r#""https://evil.example/a""#,
            r#""https://evil.example/""#,
            r#""https://evil.example""#,
            r#""HTTPS://EVIL.example/a""#,
            r#""https://evil.example:443/a""#,
            r#""https://evil.example/a?b=c#d""#,
            r#""https://evil.example/%61""#,
        ],
    );
    other(
        condition,
        &[
            r#""https://good.example/a""#,
            r#""https://evil.example.good.example/a""#,
            r#""https://notevil.example/a""#,
            r#""https://evil.example:8443/a""#,
            r#""https://good.example/?evil.example""#,
        ],
    );
}

#[test]
fn hosts() {
    let condition = "{host: ['*.evil.example', 'b\u{fc}cher.example', 127.0.0.1]}";
    no_escape(
        condition,
        &[
            r#""a.evil.example.""#,
            r#""a.evil.example..""#,
            r#""a.evil.example:80""#,
            r#""me@a.evil.example""#,
            r#"" a.evil.example""#,
            r#""a.evil.example ""#,
            r#""a%2eevil.example""#,
            r#""a.ev\u00adil.example""#,
            r#""a.ev\u200bil.example""#,
            r#""a\u3002evil.example""#,
            r#""a\uff0eevil.example""#,
            r#""a.\uff45vil.example""#,
            r#""a.evil.example/""#,
            r#""a.evil.example\u0000""#,
            r#""0x7f.1""#,
            r#""0x7f000001""#,
            r#""2130706433""#,
            r#""017700000001""#,
            r#""127.1""#,
            r#""0177.0.0.1""#,
            r#""127.0.0.1.""#,
            r#""[::ffff:127.0.0.1]""#,
            r#""::ffff:7f00:1""#,
            r#""bu\u0308cher.example""#,
            "null",
            "7",
            "[]",
        ],
    );
    same(
        condition,
        &[
            r#""a.evil.example""#,
            r#""A.EVIL.example""#,
            r#""127.0.0.1""#,
            r#""xn--bcher-kva.example""#,
            r#""b\u00fccher.example""#,
        ],
    );
    other(
        condition,
        &[r#""evil.example""#, r#""good.example""#, r#""128.0.0.1""#, r#""a.evil.example.org""#],
    );
}

#[test]
fn paths() {
    let condition = "{path: '/etc/secret/*'}";
    no_escape(
        condition,
        &[
            r#""/etc/./secret/a""#,
            r#""/etc//secret/a""#,
            r#""//etc/secret/a""#,
            r#""/etc/x/../secret/a""#,
            r#""/tmp/../etc/secret/a""#,
            r#""/etc/secret/../secret/a""#,
            r#""/etc/secret/b/../../passwd""#,
            r#""/etc%2fsecret/a""#,
            r#""/etc%252fsecret/a""#,
            r#""/%65tc/secret/a""#,
            r#""\\etc\\secret\\a""#,
            r#""/etc\\secret/a""#,
            r#""/etc/secret./a""#,
            r#""/etc/secret /a""#,
            r#""/etc/secret/a\u0000.txt""#,
            r#""/etc/secret/a\u200b""#,
            r#""/etc/secret/a::$DATA""#,
            r#""~/../etc/secret/a""#,
            r#""$HOME/etc/secret/a""#,
            r#""/etc/secret/..""#,
            r#""/etc/secret/.""#,
            r#""..""#,
            "null",
            "[]",
        ],
    );
    same(condition, &[r#""/etc/secret/a""#, r#""/etc/secret/a/b""#]);
    other(condition, &[r#""/etc/passwd""#, r#""/etc/secrets/a""#, r#""/srv/etc/secret/a""#, r#""etc/x""#]);
    // Where case does not count, it must not escape.
    for value in [r#""/ETC/secret/a""#, r#""/etc/Secret/A""#] {
        assert_eq!(both(condition, value), (Deny, RequireHuman), "{value}");
    }
}

#[test]
fn addresses() {
    let condition = "{email: '*@evil.example'}";
    no_escape(
        condition,
        &[
            r#""Eve <a@evil.example>""#,
            r#""<a@evil.example>""#,
            r#""a@good.example,b@evil.example""#,
            r#""a@good.example; b@evil.example""#,
            r#""a@good.example b@evil.example""#,
            r#""a@evil.example.""#,
            r#""a @evil.example""#,
            r#""a@ evil.example""#,
            r#""\"a b\"@evil.example""#,
            r#""a(comment)@evil.example""#,
            r#""a@evil.example (x)""#,
            r#""a@good.example@evil.example""#,
            r#""a@evil%2eexample""#,
            r#""a%40evil.example""#,
            r#""mailto:a@evil.example""#,
            r#""a@ev\u00adil.example""#,
            r#""a@evil\u3002example""#,
            r#""a\uff20evil.example""#,
            r#""a@evil.example\nbcc: b@good.example""#,
            r#"" a@evil.example""#,
            r#""""#,
            "null",
            r#"["a@evil.example"]"#,
        ],
    );
    same(condition, &[r#""a@evil.example""#, r#""a@EVIL.example""#, r#""a.b+c@evil.example""#]);
    other(condition, &[r#""a@good.example""#, r#""evil.example@good.example""#, r#""a@sub.evil.example""#]);
    for value in [r#""eve+news@good.example""#, r#""EVE@good.example""#] {
        assert_eq!(both("{email: eve@good.example}", value), (Deny, RequireHuman), "{value}");
    }
}

#[test]
fn numbers_and_lists() {
    let condition = "{number: {above: 100}}";
    for value in ["101", "100.5", "1e3", "1E+3", "18446744073709551615", "100.00000000000001"] {
        assert_eq!(both(condition, value), (Deny, AutoApprove), "{value}");
    }
    for value in ["100", "100.0", "0", "-1", "-1e300"] {
        assert_eq!(both(condition, value), (AutoApprove, RequireHuman), "{value}");
    }
    no_escape(condition, &[r#""500""#, r#""1e3""#, "[500]", "{}", "null", "true", r#""""#]);
    assert_eq!(both("{any: delete}", r#"["get","delete"]"#), (Deny, AutoApprove));
    assert_eq!(both("{all: [get, list]}", r#"["get","delete"]"#), (AutoApprove, RequireHuman));
    no_escape("{all: [get, list]}", &["[]", r#""get""#, r#"[["get"]]"#, "[1]", "null"]);
}

#[test]
fn s26_an_error_in_cel_is_never_no_match() {
    let deny = |when: &str, arguments: &str| {
        let rules = format!(
            "rules:\n  - {{tool: t, when: '{when}', action: deny}}\n  - {{tool: '*', action: auto_approve}}\n"
        );
        let e = ask(&rules, "t", arguments);
        assert_eq!(e.error.is_some(), e.verdict == RequireHuman, "{when} {arguments}: {e:?}");
        e.verdict
    };
    for arguments in
        ["{}", r#"{"amount":"500"}"#, r#"{"amount":[500]}"#, r#"{"amount":null}"#, r#"{"amount":{}}"#]
    {
        assert_eq!(deny("args.amount > 100", arguments), RequireHuman, "{arguments}");
    }
    for arguments in [r#"{"amount":1e3}"#, r#"{"amount":101}"#, r#"{"amount":18446744073709551615}"#] {
        assert_eq!(deny("args.amount > 100", arguments), Deny, "{arguments}");
    }
    assert_eq!(deny("args.amount > 100", r#"{"amount":100}"#), AutoApprove);
    // CEL calls values of two kinds unequal; here they cannot be compared.
    for arguments in [r#"{"v":["delete"]}"#, r#"{"v":null}"#, r#"{"v":1}"#, r#"{"v":{"v":"delete"}}"#] {
        assert_eq!(deny("args.v == \"delete\"", arguments), RequireHuman, "{arguments}");
        assert_eq!(deny("args.v in [\"delete\", \"drain\"]", arguments), RequireHuman, "{arguments}");
    }
    assert_eq!(deny("args.v", r#"{"v":1}"#), RequireHuman);
    assert_eq!(deny("agent == \"a\"", "{}"), RequireHuman);
    assert_eq!(deny("1 / 0 == 1 || args.v > 1", r#"{"v":0}"#), RequireHuman);
    let approve =
        "default: require_human\nrules:\n  - {tool: t, when: 'args.v != \"delete\"', action: auto_approve}\n";
    assert_eq!(says(approve, "t", r#"{"v":"get"}"#), AutoApprove);
    for arguments in ["{}", r#"{"v":["delete"]}"#, r#"{"v":null}"#, r#"{"v":"delete"}"#] {
        assert_eq!(says(approve, "t", arguments), RequireHuman, "{arguments}");
    }
}

#[test]
fn s20_cel_that_is_huge_deep_or_slow_is_refused() {
    let read = |when: &str| {
        file::read(&format!("rules:\n  - {{tool: t, when: '{when}', action: deny}}\n")).map(drop)
    };
    let start = std::time::Instant::now();
    for bad in [
        "(".repeat(500) + "1" + &")".repeat(500),
        "[".repeat(2000),
        "!".repeat(900) + "true",
        "-".repeat(900) + "1",
        "true ? ".repeat(100),
        "x".repeat(2000),
        "args.".to_owned(),
        "argz.v == 1".to_owned(),
        "args.v.matches(\"a\")".to_owned(),
        "inputs.size() > 0".to_owned(),
        "args.a.all(x, x.all(y, y.all(z, z > 1)))".to_owned(),
        String::new(),
    ] {
        let _ = read(&bad).expect_err(&bad);
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    let items = vec!["1"; 5000].join(",");
    let rules = "rules:\n  - {tool: t, when: 'args.a.all(x, args.a.all(y, x == y))', action: deny}\n  - {tool: t, action: auto_approve}\n";
    let e = ask(rules, "t", &format!("{{\"a\":[{items}]}}"));
    assert_eq!(e.verdict, RequireHuman);
    assert!(e.error.unwrap().contains("too costly"));
    assert_eq!(says(rules, "t", r#"{"a":[1,1]}"#), Deny);
}

#[test]
fn windows_of_time_at_their_edges() {
    let rules = "rules:\n  - {tool: t, time: {days: [fri], from: '22:00', to: '02:00', offset: '+01:00'}, action: auto_approve}\n";
    let compiled = Compiled::new(&file::read(rules).unwrap());
    let none = args("{}");
    // 2026-01-02 was a Friday; 22:00 at +01:00 is 21:00 UTC.
    let friday = 1_767_312_000 + 21 * 3600;
    for (at, verdict) in [
        (friday - 1, Deny),
        (friday, AutoApprove),
        (friday + 4 * 3600 - 1, AutoApprove),
        (friday + 4 * 3600, Deny),
        (friday + 24 * 3600, Deny),
    ] {
        let call = Call { time_s: Some(at), ..Call::new("t", &none) };
        assert_eq!(crate::evaluate(&compiled, &call).verdict, verdict, "{at}");
    }
    assert_eq!(crate::evaluate(&compiled, &Call::new("t", &none)).verdict, Deny);
}

#[test]
fn labels_of_inputs_only_tighten() {
    let rules = "rules:\n  - {id: look, tool: t, inputs: tainted, action: require_human}\n  - {tool: t, args_match: {v: 1}, action: deny}\n  - {tool: t, action: auto_approve}\n";
    let compiled = Compiled::new(&file::read(rules).unwrap());
    let said = |inputs: Option<&[String]>, arguments: &str| {
        let arguments = args(arguments);
        crate::evaluate(&compiled, &Call { inputs, ..Call::new("t", &arguments) }).verdict
    };
    let tainted = ["tainted".to_owned()];
    assert_eq!(said(Some(&tainted), r#"{"v":1}"#), Deny);
    assert_eq!(said(Some(&tainted), r#"{"v":2}"#), RequireHuman);
    assert_eq!(said(Some(&[]), r#"{"v":2}"#), AutoApprove);
    assert_eq!(said(None, r#"{"v":2}"#), RequireHuman);
    let _ = file::read("rules:\n  - {tool: t, inputs: x, action: auto_approve}\n").unwrap_err();
}
