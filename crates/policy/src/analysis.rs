//! What is allowed in a rule file and most likely not meant, found by looking at the rules alone and,
//! where the tools are known, at their schemas. Evaluates no call.

mod cover;
mod schema;

use exequatur_canonical::Object;
use exequatur_proto::policy::v1 as proto;

use crate::compiled::CompiledRule;
use crate::glob::Reach;
use crate::{RuleSet, Verdict};

/// A tool that rules can name.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// Its registered name.
    pub name: String,
    /// Whether its definition says that it can be undone.
    pub reversible: bool,
    /// Its input schema.
    pub schema: Object,
}

/// Something that is most likely not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Number of the rule, from 0; nothing when it concerns the set.
    pub rule: Option<usize>,
    /// A word for machines.
    pub code: &'static str,
    /// What is the matter and what to write instead.
    pub message: String,
}

/// Looks at a rule set; `tools` when they are known.
#[must_use]
pub fn findings(set: &RuleSet, tools: Option<&[KnownTool]>) -> Vec<Finding> {
    let message = set.message();
    let rules: Vec<(usize, &proto::Rule, CompiledRule)> = message
        .rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((at, rule, CompiledRule::compile(rule).ok()?)))
        .collect();
    let mut out = Vec::new();
    let mut add = |rule: usize, code: &'static str, message: String| {
        out.push(Finding { rule: Some(rule), code, message });
    };
    for (n, (at, rule, compiled)) in rules.iter().enumerate() {
        let before = rules.iter().take(n);
        if let Some((_, by, _)) = before.into_iter().find(|(_, a, c)| cover::covers((a, c), (rule, compiled)))
        {
            let message = format!("it never matches: rule `{}` before it matches all that it would", by.id);
            add(*at, "shadowed", message);
        }
        alone(*at, rule, compiled, &mut add);
        if let Some(tools) = tools {
            schema::against(*at, rule, compiled, tools, &mut add);
        }
    }
    for (id, field) in set.not_enforced() {
        if let Some((at, ..)) = rules.iter().find(|(_, rule, _)| rule.id == id) {
            let message = format!("`{field}` is not enforced by the plane yet, so the set cannot be applied");
            add(*at, "not_enforced", message);
        }
    }
    if message.mode() == proto::Mode::Observe && message.observe_irreversible {
        let message = "observe mode lets through even what cannot be undone".to_owned();
        out.push(Finding { rule: None, code: "observe_irreversible", message });
    }
    out.sort_by_key(|finding| finding.rule);
    out
}

/// What one rule shows by itself.
fn alone(
    at: usize,
    rule: &proto::Rule,
    compiled: &CompiledRule,
    add: &mut impl FnMut(usize, &'static str, String),
) {
    let approves = compiled.verdict == Verdict::AutoApprove;
    if approves && compiled.is_unconditional() && matches!(rule.tool.as_str(), "*" | "**") {
        add(at, "approves_all", "it approves every tool that no rule before it names".to_owned());
    }
    if compiled.when.as_ref().is_some_and(crate::when::When::is_constant) {
        add(at, "constant_when", "`when` looks at nothing of the call, so it is always the same".to_owned());
    }
    for condition in &rule.args_match {
        let exact = condition.r#type() == proto::ValueType::Unspecified;
        for (n, pattern) in condition.any_of.iter().enumerate() {
            let Some(text) = text_of(pattern) else { continue };
            if approves && exact && open_host(text) {
                let message = format!(
                    "it approves more than one host: in `{}` the `*` of `{text}` ends the host's name; write `/*` after the name",
                    condition.path
                );
                add(at, "open_host", message);
            }
            if !approves && exact && text.contains("://") {
                let message = format!(
                    "another spelling of the same URL escapes it; write `{}: {{url: \"{text}\"}}`",
                    condition.path
                );
                add(at, "escapable", message);
            }
            let covered = condition.any_of.iter().enumerate().any(|(m, other)| {
                m != n && cover::pattern(other, pattern, compiled.reach) && (m < n || other != pattern)
            });
            if covered {
                let message =
                    format!("in `{}`, `{text}` is already matched by another value", condition.path);
                add(at, "redundant_value", message);
            }
        }
    }
}

pub(crate) fn text_of(pattern: &proto::Pattern) -> Option<&str> {
    use exequatur_proto::action::v1::value::Kind;
    match pattern.pattern.as_ref()? {
        proto::pattern::Pattern::Glob(text) => Some(text),
        proto::pattern::Pattern::Scalar(value) => match value.kind.as_ref()? {
            Kind::StringValue(text) => Some(text),
            _ => None,
        },
        proto::pattern::Pattern::Range(_) => None,
    }
}

/// Whether a URL's host ends in a wildcard: `https://docs.example.org*` is also
/// `https://docs.example.org.example.net/`.
fn open_host(glob: &str) -> bool {
    glob.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().unwrap_or_default().ends_with('*'))
}

/// Whether a rule's tool matches a name.
fn names(compiled: &CompiledRule, tool: &str) -> bool {
    compiled.tool.matches(tool, Reach::Wide)
}
