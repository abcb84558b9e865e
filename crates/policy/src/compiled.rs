//! A rule set compiled once: every rule's conditions, and the index over them.

use std::time::Duration;

use exequatur_canonical::Digest;
use exequatur_proto::policy::v1 as proto;

use crate::argument::{Condition, Fit};
use crate::context::Context;
use crate::glob::{Glob, Reach};
use crate::index::Index;
use crate::when::When;
use crate::{Call, DEFAULT_EXPIRES, Mode, RuleSet, Verdict};

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) id: String,
    pub(crate) tool: Glob,
    pub(crate) context: Context,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) when: Option<When>,
    pub(crate) verdict: Verdict,
    /// It looks at labels of inputs: it tightens what the others say and does not end the search.
    pub(crate) tightens: bool,
    pub(crate) reason: String,
    /// The rule's own; nothing: the set's.
    pub(crate) mode: Option<Mode>,
    /// Nothing: waits without end.
    pub(crate) expires: Option<Duration>,
    pub(crate) window: Duration,
    /// How its patterns reach.
    pub(crate) reach: Reach,
}

/// A part of a rule that did not say yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) field: String,
    pub(crate) fit: Fit,
}

impl CompiledRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// The field and what to write instead.
    pub(crate) fn compile(rule: &proto::Rule) -> Result<Self, (String, String)> {
        let at = |field: &str| {
            let field = field.to_owned();
            move |why: String| (field, why)
        };
        let verdict = Verdict::from_proto(rule.verdict)
            .ok_or_else(|| at("action")("must be auto_approve, require_human or deny".to_owned()))?;
        let conditions = rule
            .args_match
            .iter()
            .map(|c| Condition::compile(c).map_err(at(&format!("args_match.{}", c.path))))
            .collect::<Result<_, _>>()?;
        let when =
            if rule.when.is_empty() { None } else { Some(When::compile(&rule.when).map_err(at("when"))?) };
        Ok(Self {
            id: rule.id.clone(),
            tool: Glob::compile(&rule.tool).map_err(at("tool"))?,
            context: Context::compile(rule).map_err(|(field, why)| at(field)(why))?,
            conditions,
            when,
            verdict,
            tightens: !rule.inputs.is_empty(),
            reason: rule.reason.clone(),
            mode: match proto::Mode::try_from(rule.mode) {
                Ok(proto::Mode::Unspecified) => None,
                Ok(proto::Mode::Enforce) => Some(Mode::Enforce),
                Ok(proto::Mode::Observe) => Some(Mode::Observe),
                Err(_) => return Err(at("mode")("must be enforce or observe".to_owned())),
            },
            expires: match (rule.never_expires, rule.expires_s) {
                (true, _) => None,
                (false, 0) => Some(DEFAULT_EXPIRES),
                (false, seconds) => Some(Duration::from_secs(seconds)),
            },
            window: Duration::from_secs(rule.window_s),
            reach: if verdict == Verdict::AutoApprove { Reach::Narrow } else { Reach::Wide },
        })
    }

    /// All conditions must hold. One that surely does not hold settles it, whatever else is unclear.
    pub(crate) fn fit(&self, call: &Call<'_>) -> Fit {
        let mut unclear = None;
        let mut no = false;
        self.context.fit(call, self.reach, |_, fit| match fit {
            Fit::Unclear(why) => drop(unclear.get_or_insert(why)),
            Fit::No => no = true,
            Fit::Yes => {}
        });
        if no {
            return Fit::No;
        }
        for condition in &self.conditions {
            match condition.fit(call.arguments, self.reach) {
                Fit::Yes => {}
                Fit::No => return Fit::No,
                Fit::Unclear(why) => drop(unclear.get_or_insert(why)),
            }
        }
        match self.when.as_ref().map(|w| w.fit(call, self.verdict == Verdict::AutoApprove)) {
            Some(Fit::No) => return Fit::No,
            Some(Fit::Unclear(why)) => drop(unclear.get_or_insert(why)),
            Some(Fit::Yes) | None => {}
        }
        unclear.map_or(Fit::Yes, Fit::Unclear)
    }

    /// Every part that did not say yes, for the trace.
    pub(crate) fn parts(&self, call: &Call<'_>) -> Vec<Part> {
        let mut out = Vec::new();
        self.context.fit(call, self.reach, |field, fit| out.push(Part { field: field.to_owned(), fit }));
        for condition in &self.conditions {
            let fit = condition.fit(call.arguments, self.reach);
            out.push(Part { field: format!("args_match.{}", condition.path()), fit });
        }
        if let Some(when) = &self.when {
            let fit = when.fit(call, self.verdict == Verdict::AutoApprove);
            out.push(Part { field: "when".to_owned(), fit });
        }
        out.retain(|part| part.fit != Fit::Yes);
        out
    }

    /// Whether it matches whatever the call's arguments and circumstances are.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.context.is_empty() && self.conditions.is_empty() && self.when.is_none()
    }
}

/// A rule set compiled for evaluation. Cheap to share, built once per rule set.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) mode: Mode,
    pub(crate) default: Verdict,
    pub(crate) observe_irreversible: bool,
    pub(crate) rules: Vec<CompiledRule>,
    /// Whether a rule has `mode: observe` of its own.
    pub(crate) observes: bool,
    index: Index,
    digest: Digest,
}

impl Compiled {
    /// Compiles a checked rule set.
    #[must_use]
    pub fn new(set: &RuleSet) -> Self {
        let message = set.message();
        let rules: Vec<CompiledRule> = message
            .rules
            .iter()
            // `RuleSet::verify` has compiled the same rules before; should it ever disagree, the
            // rule denies.
            .map(|rule| CompiledRule::compile(rule).unwrap_or_else(|_| denial(rule)))
            .collect();
        Self {
            // `RuleSet::verify` has refused anything else.
            mode: if message.mode() == proto::Mode::Observe { Mode::Observe } else { Mode::Enforce },
            default: Verdict::from_proto(message.default_verdict).unwrap_or(Verdict::Deny),
            observe_irreversible: message.observe_irreversible,
            observes: rules.iter().any(|rule| rule.mode == Some(Mode::Observe)),
            index: Index::new(&rules),
            rules,
            digest: set.digest(),
        }
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

    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }
}

fn denial(rule: &proto::Rule) -> CompiledRule {
    CompiledRule {
        id: rule.id.clone(),
        tool: Glob::any(),
        context: Context::default(),
        conditions: Vec::new(),
        when: None,
        verdict: Verdict::Deny,
        tightens: false,
        reason: "the rule cannot be compiled".to_owned(),
        mode: None,
        expires: Some(DEFAULT_EXPIRES),
        window: crate::DEFAULT_WINDOW,
        reach: Reach::Wide,
    }
}
