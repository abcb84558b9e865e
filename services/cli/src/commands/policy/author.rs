//! `policy check`, `test`, `explain` and `diff`: what authors of rules need. Offline.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use exequatur_policy::{Compiled, Finding, evaluate, explain as trace, file, findings};
use exequatur_proto::policy::v1 as proto;
use exequatur_yaml::{FileError, Node};
use serde_json::{Value, json};

use super::decide::answer;
use super::input::{Owned, some_tools};
use super::{App, read};
use crate::failure::{FAILED, Failure};
use crate::text;

/// Says what is wrong with a file, or most likely not meant.
pub(super) fn check(path: &Path, tools: Option<&Path>, app: &App) -> Result<u8, Failure> {
    let tools = some_tools(tools)?;
    let known: Option<Vec<_>> = tools.map(|t| t.into_values().map(|tool| tool.known).collect());
    let yaml = text_of(path)?;
    let (digest, list) = match file::read_located(&yaml) {
        Err(e) => (
            None,
            vec![json!({
                "rule": null, "line": e.line, "column": e.column, "code": "invalid", "message": e.message,
            })],
        ),
        Ok(located) => {
            let shown = |finding: &Finding| {
                let place = finding.rule.and_then(|at| located.places.get(at));
                let rule = finding.rule.and_then(|at| located.set.message().rules.get(at));
                json!({
                    "rule": rule.map(|r| r.id.as_str()),
                    "line": place.map_or(1, |p| p.line),
                    "column": place.map_or(1, |p| p.column),
                    "code": finding.code,
                    "message": finding.message,
                })
            };
            let list = findings(&located.set, known.as_deref()).iter().map(shown).collect();
            (Some(located.set.digest().to_string()), list)
        }
    };
    let ok = list.is_empty();
    let value = json!({"ok": ok, "findings": list, "digest": digest});
    app.output.value(&value, || {
        let line = |f: &Value| {
            let message = f.get("message").and_then(Value::as_str).unwrap_or_default();
            let code = f.get("code").and_then(Value::as_str).unwrap_or_default();
            let number = |key: &str| f.get(key).and_then(Value::as_u64).unwrap_or_default();
            format!("line {}, column {}: {code}: {}", number("line"), number("column"), text::escape(message))
        };
        let lines: Vec<String> = list.iter().map(line).collect();
        match &digest {
            Some(digest) if ok => format!("valid, digest {digest}"),
            _ => lines.join("\n"),
        }
    });
    Ok(if ok { 0 } else { FAILED })
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("cannot read `{}`: {e}", path.display())))
}

struct Case {
    line: usize,
    name: String,
    call: Owned,
    action: String,
    rule: Option<String>,
}

/// Runs the cases of a file.
pub(super) fn test(path: &Path, rules: Option<&Path>, app: &App) -> Result<u8, Failure> {
    let wrong = |e: FileError| Failure::bad_input(format!("test file `{}`: {e}", path.display()));
    let document = exequatur_yaml::read(&text_of(path)?).map_err(wrong)?;
    let (own, cases) = cases(&document).map_err(wrong)?;
    let beside = own.map(|own| path.parent().unwrap_or(Path::new(".")).join(own));
    let rules = rules.map(Path::to_path_buf).or(beside).ok_or_else(|| {
        Failure::usage("no rules: write `rules: FILE` into the test file or use `--rules FILE`")
    })?;
    let set = read(&rules)?;
    let compiled = Compiled::new(&set);
    let mut failed = Vec::new();
    let mut reached = BTreeSet::new();
    for case in &cases {
        let said = evaluate(&compiled, &case.call.call());
        reached.insert(said.rule.clone());
        let fits =
            said.verdict.as_str() == case.action && case.rule.as_ref().is_none_or(|rule| *rule == said.rule);
        if !fits {
            failed.push(json!({
                "name": case.name,
                "line": case.line,
                "expected": {"action": case.action, "rule": case.rule},
                "found": answer(&said),
            }));
        }
    }
    let all: Vec<&str> = set.message().rules.iter().map(|r| r.id.as_str()).collect();
    let missed: Vec<&str> = all.iter().filter(|id| !reached.contains(**id)).copied().collect();
    let value = json!({
        "ok": failed.is_empty(),
        "cases": cases.len(),
        "failed": failed,
        "coverage": {"rules": all.len(), "reached": all.len() - missed.len(), "missed": missed},
    });
    app.output.value(&value, || {
        let mut out = String::new();
        for case in &failed {
            out.push_str(&format!("failed: {}\n", text::escape(&case.to_string())));
        }
        let passed = cases.len() - failed.len();
        out.push_str(&format!("{passed} of {} cases hold; ", cases.len()));
        out.push_str(&format!("{} of {} rules decided a case", all.len() - missed.len(), all.len()));
        if !missed.is_empty() {
            out.push_str(&format!(", not: {}", missed.join(", ")));
        }
        out
    });
    Ok(if failed.is_empty() { 0 } else { FAILED })
}

