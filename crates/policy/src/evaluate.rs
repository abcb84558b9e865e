//! First match wins, with a floor where a rule could not be decided or only tightens.

use std::time::Duration;

use crate::argument::Fit;
use crate::compiled::{Compiled, CompiledRule};
use crate::glob::Reach;
use crate::{Call, DEFAULT_EXPIRES, DEFAULT_WINDOW, Mode, Verdict};

/// The id that stands for what no rule matches.
pub const DEFAULT_RULE: &str = "default";

/// What a rule set says about one call, without a copy of any text of its rules.
#[derive(Debug)]
pub struct Decision<'a> {
    /// What binds now.
    pub verdict: Verdict,
    /// What enforce mode says; equal to `verdict` in enforce mode.
    pub enforce_verdict: Verdict,
    /// How many rules were examined.
    pub examined: usize,
    mode: Mode,
    says: Said<'a>,
}

/// What a rule set says about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// What binds now.
    pub verdict: Verdict,
    /// The id of the rule that said so, or [`DEFAULT_RULE`].
    pub rule: String,
    /// Why, for people.
    pub reason: String,
    /// The mode of the rule that said so, or else of the set.
    pub mode: Mode,
    /// What enforce mode says; equal to `verdict` in enforce mode.
    pub enforce_verdict: Verdict,
    /// How long an item waits for a person; nothing: without end.
    pub expires: Option<Duration>,
    /// How long a person's yes stays usable.
    pub window: Duration,
    /// What could not be decided on the way.
    pub error: Option<String>,
}

/// One reading of the rules.
#[derive(Debug)]
struct Said<'a> {
    verdict: Verdict,
    by: Option<&'a CompiledRule>,
    error: Option<(&'a CompiledRule, String)>,
    /// The error is why the verdict is no approval.
    held: bool,
}

/// Told of every rule that is examined.
pub(crate) type Watch<'w, 'a> = &'w mut dyn FnMut(&'a CompiledRule, &Fit);

/// Decides one call. Pure: equal rules and calls give an equal answer.
#[must_use]
pub fn decide<'a>(rules: &'a Compiled, call: &Call<'_>) -> Decision<'a> {
    watched(rules, call, &mut |_, _| ())
}

/// Decides one call and tells of every rule that is examined on the way to what enforce mode says.
pub(crate) fn watched<'a>(rules: &'a Compiled, call: &Call<'_>, watch: Watch<'_, 'a>) -> Decision<'a> {
    let mut examined = 0;
    let full = read(rules, call, &mut examined, &|_| true, rules.default, watch);
    let enforce_verdict = full.verdict;
    let tried = rules.mode == Mode::Observe && !binds_anyway(rules, call);
    let says = if tried || rules.observes {
        let default = if tried { Verdict::AutoApprove } else { rules.default };
        let counts = |rule: &CompiledRule| counts(rules, call, rule);
        let binding = read(rules, call, &mut examined, &counts, default, &mut |_, _| ());
        if tried && binding.by.is_none() {
            // Nothing binds: what the set would have said is told.
            Said { verdict: Verdict::AutoApprove, held: false, ..full }
        } else {
            binding
        }
    } else {
        full
    };
    let mode = says.by.and_then(|rule| rule.mode).unwrap_or(rules.mode);
    Decision { verdict: says.verdict, enforce_verdict, examined, mode, says }
}

/// Whether a rule binds this call. One that is only tried out never ends the search for one that does.
fn counts(rules: &Compiled, call: &Call<'_>, rule: &CompiledRule) -> bool {
    let binds = binds_anyway(rules, call);
    match (rule.mode, rules.mode) {
        (Some(Mode::Enforce), _) | (None, Mode::Enforce) => true,
        (Some(Mode::Observe), _) => binds && rule.verdict != Verdict::AutoApprove,
        (None, Mode::Observe) => binds,
    }
}

/// What cannot be undone is stopped also by rules that are only tried out.
fn binds_anyway(rules: &Compiled, call: &Call<'_>) -> bool {
    !call.reversible && !rules.observe_irreversible
}

fn read<'a>(
    rules: &'a Compiled,
    call: &Call<'_>,
    examined: &mut usize,
    counts: &dyn Fn(&CompiledRule) -> bool,
    default: Verdict,
    watch: Watch<'_, 'a>,
) -> Said<'a> {
    let mut error: Option<(&CompiledRule, String)> = None;
    let mut floor: Option<&CompiledRule> = None;
    let mut matched: Option<&CompiledRule> = None;
    let mut candidates = rules.index().candidates(call);
    while let Some(number) = candidates.next() {
        let Some(rule) = usize::try_from(number).ok().and_then(|n| rules.rules.get(n)) else { continue };
        if !counts(rule) || !rule.tool.matches(call.tool, Reach::Wide) {
            continue;
        }
        *examined += 1;
        let fit = rule.fit(call);
        watch(rule, &fit);
        match fit {
            Fit::No => {}
            Fit::Yes if rule.tightens => {
                if floor.is_none_or(|f| f.verdict < rule.verdict) {
                    floor = Some(rule);
                }
            }
            Fit::Yes => {
                matched = Some(rule);
                break;
            }
            Fit::Unclear(why) if rule.verdict != Verdict::AutoApprove && error.is_none() => {
                error = Some((rule, why));
                candidates.drop_unclear();
            }
            Fit::Unclear(_) => {}
        }
    }
    let mut verdict = matched.map_or(default, |rule| rule.verdict);
    let mut by = matched;
    if let Some(rule) = floor
        && verdict < rule.verdict
    {
        (verdict, by) = (rule.verdict, Some(rule));
    }
    let held = error.is_some() && verdict < Verdict::RequireHuman;
    if let (true, Some((rule, _))) = (held, &error) {
        (verdict, by) = (Verdict::RequireHuman, Some(*rule));
    }
    Said { verdict, by, error, held }
}

impl Decision<'_> {
    /// The id of the rule that said so, or [`DEFAULT_RULE`].
    #[must_use]
    pub fn rule(&self) -> &str {
        self.says.by.map_or(DEFAULT_RULE, |rule| rule.id.as_str())
    }

    /// The answer with texts of its own.
    #[must_use]
    pub fn to_evaluation(&self) -> Evaluation {
        let by = self.says.by;
        let error = self.says.error.as_ref().map(|(rule, why)| format!("rule `{}`: {why}", rule.id));
        let verdict = if self.mode == Mode::Observe { self.enforce_verdict } else { self.says.verdict };
        Evaluation {
            verdict: self.verdict,
            rule: self.rule().to_owned(),
            // In observe mode, the reason tells of what would have been.
            reason: match (by, &error) {
                (Some(_), Some(why)) if self.says.held => format!("a person must look: {why}"),
                (Some(rule), _) if !rule.reason.is_empty() => rule.reason.clone(),
                (Some(rule), _) => format!("rule `{}` says {verdict}", rule.id),
                (None, _) => format!("no rule matches, the default is {verdict}"),
            },
            mode: self.mode,
            enforce_verdict: self.enforce_verdict,
            expires: by.map_or(Some(DEFAULT_EXPIRES), |rule| rule.expires),
            window: by.map_or(DEFAULT_WINDOW, |rule| rule.window),
            error,
        }
    }
}

/// Evaluates one call; [`decide`] with texts of its own.
///
/// A rule that denies or asks and cannot be decided makes the answer at least `require_human`, and
/// later rules may still deny; a rule that approves does not match then.
#[must_use]
pub fn evaluate(rules: &Compiled, call: &Call<'_>) -> Evaluation {
    decide(rules, call).to_evaluation()
}
