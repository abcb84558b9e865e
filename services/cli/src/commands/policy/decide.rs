//! `policy decide` and `policy replay`: many calls, a line each, in constant memory. Offline.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use exequatur_canonical::{Value as Canonical, read_arguments};
use exequatur_policy::{Compiled, Evaluation, Verdict, evaluate};
use serde_json::{Value, json};

use super::input::{Owned, Tool, some_tools};
use super::{App, read};
use crate::commands::canonical;
use crate::failure::Failure;

/// Arguments of `decide` and `replay`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Rules, YAML.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// Tool definitions: arguments are checked and completed, and what cannot be undone is known.
    /// Without them every call is taken for one that cannot be undone.
    #[arg(long, value_name = "DIR")]
    tools: Option<PathBuf>,
    /// JSON Lines in and out; the only form.
    #[arg(long)]
    jsonl: bool,
    /// Reads this file in place of standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Answers every line.
pub(super) fn run(args: &Args) -> Result<u8, Failure> {
    let rules = Compiled::new(&read(&args.rules)?);
    let tools = some_tools(args.tools.as_deref())?;
    canonical::stream(args.file.as_deref(), |line| match decide(line, &[], &rules, tools.as_ref()) {
        Ok((_, said)) => answer(&said).to_string(),
        Err((code, why)) => json!({"error": code, "message": why}).to_string(),
    })
}

type Wrong = (&'static str, String);

fn decide(
    line: &[u8],
    also: &[&str],
    rules: &Compiled,
    tools: Option<&BTreeMap<String, Tool>>,
) -> Result<(Owned, Evaluation), Wrong> {
    let call = Owned::read(line, also).map_err(|why| ("INVALID_LINE", why))?.completed(tools)?;
    let said = evaluate(rules, &call.call());
    Ok((call, said))
}

/// The object that tells of a decision.
pub(super) fn answer(said: &Evaluation) -> Value {
    let mut out = json!({
        "action": said.verdict.as_str(),
        "rule": said.rule,
        "reason": said.reason,
        "mode": said.mode.as_str(),
    });
    if let Some(object) = out.as_object_mut() {
        if said.enforce_verdict != said.verdict {
            object.insert("would".to_owned(), said.enforce_verdict.as_str().into());
        }
        if let Some(why) = &said.error {
            object.insert("unclear".to_owned(), why.as_str().into());
        }
    }
    out
}

/// What a candidate would change.
#[derive(Default)]
struct Report {
    calls: u64,
    same: u64,
    errors: u64,
    /// By what was said, what would be said, and the rule.
    changed: BTreeMap<(String, String, String), u64>,
    /// Prompts by reviewer and day: before and after.
    prompts: BTreeMap<(String, String), (u64, u64)>,
}

/// Holds a candidate against recorded decisions.
pub(super) fn replay(args: &Args, app: &App) -> Result<u8, Failure> {
    let rules = Compiled::new(&read(&args.rules)?);
    let tools = some_tools(args.tools.as_deref())?;
    let mut report = Report::default();
    canonical::lines(args.file.as_deref(), |line| match recorded(line) {
        Some((action, reviewer)) => match decide(line, RECORD, &rules, tools.as_ref()) {
            Ok((call, said)) => report.add(&action, &reviewer, call.time_s, &said),
            Err(_) => report.errors += 1,
        },
        None => report.errors += 1,
    })?;
    let value = report.to_json();
    app.output.value(&value, || {
        let changed: u64 = report.changed.values().sum();
        let mut text = format!("{} calls, {changed} change, {} not read", report.calls, report.errors);
        for ((from, to, rule), count) in &report.changed {
            text.push_str(&format!("\n  {count}: {from} becomes {to} by `{}`", crate::text::escape(rule)));
        }
        text
    });
    Ok(u8::from(report.errors > 0))
}

/// What a recorded decision has beside the call.
const RECORD: &[&str] = &["action", "rule", "reason", "mode", "would", "unclear", "reviewer"];

fn recorded(line: &[u8]) -> Option<(String, String)> {
    let object = read_arguments(line).ok()?;
    let action = object.get("action").and_then(Canonical::as_str)?;
    let known = [Verdict::AutoApprove, Verdict::RequireHuman, Verdict::Deny];
    known.iter().find(|v| v.as_str() == action)?;
    let reviewer = object.get("reviewer").and_then(Canonical::as_str).unwrap_or_default();
    Some((action.to_owned(), reviewer.to_owned()))
}

impl Report {
    fn add(&mut self, action: &str, reviewer: &str, time_s: Option<i64>, said: &Evaluation) {
        self.calls += 1;
        let now = said.verdict.as_str();
        if now == action {
            self.same += 1;
        } else {
            let key = (action.to_owned(), now.to_owned(), said.rule.clone());
            *self.changed.entry(key).or_default() += 1;
        }
        let day = time_s
            .and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok())
            .map(|t| t.date().to_string())
            .unwrap_or_default();
        let asks = Verdict::RequireHuman.as_str();
        if action == asks || now == asks {
            let prompts = self.prompts.entry((reviewer.to_owned(), day)).or_default();
            prompts.0 += u64::from(action == asks);
            prompts.1 += u64::from(now == asks);
        }
    }

    fn to_json(&self) -> Value {
        let changed: Vec<Value> = self
            .changed
            .iter()
            .map(|((from, to, rule), count)| json!({"from": from, "to": to, "rule": rule, "count": count}))
            .collect();
        let prompts: Vec<Value> = self
            .prompts
            .iter()
            .map(|((reviewer, day), (before, after))| {
                json!({"reviewer": reviewer, "day": day, "before": before, "after": after})
            })
            .collect();
        json!({
            "calls": self.calls,
            "same": self.same,
            "errors": self.errors,
            "changed": changed,
            "prompts": prompts,
        })
    }
}
