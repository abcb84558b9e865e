//! A rule set as an index: which rules a tool's name can reach at all.

use std::collections::BTreeMap;
use std::time::Duration;

use exequatur_canonical::Digest;
use exequatur_proto::policy::v1 as proto;

use crate::argument::Condition;
use crate::glob::{Glob, Reach};
use crate::{DEFAULT_EXPIRES, Mode, RuleSet, Verdict};

#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) id: String,
    pub(crate) tool: Glob,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    /// Nothing: waits without end.
    pub(crate) expires: Option<Duration>,
    pub(crate) window: Duration,
    /// How its argument globs reach.
    pub(crate) reach: Reach,
}

/// A rule set compiled for evaluation. Cheap to share, built once per rule set.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) mode: Mode,
    pub(crate) default: Verdict,
    pub(crate) observe_irreversible: bool,
    pub(crate) rules: Vec<CompiledRule>,
    digest: Digest,
    exact: BTreeMap<String, Vec<usize>>,
    /// By the fixed text before the first wildcard.
    prefixes: BTreeMap<String, Vec<usize>>,
    /// By the fixed text after the last wildcard, for globs without a prefix.
    suffixes: BTreeMap<String, Vec<usize>>,
}

impl Compiled {
    /// Compiles a checked rule set.
    #[must_use]
    pub fn new(set: &RuleSet) -> Self {
        let message = set.message();
        let mut out = Self {
            // `RuleSet::verify` has refused anything else.
            mode: if message.mode() == proto::Mode::Observe { Mode::Observe } else { Mode::Enforce },
            default: Verdict::from_proto(message.default_verdict).unwrap_or(Verdict::Deny),
            observe_irreversible: message.observe_irreversible,
            rules: Vec::with_capacity(message.rules.len()),
            digest: set.digest(),
            exact: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            suffixes: BTreeMap::new(),
        };
        for rule in &message.rules {
            let at = out.rules.len();
            let compiled = compile(rule);
            let (map, key) = if compiled.tool.is_exact() {
                (&mut out.exact, compiled.tool.prefix())
            } else {
                match compiled.tool.prefix() {
                    prefix if prefix.is_empty() => (&mut out.suffixes, compiled.tool.suffix()),
                    prefix => (&mut out.prefixes, prefix),
                }
            };
            map.entry(key).or_default().push(at);
            out.rules.push(compiled);
        }
        out
    }

    /// The digest of the rule set.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether verdicts bind.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The rules whose tool matches, in their order. Looks only at rules that share the name's
    /// beginning or end.
    pub(crate) fn reachable(&self, tool: &str) -> Vec<&CompiledRule> {
        let mut found: Vec<usize> = Vec::new();
        found.extend(self.exact.get(tool).into_iter().flatten());
        for end in (1..=tool.len()).filter(|end| tool.is_char_boundary(*end)) {
            let prefix = tool.get(..end).unwrap_or_default();
            found.extend(self.prefixes.get(prefix).into_iter().flatten());
        }
        for start in (0..=tool.len()).filter(|start| tool.is_char_boundary(*start)) {
            let suffix = tool.get(start..).unwrap_or_default();
            found.extend(self.suffixes.get(suffix).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found
            .into_iter()
            .filter_map(|at| self.rules.get(at))
            .filter(|rule| rule.tool.matches(tool, Reach::Wide))
            .collect()
    }
}

fn compile(rule: &proto::Rule) -> CompiledRule {
    let conditions: Option<Vec<Condition>> = rule.args_match.iter().map(Condition::compile).collect();
    // `RuleSet::verify` has compiled the same text before; should it ever disagree, the rule denies.
    let (conditions, verdict) = match (conditions, Verdict::from_proto(rule.verdict)) {
        (Some(conditions), Some(verdict)) => (conditions, verdict),
        _ => (Vec::new(), Verdict::Deny),
    };
    CompiledRule {
        id: rule.id.clone(),
        tool: Glob::compile(&rule.tool).unwrap_or_else(|_| Glob::any()),
        conditions,
        verdict,
        reason: rule.reason.clone(),
        expires: match (rule.never_expires, rule.expires_s) {
            (true, _) => None,
            (false, 0) => Some(DEFAULT_EXPIRES),
            (false, seconds) => Some(Duration::from_secs(seconds)),
        },
        window: Duration::from_secs(rule.window_s),
        reach: if verdict == Verdict::AutoApprove { Reach::Narrow } else { Reach::Wide },
    }
}
