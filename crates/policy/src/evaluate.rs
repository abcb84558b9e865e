//! First match wins, with a floor where a rule could not be decided.

use std::time::Duration;

use exequatur_canonical::Object;

use crate::argument::Fit;
use crate::compiled::{Compiled, CompiledRule};
use crate::{DEFAULT_EXPIRES, DEFAULT_WINDOW, Mode, Verdict, stricter};

/// The id that stands for what no rule matches.
pub const DEFAULT_RULE: &str = "default";

/// What a rule set says about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// What binds now.
    pub verdict: Verdict,
    /// The id of the rule that said so, or [`DEFAULT_RULE`].
    pub rule: String,
    /// Why, for people.
    pub reason: String,
    /// The mode of the set.
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

/// Evaluates one action. Pure: equal rules and arguments give an equal answer.
///
/// A rule that denies or asks and whose argument is missing or of another shape makes the answer
/// at least `require_human`, and later rules may still deny; a rule that approves does not match
/// then. `irreversible` is what the tool's definition says.
#[must_use]
pub fn evaluate(rules: &Compiled, tool: &str, arguments: &Object, irreversible: bool) -> Evaluation {
    let mut floor: Option<(&CompiledRule, String)> = None;
    let mut matched: Option<&CompiledRule> = None;
    for rule in rules.reachable(tool) {
        match fit(rule, arguments) {
            Fit::Yes => {
                matched = Some(rule);
                break;
            }
            Fit::No => {}
            Fit::Unclear(why) => {
                if rule.verdict != Verdict::AutoApprove && floor.is_none() {
                    floor = Some((rule, format!("rule `{}`: {why}", rule.id)));
                }
            }
        }
    }
    let (says, by) = match matched {
        Some(rule) => (rule.verdict, Some(rule)),
        None => (rules.default, None),
    };
    let (enforce_verdict, by) = match &floor {
        Some((rule, _)) if says < Verdict::RequireHuman => {
            (stricter(says, Verdict::RequireHuman), Some(*rule))
        }
        _ => (says, by),
    };
    let observed = rules.mode == Mode::Observe && (!irreversible || rules.observe_irreversible);
    let held_by_floor = floor.as_ref().is_some_and(|(rule, _)| by.is_some_and(|b| b.id == rule.id));
    Evaluation {
        verdict: if observed { Verdict::AutoApprove } else { enforce_verdict },
        rule: by.map_or_else(|| DEFAULT_RULE.to_owned(), |rule| rule.id.clone()),
        reason: match (by, &floor) {
            (Some(_), Some((_, why))) if held_by_floor => format!("a person must look: {why}"),
            (Some(rule), _) if !rule.reason.is_empty() => rule.reason.clone(),
            (Some(rule), _) => format!("rule `{}` says {enforce_verdict}", rule.id),
            (None, _) => format!("no rule matches, the default is {enforce_verdict}"),
        },
        mode: rules.mode,
        enforce_verdict,
        expires: by.map_or(Some(DEFAULT_EXPIRES), |rule| rule.expires),
        window: by.map_or(DEFAULT_WINDOW, |rule| rule.window),
        error: floor.map(|(_, why)| why),
    }
}

/// All conditions must hold. One that surely does not hold settles it, whatever else is unclear.
fn fit(rule: &CompiledRule, arguments: &Object) -> Fit {
    let mut unclear = None;
    for condition in &rule.conditions {
        match condition.fit(arguments, rule.reach) {
            Fit::Yes => {}
            Fit::No => return Fit::No,
            Fit::Unclear(why) => {
                unclear.get_or_insert(why);
            }
        }
    }
    unclear.map_or(Fit::Yes, Fit::Unclear)
}