fn cases(document: &Node) -> Result<(Option<PathBuf>, Vec<Case>), FileError> {
    let mut map = document.map()?;
    let rules = map.take("rules").map(|n| n.text().map(PathBuf::from)).transpose()?;
    let list = map.need("cases")?;
    map.done()?;
    if list.list()?.is_empty() {
        return Err(list.error("the list of cases is empty"));
    }
    Ok((rules, list.list()?.iter().map(case).collect::<Result<_, _>>()?))
}

fn case(node: &Node) -> Result<Case, FileError> {
    let mut map = node.map()?;
    let name = map.take("name").map(|n| n.text()).transpose()?.unwrap_or_default().to_owned();
    let expect = map.need("expect")?;
    let (action, rule) = match &expect.kind {
        exequatur_yaml::Kind::Map(_) => {
            let mut inner = expect.map()?;
            let action = inner.need("action")?;
            let rule = inner.take("rule").map(|n| n.text().map(ToOwned::to_owned)).transpose()?;
            inner.done()?;
            (action, rule)
        }
        _ => (expect, None),
    };
    let words = ["auto_approve", "require_human", "deny"].map(|w| (w, w));
    let action = action.word(&words)?.to_owned();
    // The call has the members that a line of `policy decide` has.
    let mut members = Vec::new();
    for key in
        ["tool", "arguments", "arguments_json", "agent", "tenant", "labels", "inputs", "time", "reversible"]
    {
        if let Some(value) = map.take(key) {
            members.push(format!("\"{key}\":{}", value.to_json()));
        }
    }
    map.done()?;
    if !members.iter().any(|m| m.starts_with("\"arguments")) {
        members.push("\"arguments\":{}".to_owned());
    }
    let call =
        Owned::read(format!("{{{}}}", members.join(",")).as_bytes(), &[]).map_err(|e| node.error(e))?;
    Ok(Case { line: node.place.line, name, call, action, rule })
}

/// How a decision comes about.
pub(super) fn explain(rules: &Path, call: &Owned, app: &App) -> Result<u8, Failure> {
    let compiled = Compiled::new(&read(rules)?);
    let trace = trace(&compiled, &call.call());
    let steps: Vec<Value> = trace
        .steps
        .iter()
        .map(|step| {
            let fields: Vec<Value> =
                step.fields.iter().map(|(field, why)| json!({"field": field, "why": why})).collect();
            json!({"rule": step.rule, "outcome": step.outcome.as_str(), "fields": fields})
        })
        .collect();
    let said = &trace.evaluation;
    let mut value = answer(said);
    if let Some(object) = value.as_object_mut() {
        // The names that `explain` has had from the beginning.
        object.insert("verdict".to_owned(), said.verdict.as_str().into());
        object.insert("error".to_owned(), json!(said.error));
        object.insert("examined".to_owned(), trace.examined.into());
        object.insert("steps".to_owned(), steps.into());
    }
    app.output.value(&value, || {
        let mut out = text::pairs(&[
            ("verdict", said.verdict.as_str().to_owned()),
            ("rule", said.rule.clone()),
            ("reason", said.reason.clone()),
            ("error", said.error.clone().unwrap_or_default()),
        ]);
        for step in &trace.steps {
            let fields: Vec<&str> = step.fields.iter().map(|(field, _)| field.as_str()).collect();
            let by = if fields.is_empty() { String::new() } else { format!(" by {}", fields.join(", ")) };
            out.push_str(&format!("\n  {}: {}{}", step.rule, step.outcome.as_str(), text::escape(&by)));
        }
        out
    });
    Ok(0)
}

/// What is different between two files, by the rules' ids.
pub(super) fn diff(old: &Path, new: &Path, app: &App) -> Result<u8, Failure> {
    let (old, new) = (read(old)?, read(new)?);
    let (a, b) = (old.message(), new.message());
    let find = |set: &proto::RuleSet, id: &str| set.rules.iter().find(|r| r.id == id).cloned();
    let ids = |set: &proto::RuleSet| set.rules.iter().map(|r| r.id.clone()).collect::<Vec<_>>();
    let (ids_a, ids_b) = (ids(a), ids(b));
    let removed: Vec<&String> = ids_a.iter().filter(|id| find(b, id).is_none()).collect();
    let added: Vec<&String> = ids_b.iter().filter(|id| find(a, id).is_none()).collect();
    let changed: Vec<&String> =
        ids_a.iter().filter(|id| find(b, id).is_some_and(|rule| find(a, id) != Some(rule))).collect();
    let kept_a: Vec<&String> = ids_a.iter().filter(|id| !removed.contains(id)).collect();
    let kept_b: Vec<&String> = ids_b.iter().filter(|id| !added.contains(id)).collect();
    let moved = kept_a != kept_b;
    let set = a.mode != b.mode
        || a.default_verdict != b.default_verdict
        || a.observe_irreversible != b.observe_irreversible;
    let same = old.bytes() == new.bytes();
    let value = json!({
        "same": same, "added": added, "removed": removed, "changed": changed,
        "order_changed": moved, "set_changed": set,
    });
    app.output.value(&value, || {
        text::pairs(&[
            ("same", same.to_string()),
            ("added", added.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")),
            ("removed", removed.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")),
            ("changed", changed.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")),
            ("order changed", moved.to_string()),
            ("mode, default changed", set.to_string()),
        ])
    });
    Ok(if same { 0 } else { FAILED })
}
