//! How a decision came about: every rule that was examined and the fields that decided it.

use crate::argument::Fit;
use crate::evaluate::watched;
use crate::{Call, Compiled, Evaluation};

/// What came of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It matched.
    Match,
    /// It surely did not.
    NoMatch,
    /// It could not be decided.
    Unclear,
}

impl Outcome {
    /// The word in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::NoMatch => "no_match",
            Self::Unclear => "unclear",
        }
    }
}

/// One rule that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its id.
    pub rule: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The fields that did not hold, and why where it is not plain.
    pub fields: Vec<(String, Option<String>)>,
}

/// How a decision came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The decision.
    pub evaluation: Evaluation,
    /// Rules in the order in which they were examined; the index leaves out rules that surely do not
    /// match.
    pub steps: Vec<Step>,
    /// How many rules were examined.
    pub examined: usize,
}

/// Decides one call and says how.
#[must_use]
pub fn explain(rules: &Compiled, call: &Call<'_>) -> Trace {
    let mut steps = Vec::new();
    let decision = watched(rules, call, &mut |rule, fit| {
        let outcome = match fit {
            Fit::Yes => Outcome::Match,
            Fit::No => Outcome::NoMatch,
            Fit::Unclear(_) => Outcome::Unclear,
        };
        let fields = rule.parts(call).into_iter().map(|part| match part.fit {
            Fit::Unclear(why) => (part.field, Some(why)),
            Fit::Yes | Fit::No => (part.field, None),
        });
        steps.push(Step { rule: rule.id.clone(), outcome, fields: fields.collect() });
    });
    Trace { evaluation: decision.to_evaluation(), steps, examined: decision.examined }
}
